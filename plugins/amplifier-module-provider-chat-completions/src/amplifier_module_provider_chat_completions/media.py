"""Media in the words of the protocol."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from amplifier_kit.media.support import IMAGES, PDF, TEXT
from amplifier_kit.open_data import as_list, as_object
from amplifier_sdk.content import AudioBlock, DocumentBlock, ImageBlock
from amplifier_sdk.errors import InvalidRequestError
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = [
    "MEDIA",
    "SHOWN",
    "Modalities",
    "Shown",
    "media_part",
    "read_modalities",
    "taken_media",
]

_FORMATS: Final[Mapping[str, str]] = {"audio/mpeg": "mp3", "audio/wav": "wav"}

MEDIA: Final = (*IMAGES, *_FORMATS, PDF, TEXT)
"""The media types that the protocol has a form for; a server may take fewer."""

Modalities: TypeAlias = Mapping[str, frozenset[str]]
"""What models take besides text, by the model: `image`, `audio`, `file`."""

Shown: TypeAlias = ImageBlock | AudioBlock | DocumentBlock
SHOWN: Final = (ImageBlock, AudioBlock, DocumentBlock)
"""The blocks that `media_part` writes."""


def read_modalities(listing: JSONValue) -> Modalities:
    """Read from a list of models what each takes; a model that is listed without it is left out.

    The only model of a server is under the empty name as well: such a server answers with it, whatever is asked for.
    """
    found: dict[str, frozenset[str]] = {}
    entries = as_list(as_object(listing).get("data"))
    for entry in map(as_object, entries):
        taken = as_object(entry.get("architecture")).get("input_modalities")
        if isinstance(taken, list):
            for name in (entry.get("id"), *as_list(entry.get("aliases"))):
                found[str(name)] = frozenset(map(str, taken))
            if len(entries) == 1:
                found[""] = frozenset(map(str, taken))
    return found


def taken_media(media: Iterable[str], modalities: frozenset[str]) -> frozenset[str]:
    """Return those of the media types that a model with these modalities takes; texts always go."""
    return frozenset(
        name
        for name in media
        if name == TEXT
        or ("file" if name == PDF else name.partition("/")[0]) in modalities
    )


def media_part(block: Shown) -> JSONObject:
    """Write a block as a part of a message; bytes travel inside it.

    Raises:
        InvalidRequestError: it has no form in the protocol.
    """
    match block:
        case ImageBlock():
            return {"type": "image_url", "image_url": _image(block.source)}
        case AudioBlock():
            return {"type": "input_audio", "input_audio": _audio(block.source)}
        case DocumentBlock():
            return {"type": "file", "file": _file(block.source)}


def _image(source: Mapping[str, JSONValue]) -> JSONObject:
    detail: JSONObject
    detail = {}
    if source.get("detail") is not None:
        detail = {"detail": source["detail"]}
    url, data = source.get("url"), source.get("data")
    if isinstance(url, str):
        return {"url": url, **detail}
    if isinstance(data, str):
        return {
            "url": f"data:{source.get('media_type') or 'image/png'};base64,{data}",
            **detail,
        }
    raise _no_form("An image has 'data' and 'media_type', or a 'url'", source)


def _audio(source: Mapping[str, JSONValue]) -> JSONObject:
    found = _FORMATS.get(str(source.get("media_type")))
    if found is None or not isinstance(source.get("data"), str):
        raise _no_form(
            f"A recording has 'data' and a 'media_type' of {', '.join(_FORMATS)}",
            source,
        )
    return {"data": source["data"], "format": found}


def _file(source: Mapping[str, JSONValue]) -> JSONObject:
    file_id, data = source.get("file_id"), source.get("data")
    if isinstance(file_id, str):
        return {"file_id": file_id}
    if isinstance(data, str):
        return {
            "filename": source.get("name") or "document.pdf",
            "file_data": f"data:{source.get('media_type') or PDF};base64,{data}",
        }
    raise _no_form("A document has 'data' and 'media_type', or a 'file_id'", source)


def _no_form(expected: str, source: Mapping[str, JSONValue]) -> InvalidRequestError:
    return InvalidRequestError(f"{expected}; got {', '.join(source) or 'nothing'}")
