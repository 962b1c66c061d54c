"""The person at the other end: somebody who answers questions, and a screen that keeps what it showed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Literal, TypeAlias

import attrs

__all__ = [
    "Answer",
    "AskedQuestion",
    "MockApprovalSystem",
    "MockDisplaySystem",
    "ShownMessage",
]


@attrs.frozen
class AskedQuestion:
    """What a person was asked; `timeout` is in seconds."""

    prompt: str
    options: tuple[str, ...]
    timeout: float
    default: str


Answer: TypeAlias = str | BaseException | Callable[[AskedQuestion], Awaitable[str]]
"""The option a person chooses, an exception to raise, or an async function of the question."""


class MockApprovalSystem:
    """Answers questions in order, the last answer again and again; `questions` holds what was asked.

    Args:
        answers: options to choose, exceptions to raise, or async functions of the question; default `Allow`.
    """

    def __init__(self, *answers: Answer) -> None:
        self.answers: list[Answer] = list(answers or ("Allow",))
        self.questions: list[AskedQuestion] = []

    async def request_approval(
        self,
        prompt: str,
        options: Sequence[str],
        timeout: float,
        default: Literal["allow", "deny"],
        /,
    ) -> str:
        """Note the question and answer it."""
        question = AskedQuestion(prompt, tuple(options), timeout, default)
        self.questions.append(question)
        # the last one stays, so that a test names the answers that matter to it
        answer = self.answers[min(len(self.questions), len(self.answers)) - 1]
        if isinstance(answer, BaseException):
            raise answer
        if isinstance(answer, str):
            return answer
        return await answer(question)


@attrs.frozen
class ShownMessage:
    """What a person was shown."""

    message: str
    level: str
    source: str


class MockDisplaySystem:
    """Keeps what it is asked to show in `messages`.

    Args:
        error: raised for every message, after it was recorded.
    """

    def __init__(self, error: Exception | None = None) -> None:
        self.messages: list[ShownMessage] = []
        self.error: Exception | None = error

    def show_message(self, message: str, level: str, source: str = "hook", /) -> None:
        """Keep a message."""
        self.messages.append(ShownMessage(message, level, source))
        if self.error is not None:
            raise self.error
