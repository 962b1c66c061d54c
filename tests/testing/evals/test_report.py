"""Reports and their comparison."""

from __future__ import annotations

import json
from decimal import Decimal
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amplifier.testing.evals import (
    EvalReport,
    NamedScore,
    TrialResult,
    compare,
    render_page,
)
from amplifier_sdk.chat import Usage
from amplifier_sdk.errors import ConfigError

USAGE = Usage(input_tokens=3, output_tokens=2, total_tokens=5, cost_usd=Decimal("0.01"))


def trial(
    case: str, *, passed: bool, seconds: float = 1.0, **fields: object
) -> TrialResult:
    score = NamedScore(name="exact", value=float(passed), passed=passed, reason="off")
    given: dict[str, object] = {"scores": (score,), "usage": USAGE, **fields}
    return TrialResult(key="k", case=case, number=1, duration=seconds, **given)  # type: ignore[arg-type]  # as the tests give them


def report(*results: TrialResult) -> EvalReport:
    return EvalReport(name="first", results=results)


def test_a_table_shows_cases_and_means() -> None:
    shown = report(
        trial("one", passed=True),
        trial("two\x1b[2J", passed=False, seconds=3.0),
        trial("one", passed=True, error="ValueError: no\nmore", scores=()),
    )

    assert shown.table().splitlines() == [
        "case        passed  95 %             why not",
        "----------  ------  ---------------  -------------------",
        "one         1/2     9.5 % to 90.5 %  ValueError: no more",
        "two\\x1b[2J  0/1     0.0 % to 79.3 %  exact: off",
        "all         1/3     6.1 % to 79.2 %  33.3 %",
        "",
        "mean of  value  95 %             trials",
        "-------  -----  ---------------  ------",
        "exact    0.5    -5.853 to 6.853  2",
        "seconds  1.667  -1.202 to 4.535  3",
        "dollars  0.01   0.01 to 0.01     3",
        "tokens   5      5 to 5           3",
    ]


def test_a_report_of_nothing_passes_nothing() -> None:
    empty = report()

    assert (empty.pass_rate, empty.pass_interval) == (0, None)
    assert empty.table().splitlines()[-1].split() == [
        "all",
        "0/0",
        "unknown",
        "0.0",
        "%",
    ]


def test_a_report_is_saved_and_loaded(tmp_path: Path) -> None:
    saved = report(trial("one", passed=True, output={"a": [1.5, None]}))

    saved.save(tmp_path / "report.json")

    assert EvalReport.load(tmp_path / "report.json") == saved


@pytest.mark.parametrize("text", ["", "[]", '{"name": 3, "results": []}'])
def test_a_file_that_is_no_report_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "report.json"
    path.write_text(text)

    with pytest.raises(
        ConfigError, match=r"report\.json' has 1 problem:\n  it is no report"
    ):
        EvalReport.load(path)


class Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


def read_page(page: str) -> Elements:
    elements = Elements()
    elements.feed(page)
    return elements


PLAIN = read_page(
    render_page(report(trial("a", passed=True), trial("b", passed=False, error="e")))
)
HOSTILE = "<script src=//x>&\"'\ud800</pre>"


def test_a_page_asks_no_host_and_runs_nothing() -> None:
    assert PLAIN.names.isdisjoint({"script", "link", "img", "iframe", "object"})
    assert PLAIN.attributes.isdisjoint({"src", "href", "style", "onload", "onclick"})


@given(st.text(max_size=20) | st.just(HOSTILE))
def test_no_text_of_a_run_becomes_part_of_a_page(text: str) -> None:
    score = NamedScore(name=text, value=0.0, passed=False, reason=text)
    hostile = EvalReport(
        name=text,
        results=(
            TrialResult(
                key="k",
                case=text,
                number=1,
                duration=0.0,
                inputs=text,
                expected={text: [text]},
                output=[text],
                scores=(score,),
                error=text,
            ),
        ),
    )

    shown = render_page(hostile)
    elements = read_page(shown)
    assert elements.names <= PLAIN.names
    assert elements.attributes <= PLAIN.attributes
    assert shown.encode()


# -- comparisons


def runs(passed: int, total: int, case: str = "one", **fields: object) -> EvalReport:
    return report(
        *(trial(case, passed=number < passed, **fields) for number in range(total))  # type: ignore[arg-type]  # as above
    )


@pytest.mark.parametrize(
    ("old", "new", "verdict"),
    [(2, 19, "better"), (19, 2, "worse"), (9, 11, "unclear"), (20, 20, "unclear")],
)
def test_a_change_of_the_rate_counts_where_chance_does_not_explain_it(
    old: int, new: int, verdict: str
) -> None:
    found = compare(runs(old, 20), runs(new, 20))

    assert found.pass_rate.verdict == verdict
    assert found.better == (("one",) if new > old else ())
    assert found.worse == (("one",) if new < old else ())


def test_less_time_is_better_and_is_compared_case_by_case() -> None:
    def timed(factor: float) -> EvalReport:
        return report(
            *(
                trial(f"case {number}", passed=True, seconds=number * factor)
                for number in range(1, 9)
            )
        )

    (seconds,) = [c for c in compare(timed(1), timed(0.9)).means if c.name == "seconds"]

    assert seconds.verdict == "better"
    (seconds,) = [c for c in compare(timed(0.9), timed(1)).means if c.name == "seconds"]
    assert seconds.verdict == "worse"


def test_only_what_both_runs_have_is_compared() -> None:
    old = report(trial("one", passed=True), trial("gone", passed=False))
    new = report(trial("one", passed=True, usage=None), trial("new", passed=False))

    found = compare(old, new)

    assert (found.added, found.removed) == (("new",), ("gone",))
    assert found.pass_rate.before == found.pass_rate.after == 1
    assert [change.name for change in found.means] == ["score exact", "seconds"]
    assert found.means[0].interval is None
    assert found.means[0].verdict == "unclear"
    assert found.table().splitlines()[-2:] == ["added: new", "removed: gone"]


def test_runs_without_a_common_case_are_refused() -> None:
    with pytest.raises(ConfigError, match="the two runs have none in common"):
        compare(runs(1, 1), runs(1, 1, "two"))


def test_one_name_for_two_questions_is_refused() -> None:
    with pytest.raises(ConfigError, match="one: asks something else"):
        compare(runs(1, 1, inputs="a"), runs(1, 1, inputs="b"))


def test_a_saved_report_is_plain_json(tmp_path: Path) -> None:
    runs(1, 1).save(tmp_path / "report.json")

    assert json.loads((tmp_path / "report.json").read_text())["name"] == "first"
