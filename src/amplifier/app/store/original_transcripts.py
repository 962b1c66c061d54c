"""A transcript of the original, `transcript.jsonl`, as `session export` would have written it.

Beside it lies `metadata.json`, of which only the id, the name and the time are read. What the original stores there of
what a session was made of decides nothing here.
"""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Final
from uuid import uuid4

from amplifier.app.store import export
from amplifier_sdk.errors import ConfigError, Problem
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = ["METADATA", "is_transcript", "read_transcript"]

METADATA: Final = "metadata.json"


def is_transcript(path: Path) -> bool:
    """Whether a file is named as the original's transcripts are."""
    return path.suffix == ".jsonl"


def read_transcript(path: Path) -> JSONObject:
    """Return what an export of the session would hold: each message of a person begins a turn.

    Raises:
        ConfigError: a line is no message.
        OSError: the file cannot be read.
    """
    messages: list[JSONValue] = []
    turn = 0
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        if not line.strip():
            continue
        message = _message(line, path, number)
        if message.get("role") == "user" or turn == 0:
            turn += 1
        messages.append({"turn": f"turn-{turn}", "message": message})
    return {
        "format": export.FORMAT,
        "version": export.VERSION,
        "session": _about(path, messages),
        "messages": messages,
    }


def _message(line: bytes, path: Path, number: int) -> JSONObject:
    try:
        message: JSONValue = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _problem(path, number, f"it is no JSON: {error}") from error
    if not isinstance(message, dict):
        raise _problem(path, number, "a message is an object")
    return message


def _problem(path: Path, number: int, message: str) -> ConfigError:
    return ConfigError(
        [Problem(f"line {number}", message)], subject=f"file {str(path)!r}"
    )


def _about(path: Path, messages: list[JSONValue]) -> JSONObject:
    """Return what is known of the session, of which nothing decides what it is made of."""
    known = _metadata(path.with_name(METADATA))
    about: JSONObject = {"session_id": str(uuid4()), "prompt": _prompt(messages)}
    for key in ("session_id", "name"):
        value = known.get(key)
        if isinstance(value, str) and value:
            about[key] = value
    created = known.get("created")
    if isinstance(created, str):
        # else the time of the import stands in its place
        with suppress(ValueError):
            about["created"] = datetime.fromisoformat(created).timestamp()
    return about


def _metadata(path: Path) -> JSONObject:
    try:
        known: JSONValue = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def _prompt(messages: list[JSONValue]) -> str:
    for item in messages:
        match item:
            case {"message": {"role": "user", "content": str() as text}}:
                return text[:120]
            case _:
                continue
    return ""
