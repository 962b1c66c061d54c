"""Cases from Python and from files."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from amplifier.testing.evals import EvalCase, load_cases
from amplifier_sdk.errors import ConfigError


@attrs.frozen
class Order:
    article: str
    number: int = 1


def test_a_case_is_named_after_the_beginning_of_its_inputs() -> None:
    assert str(EvalCase("What  is\n2 + 2?")) == "What is 2 + 2?"
    assert EvalCase("x" * 100).name == "x" * 59 + "…"
    assert EvalCase("x", name="short").name == "short"


def test_a_file_holds_cases(tmp_path: Path) -> None:
    path = tmp_path / "cases.yaml"
    path.write_text(
        "- inputs: What is 2 + 2?\n"
        "  expected: '4'\n"
        "- name: greeting\n"
        "  inputs: Hello.\n"
        "  metadata: {kind: talk}\n"
    )

    assert load_cases(path) == (
        EvalCase("What is 2 + 2?", "4"),
        EvalCase("Hello.", name="greeting", metadata={"kind": "talk"}),
    )


def test_a_file_holds_inputs_and_outputs_of_other_types(tmp_path: Path) -> None:
    path = tmp_path / "cases.json"
    path.write_text('[{"inputs": {"article": "tea"}, "expected": 3}]')

    assert load_cases(path, inputs=Order, expected=int) == (EvalCase(Order("tea"), 3),)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "expected an array, got null"),
        ("[]", "there is no case in it"),
        ("inputs: a", "expected an array, got an object"),
        ("- expected: a", r"\[0\]\.inputs: missing"),
        (
            "- inputs: a\n- inputs: 3",
            r"\[1\]\.inputs: expected a string, got an integer",
        ),
        (
            "- {inputs: a, expect: b}",
            r"\[0\]\.expect: unknown; did you mean 'expected'",
        ),
        ("- {inputs: a, name: 3}", r"\[0\]\.name: "),
        ("- {inputs: a, metadata: 3}", r"\[0\]\.metadata: expected an object"),
        ("- [", "line 2, column 1: "),
    ],
)
def test_a_file_that_holds_something_else_is_refused_with_the_place(
    tmp_path: Path, text: str, problem: str
) -> None:
    path = tmp_path / "cases.yaml"
    path.write_text(text)

    with pytest.raises(ConfigError, match=f"cases.yaml' has 1 problem:\n.*{problem}"):
        load_cases(path)
