"""Scorers that need no model. Each is a frozen value that is called with a trial."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Final, TypeAlias

import attrs

from amplifier.testing.evals.trials import Score, Trial
from amplifier_sdk.bounds import seconds
from amplifier_sdk.chat import ToolCall
from amplifier_sdk.convert import converter, to_json
from amplifier_sdk.jsontypes import JSONValue

__all__ = [
    "Contains",
    "Exact",
    "MatchesSchema",
    "MaxCost",
    "MaxDuration",
    "ToolTrajectory",
    "dollars",
]

_MAX_SHOWN: Final = 120


def dollars(value: Decimal | float | str) -> Decimal:
    """Read a positive amount of US dollars; a float is read as it is written.

    Raises:
        ValueError: it is none.
    """
    try:
        amount = Decimal(str(value))
    except ArithmeticError:
        amount = Decimal("NaN")
    # NaN is above nothing: such a limit would never be reached
    if not amount.is_finite() or amount <= 0:
        raise ValueError(f"A cost is a number of US dollars above 0; got {value!r}")
    return amount


@attrs.frozen
class Exact:
    """Passes where the output equals what the case expects."""

    name: str = "exact"

    def __call__(self, trial: Trial[object, object]) -> Score:
        """Score a trial.

        Raises:
            ValueError: the case expects nothing.
        """
        expected = _expected(trial)
        if trial.output == expected:
            return Score(1)
        return Score(0, reason=f"{_shown(trial.output)} is not {_shown(expected)}")


def _contains_name(scorer: Contains) -> str:
    if scorer.text is None:
        return "contains"
    return f"contains {scorer.text!r}"


@attrs.frozen
class Contains:
    """Passes where the output's text contains a text.

    Args:
        text: default what the case expects.
        ignore_case: whether `A` is `a`.
        name: what reports call it.
    """

    text: str | None = None
    ignore_case: bool = attrs.field(default=False, kw_only=True)
    name: str = attrs.field(
        default=attrs.Factory(_contains_name, takes_self=True), kw_only=True
    )

    def __call__(self, trial: Trial[object, object]) -> Score:
        """Score a trial.

        Raises:
            ValueError: there is neither a text nor one that the case expects.
        """
        wanted, text = self.text, str(trial.output)
        if wanted is None:
            wanted = str(_expected(trial))
        if self.ignore_case:
            is_there = wanted.casefold() in text.casefold()
        else:
            is_there = wanted in text
        if is_there:
            return Score(1)
        return Score(0, reason=f"{_shown(text)} does not contain {_shown(wanted)}")


_Check: TypeAlias = Callable[[JSONValue], str]
"""Returns what is wrong with a value; nothing where it fits."""


@attrs.frozen
class MatchesSchema:
    """Passes where the output fits a JSON Schema or a type; a text is read as JSON.

    Args:
        schema: a JSON Schema, or a type with a JSON form.
        name: what reports call it.

    Raises:
        ValueError: it is no valid JSON Schema.
    """

    schema: Mapping[str, JSONValue] | type[object]
    name: str = attrs.field(default="schema", kw_only=True)
    _check: _Check = attrs.field(init=False, eq=False, repr=False)

    @_check.default
    def _make_check(self) -> _Check:
        if isinstance(self.schema, Mapping):
            return _schema_check(self.schema)
        return _type_check(self.schema)

    def __call__(self, trial: Trial[object, object]) -> Score:
        """Score a trial."""
        if isinstance(trial.output, str):
            try:
                value: JSONValue = json.loads(trial.output)
            except ValueError as error:
                return Score(0, reason=f"{_shown(trial.output)} is no JSON: {error}")
        else:
            value = to_json(trial.output)
        problem = self._check(value)
        return Score(float(not problem), reason=problem)


def _schema_check(schema: Mapping[str, JSONValue]) -> _Check:
    import jsonschema_rs  # 25 ms that only this scorer needs

    try:
        # offline: a schema from a file of cases must not make the test reach out
        validator = jsonschema_rs.validator_for(dict(schema), offline=True)
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError) as error:
        raise ValueError(f"This is no valid JSON Schema: {error}") from error

    def check(value: JSONValue) -> str:
        return "; ".join(
            f"{'.'.join(map(str, error.instance_path)) or 'the output'}: {error.message}"
            for error in validator.iter_errors(value)
        )

    return check


def _type_check(wanted: type[object]) -> _Check:
    structure = converter().structure

    def check(value: JSONValue) -> str:
        try:
            structure(value, wanted)
        except ValueError as error:
            return str(error)
        return ""

    return check


@attrs.frozen
class MaxCost:
    """Passes where the run cost at most an amount of US dollars.

    A cost that is not known does not pass.
    """

    cost_usd: Decimal = attrs.field(converter=dollars)
    name: str = attrs.field(default="cost", kw_only=True)

    def __call__(self, trial: Trial[object, object]) -> Score:
        """Score a trial."""
        usage = trial.usage
        if usage is None or usage.cost_usd is None:
            return Score(0, reason="The cost is not known")
        if usage.cost_usd <= self.cost_usd:
            return Score(1)
        return Score(0, reason=f"${usage.cost_usd} is more than ${self.cost_usd}")


@attrs.frozen
class MaxDuration:
    """Passes where the run took at most so many seconds."""

    duration: float = attrs.field(validator=seconds)
    name: str = attrs.field(default="latency", kw_only=True)

    def __call__(self, trial: Trial[object, object]) -> Score:
        """Score a trial."""
        if trial.duration <= self.duration:
            return Score(1)
        return Score(0, reason=f"{trial.duration:.3g} s is over {self.duration:g} s")


@attrs.frozen(init=False)
class ToolTrajectory:
    """Passes where the model made these tool calls in this order.

    Args:
        steps: names of tools, or calls made with `amplifier.testing.call`, of which the arguments that they have must
            be equal.
        exact: whether other calls between them are wrong.
        name: what reports call it.
    """

    steps: tuple[str | ToolCall, ...]
    exact: bool
    name: str

    def __init__(
        self, *steps: str | ToolCall, exact: bool = False, name: str = "trajectory"
    ) -> None:
        self.__attrs_init__(steps, exact, name)

    def __call__(self, trial: Trial[object, object]) -> Score:
        """Score a trial; the value is the part of the steps that were found."""
        found = self._found(trial.tool_calls)
        passed = found == len(self.steps)
        if self.exact:
            passed = passed and len(trial.tool_calls) == found
        if passed:
            return Score(1)
        made = ", ".join(call.name for call in trial.tool_calls) or "none"
        # calls too many are a fault although all steps were found
        value = found / max(len(self.steps), len(trial.tool_calls), 1)
        return Score(
            value,
            passed=False,
            reason=f"{found} of {len(self.steps)} steps; the calls were: {made}",
        )

    def _found(self, calls: tuple[ToolCall, ...]) -> int:
        """Count the steps, from the first one on, that stand among the calls in their order."""
        found = 0
        for call in calls:
            if found < len(self.steps) and _fits(self.steps[found], call):
                found += 1
        return found


def _fits(step: str | ToolCall, call: ToolCall) -> bool:
    if isinstance(step, str):
        return step == call.name
    missing = object()
    return step.name == call.name and all(
        call.arguments.get(key, missing) == value
        for key, value in step.arguments.items()
    )


def _expected(trial: Trial[object, object]) -> object:
    if trial.case.expected is None:
        raise ValueError("The case expects nothing; give it expected=…")
    return trial.case.expected


def _shown(value: object) -> str:
    text = repr(value)
    if len(text) > _MAX_SHOWN:
        return f"{text[: _MAX_SHOWN - 1]}…"
    return text
