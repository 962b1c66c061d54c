"""The suite's own report: what each provider did with the real server, on each backend."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

import pytest

__all__ = ["CASES", "rows", "write_table"]

CASES: Final[Mapping[str, str]] = {
    "test_a_question_is_answered": "a question is answered",
    "test_the_next_question_takes_the_history_along": "the history is read",
    "test_an_answer_that_reaches_its_limit_is_cut": "cut at the limit of tokens",
    "test_an_answer_has_the_form_that_a_schema_asks_for": "JSON by a schema",
    "test_an_agent_answers_with_a_value_by_the_schema": "a typed answer by the schema",
    "test_an_agent_answers_with_a_value_by_the_tool": "a typed answer by a forced tool",
    "test_the_first_delta_comes_early_and_leaving_ends_the_work": "first delta before the end; cancel",
    "test_a_tool_is_called_and_its_result_answers_the_question": "a tool is called and runs",
    "test_two_requests_are_answered_at_once": "two requests at once",
    "test_an_image_for_a_blind_model_is_refused_in_one_line": "the server refuses an image",
    "test_an_image_is_refused_unsent_where_the_model_is_known": "an image that is not sent",
    "test_an_image_becomes_a_text_where_that_is_permitted": "a text in place of an image",
    "too-long": "longer than the context",
    "wrong-key": "wrong key",
    "wrong-path": "wrong address",
    "nobody-there": "nobody listens",
}
"""What is tried, by the test's name, or by the id of its case where one test has several."""

_OUTCOMES: Final = {"passed": "yes", "failed": "NO", "error": "NO", "skipped": "-"}
_TEST: Final = re.compile(
    r"tests/integration/test_real_server\.py::(\w+)\[(asyncio|trio)-(.+)\]$"
)


def rows(reports: Iterable[tuple[str, str]]) -> list[list[str]]:
    """Return the table's rows, the head first.

    Args:
        reports: a test's id and its outcome; tests of other files are passed over.
    """
    seen: dict[tuple[str, str], str] = {}
    for node, outcome in reports:
        if match := _TEST.search(node):
            name, backend, rest = match.groups()
            case = next((id for id in CASES if rest.endswith(f"-{id}")), name)
            provider = rest.removesuffix(f"-{case}")
            seen[case, f"{provider} ({backend})"] = _OUTCOMES.get(outcome, outcome)
    columns = sorted({column for _, column in seen})
    found = [
        case for case in CASES if any((case, column) in seen for column in columns)
    ]
    body = [
        [CASES[case], *(seen.get((case, column), "") for column in columns)]
        for case in found
    ]
    return [["", *columns], *body] if body else []


def write_table(reporter: pytest.TerminalReporter) -> None:
    """Show the table, if the suite ran."""
    table = rows(
        (report.nodeid, outcome)
        for outcome in _OUTCOMES
        for report in reporter.getreports(outcome)
        if isinstance(report, pytest.TestReport)
        and (report.when == "call" or outcome != "passed")
    )
    if not table:
        return
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    reporter.section("providers and a real server")
    for row in table:
        reporter.write_line(
            "  ".join(
                cell.ljust(width) for cell, width in zip(row, widths, strict=True)
            ).rstrip()
        )
