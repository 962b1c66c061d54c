"""What the server answers when it refuses, as errors of the SDK."""

from __future__ import annotations

from collections.abc import Mapping

from amplifier_kit.vendors import read_problem, refusal
from amplifier_sdk.errors import LLMError

__all__ = ["fault"]


def fault(status: int, headers: Mapping[str, str], body: bytes) -> LLMError:
    """Return the error for an answer that is none: by its status, with the server's own words.

    Args:
        status: the HTTP status, or the one that an error inside the answer names.
        headers: names in lower case.
        body: the beginning of the body.
    """
    problem = read_problem(body)
    if problem.get("type") != "exceed_context_size_error":
        return refusal(status, headers, body)
    read, window = problem.get("n_prompt_tokens"), problem.get("n_ctx")
    words = f"the request has {read} tokens and the model takes {window}; shorten it, or raise `n_ctx`"
    return refusal(status, headers, body, words=words)
