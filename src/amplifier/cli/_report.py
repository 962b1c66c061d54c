"""The report of a validation for people: what is wrong, where, and what helps; what passed is counted."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib.util import find_spec
from typing import Final

import attrs

from amplifier.cli._terminal import say, visible
from amplifier.validation.report import CheckResult, Report, Status

__all__ = ["write_report"]

_STYLES: Final[dict[Status, str]] = {
    "passed": "green",
    "warning": "yellow",
    "error": "bold red",
    "skipped": "dim",
}
_NOUNS: Final[dict[Status, tuple[str, str]]] = {
    "error": ("error", "errors"),
    "warning": ("warning", "warnings"),
    "passed": ("passed", "passed"),
    "skipped": ("skipped", "skipped"),
}


@attrs.frozen
class _Line:
    """A line of text, how far it stands in, and how a terminal shows it."""

    text: str
    indent: int = 0
    style: str = ""


def write_report(report: Report, *, verbose: bool = False) -> None:
    """Write a report to standard output: with colours and wrapped on a terminal where rich is installed, else plain.

    Args:
        report: what was found.
        verbose: show what passed, and which behaviours a module has no part in, as well.
    """
    lines = list(_lines(report, verbose=verbose))
    if sys.stdout.isatty() and find_spec("rich") is not None:
        _write_rich(lines)
        return
    for line in lines:
        say(" " * line.indent + line.text)


def _lines(report: Report, *, verbose: bool) -> Iterator[_Line]:
    yield from _group(
        report.distribution or report.path, report.results, verbose=verbose
    )
    for module in report.modules:
        yield from _group(
            f"{module.id} ({module.type or 'type unknown'})",
            module.results,
            verbose=verbose,
        )
    style = _STYLES["passed" if report.passed else "error"]
    yield _Line(
        f"{'valid' if report.passed else 'not valid'}: {_counts(report.all_results)}",
        style=style,
    )


def _group(
    title: str, results: Sequence[CheckResult], *, verbose: bool
) -> Iterator[_Line]:
    yield _Line(visible(title), style="bold")
    shown = [result for result in results if verbose or _is_news(result)]
    for result, backends in _together(shown):
        yield from _result(result, backends)
    if not shown:
        yield _Line(_counts(results), 2, _STYLES["passed"])
    yield _Line("")


def _result(result: CheckResult, backends: Sequence[str]) -> Iterator[_Line]:
    if backends:
        where = f" on {' and '.join(backends)}"
    else:
        where = ""
    yield _Line(
        visible(f"{result.status}  {result.check}{where}"), 2, _STYLES[result.status]
    )
    yield _Line(visible(result.message), 4)
    if result.place is not None:
        yield _Line(visible(f"at {result.place}"), 4, "dim")
    if result.fix is not None:
        yield _Line(visible(f"fix: {result.fix}"), 4)


def _is_news(result: CheckResult) -> bool:
    return result.status in ("error", "warning") or (
        result.status == "skipped" and result.backend is None
    )


def _together(results: Iterable[CheckResult]) -> list[tuple[CheckResult, list[str]]]:
    """Bring together what was found alike on several event loops."""
    found: dict[CheckResult, list[str]] = {}
    for result in results:
        backends = found.setdefault(attrs.evolve(result, backend=None), [])
        if result.backend is not None:
            backends.append(result.backend)
    return list(found.items())


def _counts(results: Sequence[CheckResult]) -> str:
    """Count the results of each status, such as `2 errors, 40 passed`."""
    numbers = {
        status: sum(result.status == status for result in results) for status in _NOUNS
    }
    return ", ".join(
        f"{number} {_NOUNS[status][number != 1]}"
        for status, number in numbers.items()
        if number
    )


def _write_rich(lines: Iterable[_Line]) -> None:
    from rich.console import Console  # an extra, and needed at a terminal alone
    from rich.padding import Padding
    from rich.text import Text

    console = Console(highlight=False)
    for line in lines:
        console.print(
            Padding(
                Text(line.text, style=line.style), (0, 0, 0, line.indent), expand=False
            )
        )
