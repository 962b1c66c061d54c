"""The answers that a person may choose from: what each allows, how far, and how that reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

from amplifier_kit.rules.permissions import PermissionScope
from amplifier_module_hooks_approval.config import Scope
from amplifier_sdk.assessments import Coverage

__all__ = ["DENY", "ApprovalChoice", "Choices"]

DENY: Final = "Deny"
_REACHES: Final[dict[PermissionScope, str]] = {
    "session": "in this session",
    "project": "in this project",
    "everywhere": "everywhere",
}


@attrs.frozen(kw_only=True)
class ApprovalChoice:
    """One answer that allows: for how long, and which calls; `coverage` is `None` for this very call."""

    text: str
    scope: Scope
    coverage: Coverage | None = None


@attrs.frozen
class Choices:
    """The answers that allow, in the order in which they are shown."""

    all: tuple[ApprovalChoice, ...]

    @classmethod
    def of(cls, scopes: Sequence[Scope], coverages: Sequence[Coverage]) -> Choices:
        """Write the answers.

        Args:
            scopes: how far an answer may reach.
            coverages: the kinds of calls that one may cover.
        """
        once = []
        if "once" in scopes:
            once = [ApprovalChoice(text="Allow once", scope="once")]
        # What is allowed everywhere is a kind of calls: one call's paths mean something in its folder alone.
        same = [
            _lasting(scope, None) for scope in ("session", "project") if scope in scopes
        ]
        kinds = [
            _lasting(scope, coverage)
            for coverage in coverages
            for scope in _REACHES
            if scope in scopes
        ]
        return cls(
            (*once, *same, *kinds) or (ApprovalChoice(text="Allow once", scope="once"),)
        )

    @property
    def texts(self) -> list[str]:
        """What a person chooses from, but for the denial."""
        return [choice.text for choice in self.all]

    def chosen(self, answer: str) -> ApprovalChoice | None:
        """Return the choice that an answer is; `None` for any other answer."""
        wanted = answer.strip().casefold()
        return next(
            (choice for choice in self.all if choice.text.casefold() == wanted), None
        )

    def explained(self, directory: str, days: float | None) -> list[str]:
        """Say what those that last cover, and until when."""
        same = [
            repr(choice.text)
            for choice in self.all
            if choice.scope != "once" and choice.coverage is None
        ]
        lines = []
        if same:
            lines = [f"{' and '.join(same)} cover exactly this call, in {directory}."]
        if days is not None and any(
            choice.scope in ("project", "everywhere") for choice in self.all
        ):
            lines.append(
                f"What outlasts this session ends after {days:g} days; 'amplifier permissions' takes it back."
            )
        return lines


def _lasting(scope: PermissionScope, coverage: Coverage | None) -> ApprovalChoice:
    what = "Allow"
    if coverage is not None:
        what = f"Allow {coverage.label}"
    return ApprovalChoice(
        text=f"{what} {_REACHES[scope]}", scope=scope, coverage=coverage
    )
