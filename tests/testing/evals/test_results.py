"""The file of results: whatever a result holds comes back, and damage costs one line."""

from __future__ import annotations

import json
import stat
import tempfile
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amplifier.testing.evals.results import NamedScore, ResultFile, TrialResult
from amplifier_sdk.chat import Usage
from amplifier_sdk.jsontypes import JSONValue

texts = st.text(max_size=8)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3)
    ),
    max_leaves=6,
)
usages = st.none() | st.builds(
    Usage,
    input_tokens=st.integers(0),
    output_tokens=st.integers(0),
    total_tokens=st.integers(0),
    cost_usd=st.none() | st.decimals(0, 1000, places=6),
)
scores = st.builds(
    NamedScore,
    name=texts,
    value=st.floats(0, 1),
    passed=st.booleans(),
    reason=texts,
)
results = st.builds(
    TrialResult,
    key=texts,
    case=texts,
    number=st.integers(1),
    inputs=json_values,
    expected=json_values,
    output=json_values,
    scores=st.lists(scores, max_size=2).map(tuple),
    error=texts,
    duration=st.floats(0, 1e9),
    usage=usages,
    scoring_usage=usages,
    tool_calls=st.lists(texts, max_size=2).map(tuple),
)


def result(key: str, output: JSONValue = None) -> TrialResult:
    return TrialResult(key=key, case="a", number=1, output=output, duration=1.0)


def write(path: Path, *written: TrialResult) -> None:
    with ResultFile.open(path) as file:
        for each in written:
            file.append(each)


@settings(deadline=None, max_examples=50)
@given(st.lists(results, max_size=4, unique_by=lambda each: each.key))
def test_what_is_appended_comes_back(written: list[TrialResult]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "results.jsonl"
        write(path, *written)
        with ResultFile.open(path) as file:
            assert file.results == {each.key: each for each in written}
            assert file.damaged == 0


@settings(deadline=None, max_examples=50)
@given(
    st.data(),
    st.lists(results, min_size=1, max_size=3, unique_by=lambda each: each.key),
)
def test_a_file_cut_anywhere_loses_one_result(
    data: st.DataObject, written: list[TrialResult]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "results.jsonl"
        write(path, *written)
        whole = path.read_bytes()
        cut = data.draw(st.integers(0, len(whole)))
        path.write_bytes(whole[:cut])

        write(path, result("the next"))

        complete = whole[:cut].count(b"\n")
        with ResultFile.open(path) as file:
            saved = [each.key for each in written][:complete]
            # the last line may lack nothing but its end
            if cut < len(whole) and whole[cut : cut + 1] == b"\n":
                saved.append(written[complete].key)
            assert set(file.results) == {*saved, "the next"}
            assert file.results["the next"] == result("the next")


def test_of_two_results_with_one_key_the_later_counts(tmp_path: Path) -> None:
    write(tmp_path / "results", result("a", 1), result("a", 2))

    with ResultFile.open(tmp_path / "results") as file:
        assert file.results["a"].output == 2


@pytest.mark.parametrize(
    "line",
    [b"{}", b"[]", b"\xff", b"\0\0\0", b'{"key": 3}', b"[" * 100_000],
)
def test_lines_that_are_no_results_are_counted(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "results"
    write(path, result("a"))
    path.write_bytes(line + b"\n\n" + path.read_bytes())

    with ResultFile.open(path) as file:
        assert (file.damaged, list(file.results)) == (1, ["a"])


def test_the_file_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "results"
    write(path, result("a"))

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert json.loads(path.read_text())["key"] == "a"


def test_two_runs_at_one_file_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "results"
    with ResultFile.open(path) as one, ResultFile.open(path) as other:
        one.append(result("a"))
        other.append(result("b"))
        one.append(result("c"))

    with ResultFile.open(path) as file:
        assert set(file.results) == {"a", "b", "c"}


def test_without_a_path_nothing_is_stored() -> None:
    with ResultFile.open(None) as file:
        file.append(result("a"))
        assert file.results == {}


def test_a_cost_stays_exact(tmp_path: Path) -> None:
    used = Usage(
        input_tokens=1, output_tokens=1, total_tokens=2, cost_usd=Decimal("0.1000")
    )
    write(
        tmp_path / "results",
        TrialResult(key="a", case="a", number=1, duration=0.0, usage=used),
    )

    with ResultFile.open(tmp_path / "results") as file:
        stored = file.results["a"].usage
    assert stored is not None
    assert str(stored.cost_usd) == "0.1000"
