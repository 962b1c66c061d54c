"""Finding sessions by a text. It runs within a transaction.

The server chooses the sessions in which the longest plain word of the text stands anywhere; what they say is then
read as a person would read it, without the names and escapes of JSON.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from amplifier_kit.files.appendlog import decode_line
from amplifier_module_store_postgres._database import Connection
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["search"]

_CANDIDATES: Final = """
SELECT session_id, facts FROM amplifier.sessions AS session
WHERE namespace = %(namespace)s AND record IS NOT NULL AND (
    facts::text ILIKE %(pattern)s OR EXISTS (
        SELECT FROM amplifier.entries AS entry
        WHERE entry.namespace = session.namespace
            AND entry.session_id = session.session_id
            AND entry.log = 'transcript' AND entry.line ILIKE %(pattern)s
    )
)
ORDER BY latest DESC, session_id
"""
_LINES: Final = """
SELECT line FROM amplifier.entries
WHERE namespace = %s AND session_id = %s AND log = 'transcript' AND line ILIKE %s
ORDER BY number
"""
# Letters whose case the server and Python fold alike, whatever the locale, and none of an escape.
_WORD: Final = re.compile(r"[a-z0-9]+", re.ASCII)
_SHOWN: Final = ("text", "thinking", "output", "name")


def search(
    connection: Connection, namespace: str, text: str, limit: int
) -> tuple[str, ...]:
    """Return the ids of the sessions in which a text stands, the latest first."""
    wanted = text.casefold()
    if not wanted:
        return ()
    pattern = f"%{max(_WORD.findall(wanted), key=len, default='')}%"
    values = {"namespace": namespace, "pattern": pattern}
    found: list[str] = []
    for session_id, facts in connection.execute(_CANDIDATES, values).fetchall():
        if len(found) == limit:
            break
        if _is_in_facts(facts, wanted):
            found.append(session_id)
            continue
        lines = connection.execute(_LINES, (namespace, session_id, pattern))
        if any(wanted in each.casefold() for (line,) in lines for each in _said(line)):
            found.append(session_id)
    return tuple(found)


def _is_in_facts(facts: Mapping[str, JSONValue], wanted: str) -> bool:
    if str(facts["session_id"]).casefold().startswith(wanted):
        return True
    tags = facts["tags"]
    texts = [facts["name"], facts["prompt"], *(tags if isinstance(tags, list) else ())]
    return any(wanted in str(text).casefold() for text in texts)


def _said(line: str) -> Iterator[str]:
    """Yield the texts of the message in a line."""
    data = decode_line(line.encode()).data
    message = data.get("message") if isinstance(data, dict) else None
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, str):
        yield content
    elif isinstance(content, Sequence):
        for block in content:
            yield from _texts(block)


def _texts(block: JSONValue) -> Iterator[str]:
    """Yield what a block says: its text, its result, its call with all the arguments."""
    if not isinstance(block, dict):
        return
    for name in _SHOWN:
        text = block.get(name)
        if isinstance(text, str):
            yield text
    waiting = [block.get("input")]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
