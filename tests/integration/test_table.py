"""The report says of every provider, case and backend what came of it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.integration.table import CASES, rows

FILE: Final = "tests/integration/test_real_server.py"


def test_a_row_is_a_case_and_a_column_a_provider_on_a_backend() -> None:
    reports = [
        (f"{FILE}::test_a_question_is_answered[asyncio-openai]", "passed"),
        (f"{FILE}::test_a_question_is_answered[trio-chat-completions]", "failed"),
        (
            f"{FILE}::test_a_request_that_cannot_be_answered_is_a_precise_error[asyncio-openai-wrong-key]",
            "skipped",
        ),
        ("tests/kernel/test_hooks.py::test_something[asyncio-openai]", "passed"),
    ]

    assert rows(reports) == [
        ["", "chat-completions (trio)", "openai (asyncio)"],
        ["a question is answered", "NO", "yes"],
        ["wrong key", "", "-"],
    ]


def test_a_run_without_the_suite_has_no_table() -> None:
    assert (
        rows([("tests/kernel/test_hooks.py::test_something[asyncio]", "passed")]) == []
    )


def test_every_case_is_in_the_suite() -> None:
    text = Path(__file__).with_name("test_real_server.py").read_text(encoding="utf-8")

    assert [
        case
        for case in CASES
        if f"def {case}(" not in text and f'id="{case}"' not in text
    ] == []
    assert (
        text.count("async def test_")
        == sum(case.startswith("test_") for case in CASES) + 1
    )


def test_the_documentation_has_every_case_and_every_provider() -> None:
    page = Path(__file__).with_name("README.md").read_text(encoding="utf-8")
    table = [
        line.split("|")[1:-1] for line in page.splitlines() if line.startswith("|")
    ]
    suite = Path(__file__).with_name("test_real_server.py").read_text(encoding="utf-8")

    head, _, _, *cases = [[cell.strip() for cell in row] for row in table]
    assert [case for case, *_ in cases] == list(CASES.values())
    assert all(
        f'"{provider.removeprefix("provider-")}": Vendor(' in suite
        for provider in head[1:]
    )
    assert suite.count(": Vendor(") == len(head) - 1
