"""The vendor of the suite of all providers."""

from __future__ import annotations

from pathlib import Path

import httpx2
import pytest

from amplifier.testing.transport import HttpAnswer, json_answer
from amplifier.testing.vendors import answer_by_model, cases_by_model


def asked(model: str) -> httpx2.Request:
    return httpx2.Request("POST", "http://vendor.test/answers", json={"model": model})


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        pytest.param(
            asked("talks"), HttpAnswer(parts=(b"data: Hello.\n\n",)), id="stream"
        ),
        pytest.param(asked("waits"), HttpAnswer(parts=(600.0,)), id="silence"),
        pytest.param(asked("refuses"), HttpAnswer(status=401), id="refusal"),
        pytest.param(
            httpx2.Request("GET", "http://vendor.test/models"),
            json_answer({"data": []}),
            id="models",
        ),
    ],
)
def test_the_model_says_what_is_answered(
    tmp_path: Path, request_: httpx2.Request, expected: HttpAnswer
) -> None:
    file = tmp_path / "text.sse"
    file.write_bytes(b"data: Hello.\n\n")

    assert answer_by_model({"talks": file}, {"data": []})(request_) == expected


def test_each_case_asks_for_the_model_of_its_name() -> None:
    samples = cases_by_model(tool="add", bad_config={"size": -1})

    assert samples.talks.request == {"model": "talks"}
    assert samples.is_cut is not None
    assert samples.is_cut.request == {
        "model": "is-cut",
        "tools": [{"name": "add", "parameters": {"type": "object"}}],
    }
    assert samples.bad_config == {"size": -1}
