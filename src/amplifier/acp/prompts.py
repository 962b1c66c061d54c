"""What a person sends: text, files of their editor, and links."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import attrs

from amplifier.acp.params import refused, text_param
from amplifier_kit.rpc.frames import INVALID_PARAMS, RpcError
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = ["AcpPrompt", "read_prompt"]

_MAX_LENGTH: Final = 8_000_000
"""Characters; no model reads as many."""


@attrs.frozen(kw_only=True)
class AcpPrompt:
    """A prompt.

    Args:
        text: all of it.
        typed: what the person typed; only what stands there is followed where it mentions files.
    """

    text: str
    typed: str


def read_prompt(blocks: Iterable[JSONObject]) -> AcpPrompt:
    """Put the blocks of a prompt together.

    Raises:
        RpcError: a block is of a kind that is not taken, or there is none.
    """
    typed, attached = [], []
    for block in blocks:
        match block.get("type"):
            case "text":
                typed.append(text_param(block, "text"))
            case "resource_link":
                attached.append(_linked(block))
            case "resource":
                attached.append(_embedded(block.get("resource")))
            case _:
                raise refused("prompt", "blocks of text, resource_link or resource")
    if not typed and not attached:
        raise refused("prompt", "at least one block")
    # One text may be sent in pieces, with a link in its middle.
    words = "".join(typed)
    text = "\n\n".join(part for part in (words, *attached) if part)
    if len(text) > _MAX_LENGTH:
        # as of what is piped into a command
        raise RpcError(INVALID_PARAMS, "the prompt has more than 8 MB; attach less")
    return AcpPrompt(text=text, typed=words)


def _linked(block: Mapping[str, JSONValue]) -> str:
    return f"Attached: {text_param(block, 'uri')}"


def _embedded(resource: JSONValue) -> str:
    if not isinstance(resource, dict) or not isinstance(resource.get("text"), str):
        raise refused("prompt.resource", "a resource with a uri and a text")
    uri, text = text_param(resource, "uri"), resource["text"]
    return f"Attached: {uri}\n\n{text}"
