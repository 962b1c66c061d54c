"""What a person sends: text, files of their editor, and links."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from amplifier.acp.params import refused, text_param
from amplifier.app.sessions.given_prompts import GivenPrompt
from amplifier_kit.rpc.frames import INVALID_PARAMS, RpcError
from amplifier_sdk.content import (
    AudioBlock,
    DocumentBlock,
    ImageBlock,
    TextBlock,
    VideoBlock,
)
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.media import MediaBlock, kind_of, sound_media

__all__ = ["read_prompt"]

_BLOCKS: Final[Mapping[str, type[MediaBlock]]] = {
    "image": ImageBlock,
    "audio": AudioBlock,
    "document": DocumentBlock,
    "video": VideoBlock,
}
_MAX_LENGTH: Final = 8_000_000
"""Characters; no model reads as many."""


def read_prompt(blocks: Iterable[JSONObject]) -> GivenPrompt:
    """Put the blocks of a prompt together.

    Raises:
        RpcError: a block is of a kind that is not taken, or there is none.
    """
    typed, attached = list[str](), list[str]()
    media: list[MediaBlock] = []
    for block in blocks:
        match block.get("type"):
            case "text":
                typed.append(text_param(block, "text"))
            case "resource_link":
                attached.append(_linked(block))
            case "image":
                media.append(_sound("image", block, text_param(block, "data")))
            case "audio":
                media.append(_sound("audio", block, text_param(block, "data")))
            case "resource":
                found = _embedded(block.get("resource"))
                if isinstance(found, str):
                    attached.append(found)
                else:
                    media.append(found)
            case _:
                raise refused(
                    "prompt", "blocks of text, image, audio, resource_link or resource"
                )
    if not typed and not attached and not media:
        raise refused("prompt", "at least one block")
    # One text may be sent in pieces, with a link in its middle.
    words = "".join(typed)
    text = "\n\n".join(part for part in (words, *attached) if part)
    if len(text) > _MAX_LENGTH:
        # as of what is piped into a command
        raise RpcError(INVALID_PARAMS, "the prompt has more than 8 MB; attach less")
    return GivenPrompt(text, words, tuple(media))


def _sound(kind: str, given: Mapping[str, JSONValue], data: str) -> MediaBlock:
    """Make a block of data in base64, whose kind the data decide.

    Raises:
        RpcError: they are not of the kind.
    """
    source: JSONObject = {"type": "base64", "data": data}
    uri = given.get("uri")
    if isinstance(uri, str) and (name := uri.rpartition("/")[2][:200]):
        source["name"] = name
    sound = sound_media(_BLOCKS[kind](source=source))
    if isinstance(sound, TextBlock):
        raise RpcError(INVALID_PARAMS, f"prompt: {sound.text.strip('[]')}")
    return sound


def _linked(block: Mapping[str, JSONValue]) -> str:
    return f"Attached: {text_param(block, 'uri')}"


def _embedded(resource: JSONValue) -> str | MediaBlock:
    if isinstance(resource, dict) and isinstance(blob := resource.get("blob"), str):
        kind = kind_of(text_param(resource, "mimeType"))
        return _sound(kind if kind in _BLOCKS else "document", resource, blob)
    if not isinstance(resource, dict) or not isinstance(resource.get("text"), str):
        raise refused("prompt.resource", "a resource with a uri and a text or a blob")
    uri, text = text_param(resource, "uri"), resource["text"]
    return f"Attached: {uri}\n\n{text}"
