"""A session's capabilities: its modules', its application's, and those of the applications above it.

A child sees what an application has registered on its parent, as it is at any time. What a module registers is the
session's own: a child mounts its modules anew. Of most names one value counts; redactors add up, so that whoever
registers one hides more and never less.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, cast

import attrs

from amplifier.kernel.spans import current_module
from amplifier_sdk.capabilities import PER_SESSION, SHARED
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.redaction import REDACTOR, Redactor

__all__ = ["INSTRUCTIONS", "Capabilities"]

INSTRUCTIONS: Final = "session.instructions"
"""The capability with the text that the system message of every new child begins with; an application offers it."""


@attrs.define(eq=False, repr=False)
class Capabilities:
    """The capabilities of one session by name; `parent` has those that it inherits.

    `is_module` says of the owner of what is registered whether it is a module of the session; `inheritable` is what
    the application of this session offers to those below.
    """

    is_module: Callable[[object], bool]
    parent: Capabilities | None = None
    inheritable: dict[str, object] = attrs.field(factory=dict)
    _own: dict[str, object] = attrs.field(factory=dict)
    _owners: dict[str, object] = attrs.field(factory=dict)

    def register(self, name: str, value: object, *, inherited: bool = True) -> None:
        """Offer a value; whose it is decides whether children have it too."""
        owner = current_module.get()
        self._own[name], self._owners[name] = value, owner
        if self.is_module(owner) and name not in SHARED:
            return
        # a later value that is not inherited must not leave the earlier one to children
        self.inheritable.pop(name, None)
        if inherited and name not in PER_SESSION:
            self.inheritable[name] = value

    def get(self, name: str) -> object:
        """Return what counts for the session, or `None`."""
        if name == REDACTOR:
            return self._redactor()
        if name in self._own:
            return self._own[name]
        return next(self._from_above(name), None)

    def is_offered_by(self, plugin: object) -> bool:
        """Whether a module offers any of them."""
        return any(owner is plugin for owner in self._owners.values())

    @property
    def names(self) -> list[str]:
        """The names that are known, the session's own first."""
        names = dict.fromkeys(self._own)
        ancestor = self.parent
        while ancestor is not None:
            names |= dict.fromkeys(ancestor.inheritable)
            ancestor = ancestor.parent
        return list(names)

    def _from_above(self, name: str) -> Iterator[object]:
        """Yield what the applications above have registered under a name, the nearest first."""
        ancestor = self.parent
        while ancestor is not None:
            if name in ancestor.inheritable:
                yield ancestor.inheritable[name]
            ancestor = ancestor.parent

    def _redactor(self) -> object:
        """Return what hides all that any redactor of the session or above it hides."""
        given = (
            self._own.get(REDACTOR),
            self.inheritable.get(REDACTOR),
            *self._from_above(REDACTOR),
        )
        redactors = list(
            {id(each): each for each in given if each is not None}.values()
        )
        if len(redactors) < 2:
            if redactors:
                return redactors[0]
            return None
        # what is none fails, and that withholds
        return _RedactorChain(cast("list[Redactor]", redactors))


@attrs.frozen(eq=False)
class _RedactorChain:
    """Several redactors, each of which gets what the one before it left: what any of them hides is hidden."""

    redactors: Sequence[Redactor]

    def redact_text(self, text: str, /) -> str:
        for redactor in self.redactors:
            text = redactor.redact_text(text)
        return text

    def redact(self, value: JSONValue, /) -> JSONValue:
        for redactor in self.redactors:
            value = redactor.redact(value)
        return value
