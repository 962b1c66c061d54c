"""Images and documents as the API takes them: their data, an address, or a file that it keeps."""

from __future__ import annotations

from collections.abc import Mapping

from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = ["media_source"]


def media_source(
    source: Mapping[str, JSONValue], usual: str = "image/png"
) -> JSONObject:
    """Write the source of an image or a document; what is unknown goes as it is.

    Args:
        source: the block's. A `data:` address in it becomes the data that it holds.
        usual: the media type of data that name none.
    """
    match source:
        # The API fetches addresses itself and takes no `data:` among them.
        case {"url": str(url)} if url.startswith("data:"):
            head, _, data = url.removeprefix("data:").partition(",")
            return _data(head.partition(";")[0] or usual, data)
        case {"url": str(url)}:
            return {"type": "url", "url": url}
        case {"type": "text", "data": str(text)}:
            return {"type": "text", "media_type": "text/plain", "data": text}
        case {"data": str(data)}:
            kind = source.get("media_type")
            return _data(kind if isinstance(kind, str) else usual, data)
        case {"file_id": str(id)}:
            return {"type": "file", "file_id": id}
        case _:
            return dict(source)


def _data(media_type: str, data: str) -> JSONObject:
    return {"type": "base64", "media_type": media_type, "data": data}
