"""Parameters of requests, read one by one: unknown ones are ignored, wrong ones are named."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from amplifier_kit.rpc.frames import INVALID_PARAMS, RpcError
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = ["folder_param", "objects_param", "optional_text", "refused", "text_param"]


def refused(key: str, expected: str) -> RpcError:
    """Make the error for a parameter that is not as it must be."""
    return RpcError(INVALID_PARAMS, f"{key}: expected {expected}")


def text_param(params: Mapping[str, JSONValue], key: str) -> str:
    """Return a text.

    Raises:
        RpcError: there is none.
    """
    value = params.get(key)
    if not isinstance(value, str) or not value:
        raise refused(key, "a text")
    return value


def optional_text(params: Mapping[str, JSONValue], key: str) -> str | None:
    """Return a text, or `None` where there is none.

    Raises:
        RpcError: it is no text.
    """
    if params.get(key) is None:
        return None
    return text_param(params, key)


def objects_param(params: Mapping[str, JSONValue], key: str) -> list[JSONObject]:
    """Return a list of objects; an absent one is empty.

    Raises:
        RpcError: it is none.
    """
    value = params.get(key)
    if value is None:
        return []
    if not isinstance(value, list):
        raise refused(key, "a list of objects")
    objects = [each for each in value if isinstance(each, dict)]
    if len(objects) != len(value):
        raise refused(key, "a list of objects")
    return objects


def folder_param(params: Mapping[str, JSONValue], key: str) -> Path:
    """Return an absolute folder.

    Raises:
        RpcError: it is none.
    """
    text = text_param(params, key)
    try:
        is_folder = os.path.isabs(text) and os.path.isdir(text)
    except ValueError:  # a NUL, or half a surrogate pair
        is_folder = False
    if not is_folder:
        raise refused(key, "the absolute path of a folder")
    return Path(text)
