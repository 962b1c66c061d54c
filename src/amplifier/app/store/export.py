"""A stored session as one text: JSON that can be imported, Markdown and HTML for people."""

from __future__ import annotations

import html
import json
import re
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Literal, TypeAlias

import attrs

from amplifier.app.store.reader import StoredHistory, conversation, words_of
from amplifier.app.store.records import SessionRecord
from amplifier.app.text.context_blocks import fenced
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.messages import MessageDict

__all__ = ["FORMAT", "VERSION", "Form", "export", "portable"]

FORMAT: Final = "amplifier.session"
"""What an exported session says that it is."""

VERSION: Final = 1
"""The form of an exported session."""

Form: TypeAlias = Literal["json", "markdown", "html"]
_LEFT_OUT: Final = (
    "plan",
    "provider_preferences",
    "request",
    "has_composition",
    "is_renewed",
    "version",
)
_STYLE: Final = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:50rem;margin:2rem auto;padding:0 1rem;color:#222}"
    "section{border-left:4px solid #bbb;padding:.2rem 1rem;margin:1rem 0}section.user{border-color:#2b6cb0}"
    "section.assistant{border-color:#2f855a}h2{font-size:.9rem;margin:.3rem 0;color:#555}"
    "pre{white-space:pre-wrap;overflow-wrap:anywhere;font:inherit;margin:.3rem 0}"
    "section.tool pre{font:13px/1.4 ui-monospace,monospace}dt{color:#555}dd{margin:0 0 .4rem}"
    "@media(prefers-color-scheme:dark){body{background:#1a1a1a;color:#ddd}h2,dt{color:#aaa}}"
)


def export(
    record: SessionRecord,
    history: StoredHistory,
    form: Form,
    *,
    clean: Callable[[MessageDict], MessageDict] | None = None,
) -> str:
    """Write a session as one text that ends in a line end.

    JSON has the whole history; Markdown and HTML have what the person, the model and the tools said.

    Args:
        record: who it is.
        history: what was said in it.
        form: which of the three.
        clean: returns what is written in a message's place.
    """
    if clean is not None:
        # Both at once, as the two blocks of a message: what cleans takes messages alone.
        cleaned = clean({"content": [record.name or "", record.prompt]})["content"]
        name, prompt = cleaned if isinstance(cleaned, list) else ("", "")
        record = attrs.evolve(record, name=str(name) or None, prompt=str(prompt))
        lines = tuple(
            attrs.evolve(line, message=clean(line.message)) for line in history.lines
        )
        history = attrs.evolve(history, lines=lines)
    if form == "json":
        return json.dumps(portable(record, history), indent=1) + "\n"
    messages = conversation(history.messages)
    if form == "markdown":
        return _markdown(record, messages)
    return _html(record, messages)


def portable(record: SessionRecord, history: StoredHistory) -> JSONObject:
    """Return a session as JSON data that can be imported; what a child was made of is left out."""
    about: JSONObject = {
        key: value for key, value in record.to_dict().items() if key not in _LEFT_OUT
    }
    said: list[JSONValue] = [
        {"turn": line.turn, "message": line.message} for line in history.lines
    ]
    return {"format": FORMAT, "version": VERSION, "session": about, "messages": said}


def _facts(record: SessionRecord) -> Iterator[tuple[str, str]]:
    yield "Session", record.session_id
    yield "Created", time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(record.created))
    yield "Turns", str(record.turn_count)
    for label, value in (
        ("Profile", record.profile),
        ("Model", record.model),
        ("Agent", record.agent_name),
        ("Tags", ", ".join(record.tags)),
        ("Cost", None if record.cost_usd is None else f"US$ {record.cost_usd}"),
    ):
        if value:
            yield label, value


def _markdown(record: SessionRecord, messages: Sequence[MessageDict]) -> str:
    parts = [
        f"# {_title(record)}",
        "\n".join(f"- {label}: {_escape(value)}" for label, value in _facts(record)),
    ]
    for message in messages:
        who, text = _who(message), words_of(message).strip("\n")
        parts += [
            f"## {_escape(who)}",
            fenced(text) if message.get("role") == "tool" else text or "(nothing)",
        ]
    return _storable("\n\n".join(parts) + "\n")


def _html(record: SessionRecord, messages: Sequence[MessageDict]) -> str:
    title = html.escape(_title(record))
    facts = "".join(
        f"<dt>{html.escape(label)}</dt><dd>{html.escape(value)}</dd>"
        for label, value in _facts(record)
    )
    said = "\n".join(
        f'<section class="{html.escape(str(message.get("role")))}"><h2>{html.escape(_who(message))}</h2>'
        f"<pre>{html.escape(words_of(message))}</pre></section>"
        for message in messages
    )
    page = (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        f'<meta name="viewport" content="width=device-width"><title>{title}</title>\n<style>{_STYLE}</style></head>\n'
        f"<body><h1>{title}</h1><dl>{facts}</dl>\n{said}\n</body></html>\n"
    )
    return _storable(page)


def _storable(text: str) -> str:
    """Put a mark in the place of halves of characters, which no file takes."""
    return text.encode("utf-8", "replace").decode()


def _title(record: SessionRecord) -> str:
    return " ".join((record.name or record.prompt or record.session_id).split())


def _who(message: MessageDict) -> str:
    role, name = str(message.get("role")), message.get("name")
    if role == "tool":
        return f"Tool {name or ''}".rstrip()
    return {"user": "Person", "assistant": "Agent"}.get(role, role)


def _escape(text: str) -> str:
    """Keep a text that stands in Markdown from meaning anything there."""
    return re.sub(r"([\\`*_{}\[\]<>#|!])", r"\\\1", " ".join(text.split()))
