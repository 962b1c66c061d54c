"""The page itself: one HTML file with its style, its script and its data, which asks no host for anything.

The policy in the page allows the one script and the one style that stand in it, known by
their digests, and nothing else. The data are JSON in which no character could end their element; the script writes
them as text.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Final

import attrs

from amplifier.app.logs.library import SessionLogFiles
from amplifier.app.logs.merge import Logs
from amplifier.app.logs.selection import LineFilter
from amplifier.app.text.figures import dollars, duration_text, short_number
from amplifier.app.traces.builder import build_trace
from amplifier.app.traces.charts import cost_chart, token_chart
from amplifier.app.traces.model import Row, SessionTrace
from amplifier_kit.files.atomic import write_private
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = ["PAGE_FILE", "page_data", "read_trace", "render_page", "write_page"]


PAGE_FILE: Final = "trace.html"
"""The name of a session's page in its folder."""


def render_page(trace: SessionTrace) -> str:
    """Write a trace as a page; it is ASCII but for the words of the page itself."""
    style, script = _part("page.css"), _part("page.js")
    policy = (
        f"default-src 'none'; script-src 'sha256-{_digest(script)}'; style-src 'sha256-{_digest(style)}';"
        " base-uri 'none'; form-action 'none'"
    )
    places = {
        "policy": policy,
        "title": escape(_plain(trace.title or trace.session_id)),
        "session": escape(_plain(trace.session_id)),
        "subtitle": escape(_plain(_subtitle(trace))),
        "figures": "".join(_figures(trace)),
        "charts": _charts(trace),
        "style": style,
        "script": script,
        "data": _data(page_data(trace)),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda found: places[found[1]], _part("page.html"))


def page_data(trace: SessionTrace) -> JSONObject:
    """Return what the script of the page shows: rows and messages, each a list of its values."""
    said: list[JSONValue] = [[said.role, said.row, said.section] for said in trace.said]
    return {"rows": [_row(row) for row in trace.rows], "said": said}


def _row(row: Row) -> JSONValue:
    sections: list[JSONValue] = [
        [section.title, section.text] for section in row.sections
    ]
    return [
        row.kind,
        row.depth,
        row.name,
        row.hint,
        round(row.start * 1000, 1),
        round(row.end * 1000, 1),
        row.status,
        row.input_tokens,
        row.output_tokens,
        None if row.cost is None else dollars(row.cost),
        sections,
    ]


def _part(name: str) -> str:
    return files("amplifier.app.traces").joinpath(name).read_text("utf-8")


def _digest(text: str) -> str:
    return b64encode(sha256(text.encode()).digest()).decode()


def _data(value: JSONValue) -> str:
    """Write JSON that stands in HTML: nothing in it can begin or end an element."""
    text = json.dumps(value, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _plain(text: str) -> str:
    """Leave out what no page may hold: halves of surrogate pairs."""
    return re.sub("[\ud800-\udfff]", "\ufffd", text)


def _subtitle(trace: SessionTrace) -> str:
    parts = [f"{trace.records:,} records"]
    if trace.began:
        parts.insert(0, f"began {trace.began[:19].replace('T', ' ')} UTC")
    if trace.sessions > 1:
        parts.append(f"{trace.sessions} sessions")
    if trace.damaged:
        parts.append(f"{trace.damaged:,} damaged lines passed over")
    return " · ".join(parts)


def _figures(trace: SessionTrace) -> list[str]:
    totals, cost = trace.totals, "unknown"
    if totals.cost is not None:
        cost = dollars(totals.cost)
    shown = [
        ("Turns", f"{totals.turns:,}", ""),
        ("Model calls", f"{totals.calls:,}", ""),
        ("Tool calls", f"{totals.tools:,}", ""),
        ("Input tokens", short_number(totals.input_tokens), ""),
        ("Output tokens", short_number(totals.output_tokens), ""),
        ("Cost", cost, ""),
        ("Duration", duration_text(totals.seconds), ""),
        ("Hook decisions", f"{totals.decisions:,}", ""),
        ("Problems", f"{totals.problems:,}", " bad" if totals.problems else ""),
    ]
    return [
        f'<div class="figure{kind}"><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>'
        for name, value, kind in shown
    ]


def _charts(trace: SessionTrace) -> str:
    if not trace.calls:
        return ""
    second = "Tokens so far" if trace.totals.cost is None else "Cost so far"
    kinds = {"cached": "cached", "read": "read", "written": "written"}
    if trace.compactions:
        kinds["cut"] = "shortened"
    legend = "".join(
        f'<span class="key {kind}">{text}</span>' for kind, text in kinds.items()
    )
    return (
        f"<figure><figcaption>Tokens of each call {legend}</figcaption>{token_chart(trace)}</figure>"
        f"<figure><figcaption>{second}</figcaption>{cost_chart(trace)}</figure>"
    )


def read_trace(logs: Sequence[SessionLogFiles]) -> SessionTrace:
    """Read the logs of a session, which is the first, and of those it made.

    Raises:
        OSError: one of them cannot be read.
    """
    with Logs.take([log.path for log in logs]) as taken:
        trace = build_trace(taken.select(LineFilter()), logs[0].session_id)
        taken.count_torn()
        return attrs.evolve(trace, damaged=taken.damaged)


def write_page(trace: SessionTrace, path: Path) -> None:
    """Write the page of a trace, in place of an earlier one; for the person alone.

    Raises:
        OSError: the system refuses.
    """
    write_private(path, render_page(trace).encode())
