"""What a turn raises whose answer has to be of a type."""

from __future__ import annotations

from amplifier_sdk.chat import Usage
from amplifier_sdk.errors import AmplifierError

__all__ = ["OutputError", "OutputRejectedError"]


class OutputError(AmplifierError):
    """The model gave no answer of the wanted type, although each retry said what was wrong.

    Args:
        text: its last answer.
        problems: what was wrong with each of its answers, the first one first.
        usage: what all of them have used; `None` where the provider reported nothing.
    """

    def __init__(
        self, text: str, problems: tuple[str, ...], usage: Usage | None = None
    ) -> None:
        self.text: str = text
        self.problems: tuple[str, ...] = problems
        self.usage: Usage | None = usage
        super().__init__(
            f"None of {len(problems)} answers was of the wanted type; the last one: {problems[-1]}"
        )


class OutputRejectedError(AmplifierError):
    """A validator rejects an answer; raise it with the reason, which is for the model."""
