"""What a tool says of one call before it runs: what it would do, what its own rules make of it, why it cannot work.

A tool that implements `AssessesCalls` is asked about each call with the arguments that will run. Whoever approves calls
decides by the answer; where nobody does, the session itself applies it.
So each tool has one policy, whatever is mounted.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Final, Literal, Protocol, TypeAlias, runtime_checkable

import attrs

from amplifier_sdk.effects import EFFECTS, Effect, checked_effects
from amplifier_sdk.jsontypes import JSONObject

__all__ = [
    "ACCEPTED",
    "EDITS",
    "AssessesCalls",
    "Assessment",
    "Assessor",
    "Coverage",
    "assess",
    "assessor_of",
]


ACCEPTED: Final = "approval.accepted"
"""The capability with the keys of coverages that whoever opened the session accepts: a frozen set of texts."""

EDITS: Final = "edits"
"""The key of the coverage of changes to files in the folders that a tool may write, deletions left out."""


def _effects(declared: Iterable[str] | None) -> tuple[Effect, ...] | None:
    if declared is None:
        return None
    return checked_effects(declared)


@attrs.frozen(kw_only=True)
class Coverage:
    """A kind of calls that one answer of a person may cover, of which the assessed call certainly is one.

    Args:
        key: what calls of the kind have in common, such as `command git push`; the tool compares nothing else.
        label: the same in words that the person reads: `commands that begin with 'git push'`.
    """

    key: str
    label: str


@attrs.frozen(kw_only=True)
class Assessment:
    """What a tool says of one call.

    Args:
        effects: what this call does; `None` means what the tool says of all its calls.
        decision: what the tool's own rules say: it runs, a person is asked, it never runs. `None` means that the
            tool has no rules, and that its effects count.
        reason: why, for the person and the model.
        details: what the person reads besides the arguments, such as a diff.
        problem: why the call must fail as things are; nobody is asked about such a call.
        is_firm: whether only a person's answer lets the call run, whatever rules allow.
        coverages: the kinds of calls that an answer may cover, besides this very call.
        directory: where relative paths of this call start, where that is not the session's folder.
        confinement: what keeps the call inside, in words that the person reads: an answer that lasts holds under the
            same confinement alone. Empty where nothing that may change does.
    """

    effects: tuple[Effect, ...] | None = attrs.field(default=None, converter=_effects)
    decision: Literal["allow", "ask", "deny"] | None = attrs.field(
        default=None, validator=attrs.validators.in_(("allow", "ask", "deny", None))
    )
    reason: str = ""
    details: str = ""
    problem: str | None = None
    is_firm: bool = False
    coverages: tuple[Coverage, ...] = ()
    directory: str | None = None
    confinement: str = ""


Assessor: TypeAlias = Callable[[JSONObject], Awaitable[Assessment | None]]
"""What assesses a call by its arguments, which were checked against the tool's schema."""


@runtime_checkable
class AssessesCalls(Protocol):
    """A tool that says of a call what it would do."""

    async def assess_call(self, input: JSONObject, /) -> Assessment | None:
        """Assess a call; `None` says nothing of it. Nothing is changed by that.

        Args:
            input: the arguments, checked against the tool's schema.
        """


def assessor_of(tool: object) -> Assessor | None:
    """Return what assesses a tool's calls; `None` where the tool does not."""
    found: Assessor | None = getattr(tool, "assess_call", None)
    if callable(found):
        return found
    return None


async def assess(tool: object, arguments: JSONObject) -> Assessment | None:
    """Assess a call; `None` where the tool says nothing.

    A tool that fails at it is asked about: what it would do is not known.
    """
    assessor = assessor_of(tool)
    if assessor is None:
        return None
    try:
        found: object = await assessor(arguments)
    except (Exception, SystemExit) as error:  # foreign code
        return _unknown(f"{type(error).__name__}: {error}")
    if found is None or isinstance(found, Assessment):
        return found
    return _unknown(f"it returned {type(found).__name__}")


def _unknown(problem: str) -> Assessment:
    return Assessment(
        effects=EFFECTS,
        decision="ask",
        reason=f"the tool cannot say what it does ({problem})",
        # a rule that allows the tool knows as little of this call
        is_firm=True,
    )
