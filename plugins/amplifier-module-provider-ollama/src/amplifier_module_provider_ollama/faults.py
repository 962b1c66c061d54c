"""Ollama's errors: a text under `error`, and inside it perhaps the error of the program that runs the model."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Final

from amplifier_kit.vendors import read_problem, refusal
from amplifier_sdk.errors import (
    ContextLengthError,
    LLMError,
    NotFoundError,
    ProviderUnavailableError,
)
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["fault", "reported_error", "unpulled"]

_NOT_FOUND: Final = 404
_TOO_LONG: Final = "exceed_context_size_error"
_TOO_LONG_TEXTS: Final = (
    "exceeds the available context size",
    "exceeds the context length",
    "longer than the context length",
)
"""How servers say it that give no type; no other error has these words."""

_MODEL: Final = re.compile(r"model ['\"]([^'\"\s]+)['\"]")


def fault(status: int, headers: Mapping[str, str], body: bytes) -> LLMError:
    """Return the error for an answer that is none.

    Args:
        status: the HTTP status.
        headers: names in lower case.
        body: the beginning of the body.
    """
    problem: JSONValue = read_problem(body)
    text = _text(problem)
    if words := _overlong(problem):
        return refusal(status, headers, body, kind=ContextLengthError, words=words)
    if status == _NOT_FOUND and (model := _MODEL.search(text)):
        advice = (
            f"run `ollama pull {model[1]}` where the server runs, or set `auto_pull`"
        )
        return refusal(status, headers, body, words=f"{text}; {advice}")
    return refusal(status, headers, body, words=text)


def reported_error(problem: JSONValue) -> LLMError:
    """Return the error for one that stands in the stream, where there is no status."""
    if words := _overlong(problem):
        return ContextLengthError(words)
    return ProviderUnavailableError(
        f"Ollama broke off the answer: {_text(problem) or 'no reason given'}"
    )


def unpulled(problem: JSONValue, model: str) -> NotFoundError:
    """Return the error of a model that the server could not fetch."""
    return NotFoundError(
        f"Ollama cannot fetch the model {model!r}: {_text(problem)}; is its name spelt right?"
    )


def _overlong(problem: JSONValue) -> str:
    """Say that the request is longer than the context, with its figures, if the error is that."""
    inner, text = _inner(problem), _text(problem)
    if inner.get("type") == _TOO_LONG:
        read, window = inner.get("n_prompt_tokens"), inner.get("n_ctx")
        return f"the request has {read} tokens and the model was loaded with {window}; shorten it, or raise `num_ctx`"
    if any(words in text for words in _TOO_LONG_TEXTS):
        return f"{text}; shorten the request, or raise `num_ctx`"
    return ""


def _inner(problem: JSONValue) -> Mapping[str, JSONValue]:
    """Unpack an error that is an object, or JSON text of one, at any depth up to three."""
    for _ in range(3):
        if isinstance(problem, str):
            try:
                problem = json.loads(problem)
            except (ValueError, RecursionError):
                return {}
        if not isinstance(problem, Mapping):
            return {}
        nested = problem.get(
            "error", problem.get("message") if len(problem) == 1 else None
        )
        if nested is None:
            return problem
        problem = nested
    return {}


def _text(problem: JSONValue) -> str:
    message = _inner(problem).get("message")
    if isinstance(message, str):
        return message[:500]
    if isinstance(problem, Mapping):
        problem = problem.get("message", "")
    return (
        problem if isinstance(problem, str) else json.dumps(problem, ensure_ascii=False)
    )[:500]
