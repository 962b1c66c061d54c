"""The report as one HTML page: no script, no host, every text escaped."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from hashlib import sha256
from html import escape
from typing import Final

from amplifier.testing.evals.report import CaseSummary, EvalReport
from amplifier.testing.evals.results import TrialResult
from amplifier.testing.evals.tables import percent, percents, range_text
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["render_page"]

_STYLE: Final = """
:root{color-scheme:light dark}
body{font:15px/1.5 system-ui,sans-serif;max-width:64rem;margin:2rem auto;padding:0 1rem}
table{border-collapse:collapse;margin:1rem 0;width:100%}
th,td{text-align:left;padding:.3rem .6rem;border-bottom:1px solid #8884;vertical-align:top}
pre{white-space:pre-wrap;overflow-wrap:anywhere;margin:0}
summary{cursor:pointer}.failed{color:#c22}.passed{color:#282}
"""


def render_page(report: EvalReport) -> str:
    """Write a report as one HTML page, which asks no host for anything and runs no script."""
    digest = b64encode(sha256(_STYLE.encode()).digest()).decode()
    # an answer is foreign text: even if escaping failed, the policy lets nothing run or load
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    means = "".join(
        _row(
            mean.name, f"{mean.value:.4g}", range_text(mean.interval), str(mean.trials)
        )
        for mean in (*report.scores, *report.measures)
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        f"<title>{_text(report.name)}</title><style>{_STYLE}</style></head><body>"
        f"<h1>{_text(report.name)}</h1>"
        f"<p>{report.passed} of {len(report.results)} trials passed: {percent(report.pass_rate)}"
        f" (95 % confidence: {percents(report.pass_interval)}).</p>"
        f"<table><tr><th>Mean of<th>Value<th>95 %<th>Trials</tr>{means}</table>"
        f"<h2>Cases</h2>{''.join(map(_case, report.cases))}</body></html>\n"
    )


def _case(case: CaseSummary) -> str:
    kind = "passed" if case.passed == len(case.results) else "failed"
    trials = "".join(map(_trial, case.results))
    return (
        f'<details><summary class="{kind}">{_text(case.name)}: {case.passed}/{len(case.results)}'
        f" ({percents(case.pass_interval)})</summary>"
        f"<p>Inputs</p><pre>{_json(case.results[0].inputs)}</pre>"
        f"<p>Expected</p><pre>{_json(case.results[0].expected)}</pre>"
        f"<table><tr><th>Trial<th>Output<th>Scores<th>Seconds</tr>{trials}</table></details>"
    )


def _trial(result: TrialResult) -> str:
    said = [f"{score.name} {score.value:.4g} {score.reason}" for score in result.scores]
    if result.error:
        said.append(result.error)
    scores = "<br>".join(map(_text, said))
    kind = "passed" if result.passed else "failed"
    return (
        f'<tr><td class="{kind}">{result.number} {kind}<td><pre>{_json(result.output)}</pre>'
        f"<td>{scores}<td>{result.duration:.3g}</tr>"
    )


def _row(*cells: str) -> str:
    return f"<tr>{''.join(f'<td>{_text(cell)}' for cell in cells)}</tr>"


def _json(value: JSONValue) -> str:
    if isinstance(value, str):
        return _text(value)
    return _text(json.dumps(value, indent=1, ensure_ascii=False))


def _text(text: str) -> str:
    # halves of surrogate pairs have no place in a file of UTF-8
    return escape(re.sub("[\ud800-\udfff]", "\ufffd", text))
