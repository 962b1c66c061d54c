"""Images as the API takes them: their data, an address, or a file that it keeps."""

from __future__ import annotations

from collections.abc import Mapping

from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = ["image_source"]


def image_source(source: Mapping[str, JSONValue]) -> JSONObject:
    """Write an image's source; a `data:` address becomes the data it holds, what is unknown goes as it is."""
    match source:
        # The API fetches addresses itself and takes no `data:` among them.
        case {"url": str(url)} if url.startswith("data:"):
            head, _, data = url.removeprefix("data:").partition(",")
            return _data(head.partition(";")[0] or "image/png", data)
        case {"url": str(url)}:
            return {"type": "url", "url": url}
        case {"data": str(data)}:
            kind = source.get("media_type")
            return _data(kind if isinstance(kind, str) else "image/png", data)
        case {"file_id": str(id)}:
            return {"type": "file", "file_id": id}
        case _:
            return dict(source)


def _data(media_type: str, data: str) -> JSONObject:
    return {"type": "base64", "media_type": media_type, "data": data}
