"""The errors are the tree that their module draws."""

from __future__ import annotations

import copy
import inspect
import pickle
import re

import pytest

from amplifier_sdk import errors
from amplifier_sdk.errors import (
    AccessDeniedError,
    AmplifierError,
    AuthenticationError,
    ConfigError,
    InvalidToolCallError,
    LLMError,
    LLMTimeoutError,
    ModuleConflictError,
    ModuleLoadError,
    ModuleNotFoundError,
    ModuleValidationError,
    NetworkError,
    Problem,
    QuotaExceededError,
    RateLimitError,
    StreamError,
    ToolError,
    TurnCancelled,
    did_you_mean,
)


def classes() -> dict[str, type[AmplifierError]]:
    return {
        name: value
        for name, value in vars(errors).items()
        if inspect.isclass(value) and issubclass(value, AmplifierError)
    }


def drawn_tree() -> dict[str, str | None]:
    """Return each name of the drawing with the name above it."""
    parents: dict[str, str | None] = {}
    above: list[str] = []
    for line in str(errors.__doc__).split("```")[1].splitlines():
        found = re.match(r"^(?P<branch>[│├└─ ]*)(?P<name>\w+)", line)
        if found is None:
            continue
        depth = len(found["branch"]) // 4
        del above[depth:]
        parents[found["name"]] = above[-1] if above else None
        above.append(found["name"])
    return parents


def test_the_drawing_shows_every_error_and_nothing_else() -> None:
    assert set(drawn_tree()) == set(classes())


@pytest.mark.parametrize("name", sorted(classes()))
def test_an_error_stands_where_the_drawing_says(name: str) -> None:
    cls = classes()[name]
    parent = drawn_tree()[name]

    assert parent == (cls.__bases__[0].__name__ if cls is not AmplifierError else None)
    assert name in errors.__all__


@pytest.mark.parametrize("name", sorted(classes()))
def test_the_drawing_names_the_builtin_that_an_error_also_is(name: str) -> None:
    line = next(
        line
        for line in str(errors.__doc__).splitlines()
        if re.search(rf"\b{name}\b", line)
    )
    also = [base.__name__ for base in classes()[name].__bases__[1:]]

    if also and name != "ConfigError":
        assert f"(also {also[0]})" in line


@pytest.mark.parametrize(
    "name", sorted(n for n, cls in classes().items() if issubclass(cls, LLMError))
)
def test_drawing_says_which_provider_errors_may_be_tried_again(name: str) -> None:
    line = next(
        line
        for line in str(errors.__doc__).splitlines()
        if re.search(rf"\b{name}\b", line)
    )
    cls = classes()[name]

    assert (
        "retryable" in line and "not retryable" not in line
    ) is cls.default_retryable  # type: ignore[attr-defined]  # of LLMError


def make(cls: type[AmplifierError]) -> AmplifierError:
    """Build an error of any class, with all it can carry."""
    if issubclass(cls, errors.ModuleConfigError):
        return cls(
            "tool-x",
            [Problem("a.b", "wrong")],
            distribution="dist 1.0",
            path="tools[0]",
        )
    if issubclass(cls, ConfigError):
        return cls([Problem("a.b", "wrong")], subject="plan")
    if issubclass(cls, errors.ModuleError):
        return cls("tool-x", "it is broken", distribution="dist 1.0")
    if issubclass(cls, errors.BudgetExceededError):
        return cls("tokens", 10, partial_text="partial")
    if issubclass(cls, (errors.ChildNotFoundError, errors.LeaseHeldError)):
        return cls("session", "another")
    if issubclass(cls, TurnCancelled):
        return cls("partial", immediate=True)
    if issubclass(cls, ToolError):
        return cls("message", code=3)
    if issubclass(cls, InvalidToolCallError):
        return cls("message", tool_name="t", raw_arguments="{", provider="p")
    if issubclass(cls, LLMError):
        return cls(
            "message",
            provider="p",
            model="m",
            status_code=503,
            retry_after=1.5,
            delay_multiplier=2.0,
        )
    return cls("message")


@pytest.mark.parametrize("name", sorted(classes()))
def test_an_error_survives_copying_and_pickling_with_its_fields(name: str) -> None:
    error = make(classes()[name])

    for other in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert type(other) is type(error)
        assert str(other) == str(error)
        assert vars(other) == vars(error)


def test_a_provider_error_says_whether_to_try_again() -> None:
    assert RateLimitError("slow").retryable
    assert not QuotaExceededError("empty").retryable
    assert not RateLimitError("slow", retryable=False).retryable
    assert AuthenticationError("key", retryable=True).retryable
    assert all(
        cls("x").retryable for cls in (NetworkError, LLMTimeoutError, StreamError)
    )
    assert issubclass(AccessDeniedError, AuthenticationError)


def test_a_provider_error_carries_what_the_vendor_said() -> None:
    error = LLMError(
        "down",
        provider="p",
        model="m",
        status_code=503,
        retry_after=2.5,
        delay_multiplier=3.0,
    )

    assert (error.provider, error.model, error.status_code) == ("p", "m", 503)
    assert (error.retry_after, error.delay_multiplier) == (2.5, 3.0)
    assert str(error) == "down"


def test_a_call_that_cannot_be_read_carries_its_text() -> None:
    error = InvalidToolCallError(
        "bad", tool_name="t", raw_arguments="{", provider="p", retryable=True
    )

    assert (error.tool_name, error.raw_arguments, error.provider, error.retryable) == (
        "t",
        "{",
        "p",
        True,
    )


def test_a_module_error_names_module_and_distribution() -> None:
    error = ModuleLoadError("tool-x", "it cannot be imported", distribution="dist 1.0")

    assert str(error) == "Module 'tool-x' (from dist 1.0): it cannot be imported"
    assert (error.module_id, error.reason, error.distribution) == (
        "tool-x",
        "it cannot be imported",
        "dist 1.0",
    )
    assert (
        str(ModuleConflictError("tool-x", "two claim it"))
        == "Module 'tool-x': two claim it"
    )


@pytest.mark.parametrize(
    "cls", [ModuleNotFoundError, ModuleLoadError, ModuleValidationError, ConfigError]
)
def test_what_a_caller_may_catch_as_value_error_is_one(
    cls: type[AmplifierError],
) -> None:
    assert issubclass(cls, ValueError)


def test_a_configuration_error_lists_every_problem() -> None:
    error = ConfigError(
        [Problem("a[0]", "is wrong"), Problem("", "is empty")], subject="mount plan"
    )

    assert str(error) == "The mount plan has 2 problems:\n  a[0]: is wrong\n  is empty"
    assert error.in_one_line == "a[0]: is wrong; is empty"
    assert (
        str(ConfigError([Problem("a", "b")]))
        == "The configuration has 1 problem:\n  a: b"
    )


def test_a_configuration_error_of_one_problem() -> None:
    error = ConfigError.of("a", "b", subject="mount plan")

    assert error.problems == (Problem("a", "b"),)
    assert str(error) == "The mount plan has 1 problem:\n  a: b"


def test_a_cancelled_turn_keeps_its_partial_text() -> None:
    assert str(TurnCancelled("half")) == "The turn was cancelled"
    assert (
        str(TurnCancelled("half", immediate=True)) == "The turn was cancelled at once"
    )
    assert TurnCancelled("half").partial_text == "half"


def test_a_tool_error_keeps_its_details() -> None:
    assert ToolError("no such file", path="a").details == {"path": "a"}


def test_the_nearest_name_is_suggested() -> None:
    assert did_you_mean("limt", ["limit", "offset"]) == "; did you mean 'limit'?"
    assert did_you_mean("zzz", ["limit", "offset"]) == ""
