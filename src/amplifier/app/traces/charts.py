"""Two small pictures of a trace as SVG: tokens of each call of a model, and what all of them cost together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from html import escape
from typing import Final

import attrs

from amplifier.app.text.figures import dollars, duration_text, short_number
from amplifier.app.traces.model import SessionTrace, TracedModelCall
from amplifier.app.traces.texts import words

__all__ = ["cost_chart", "token_chart"]

_WIDTH: Final = 560
_HEIGHT: Final = 150
_LEFT: Final = 48
_TOP: Final = 12
_BOTTOM: Final = 128
_BARS: Final = 140
"""Bars that a chart has room for; of more calls several share one, which shows the largest of them."""


def token_chart(trace: SessionTrace) -> str:
    """Draw what each call read and wrote, with the places where the conversation was shortened."""
    if not trace.calls:
        return ""
    groups = _grouped(trace.calls)
    largest = max([bar.read + bar.written for bar in groups]) or 1
    step = (_WIDTH - _LEFT) / len(groups)
    parts = [*_axis(largest, short_number), *_times(groups)]
    for number, bar in enumerate(groups):
        parts += _bar(bar, _LEFT + number * step, step, largest)
    for compaction in trace.compactions:
        x = _LEFT + (_WIDTH - _LEFT) * min(1.0, compaction.calls / len(trace.calls))
        parts.append(
            f'<g class="cut"><title>shortened: {escape(compaction.text)}</title>'
            f'<line x1="{x:.1f}" y1="{_TOP}" x2="{x:.1f}" y2="{_BOTTOM}"/>'
            f'<path d="M{x - 4:.1f} {_TOP - 6}h8l-4 6z"/></g>'
        )
    return _svg("Tokens of each call", parts)


def cost_chart(trace: SessionTrace) -> str:
    """Draw the cost so far, call by call; without known costs the tokens so far."""
    if not trace.calls:
        return ""
    has_cost = any(call.cost is not None for call in trace.calls)
    sums, total = [], Decimal(0)
    for call in trace.calls:
        tokens = Decimal(call.input_tokens + call.output_tokens)
        total += (call.cost or Decimal(0)) if has_cost else tokens
        sums.append(total)
    largest = float(sums[-1]) or 1.0
    chosen = sorted(
        {round(number * (len(sums) - 1) / _BARS) for number in range(_BARS + 1)}
    )
    step = (_WIDTH - _LEFT) / len(sums)
    points = [f"{_LEFT} {_BOTTOM}"]
    for number in chosen:
        y = _height(float(sums[number]), largest)
        points += [
            f"{_LEFT + number * step:.1f} {y:.1f}",
            f"{_LEFT + (number + 1) * step:.1f} {y:.1f}",
        ]
    line = "L".join(points)
    parts = [
        *_axis(
            largest,
            (lambda value: dollars(Decimal(str(value)))) if has_cost else short_number,
        ),
        *_times(_grouped(trace.calls)),
        f'<path class="area" d="M{line}L{_WIDTH} {_BOTTOM}z"/>',
        f'<path class="line" d="M{line}"/>',
    ]
    return _svg("Cost so far" if has_cost else "Tokens so far", parts)


@attrs.frozen
class _Group:
    """One bar: the largest of the calls that share it."""

    first: int
    last: int
    at: float
    model: str
    read: int
    cached: int
    written: int

    @property
    def title(self) -> str:
        which, cached = f"call {self.first}", ""
        if self.first != self.last:
            which = f"calls {self.first} to {self.last}, the largest"
        if self.cached:
            cached = f" ({self.cached:,} cached)"
        return f"{which}: {self.model}, {self.read:,}{cached} read, {self.written:,} written"


def _grouped(calls: Sequence[TracedModelCall]) -> list[_Group]:
    size = -(-len(calls) // _BARS)
    groups = []
    for first in range(0, len(calls), size):
        members = calls[first : first + size]
        # The largest, not the mean: a chart is read for the call that filled the
        # context.
        top = max(members, key=lambda call: call.input_tokens + call.output_tokens)
        groups.append(
            _Group(
                first + 1,
                first + len(members),
                members[0].at,
                words(top.model, 60),
                top.input_tokens,
                top.cached_tokens,
                top.output_tokens,
            )
        )
    return groups


def _height(value: float, largest: float) -> float:
    return _BOTTOM - (_BOTTOM - _TOP) * min(1.0, value / largest)


def _bar(bar: _Group, x: float, step: float, largest: float) -> Iterator[str]:
    """Draw the parts of a bar on one another: cached, read, written."""
    width = max(0.8, min(step * 0.78, 26.0))
    left = x + (step - width) / 2
    yield f'<g class="bar"><title>{escape(bar.title)}</title>'
    below = 0
    for name, value in (
        ("cached", bar.cached),
        ("read", bar.read - bar.cached),
        ("written", bar.written),
    ):
        if value > 0:
            top, foot = _height(below + value, largest), _height(below, largest)
            yield f'<rect class="{name}" x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{foot - top:.1f}"/>'
            below += value
    yield "</g>"


def _axis(largest: float, write: Callable[[float], str]) -> Iterator[str]:
    for share in (0.0, 0.5, 1.0):
        y = _height(share, 1.0)
        yield f'<line class="grid" x1="{_LEFT}" y1="{y:.1f}" x2="{_WIDTH}" y2="{y:.1f}"/>'
        yield f'<text class="tick" x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{write(largest * share)}</text>'


def _times(groups: Sequence[_Group]) -> Iterator[str]:
    """Write since the beginning when the first, the middle and the last call was answered."""
    step = (_WIDTH - _LEFT) / len(groups)
    for number, anchor in {
        0: "start",
        len(groups) // 2: "middle",
        len(groups) - 1: "end",
    }.items():
        x = _LEFT + (number + {"start": 0, "middle": 0.5, "end": 1}[anchor]) * step
        yield (
            f'<text class="tick" x="{x:.1f}" y="{_HEIGHT - 6}" text-anchor="{anchor}">'
            f"{escape(duration_text(groups[number].at))}</text>"
        )


def _svg(title: str, parts: Sequence[str]) -> str:
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(title)}">'
        + "".join(parts)
        + "</svg>"
    )
