"""Mount plans as they are stored: without their secrets, which come back from a plan of now."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, cast

from amplifier_kit.redaction import SinkRedactor, StrictRedactor
from amplifier_sdk.errors import Problem
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.secret import WITHHELD, withhold

__all__ = ["conceal", "reveal"]

_REFERENCE: Final = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")
"""A text that only says where a secret stands; with a default it may hold one."""


def conceal(plan: Mapping[str, object]) -> JSONObject:
    """Return a plan that may be stored: whatever is or holds a secret is withheld whole, never in part.

    A reference to the environment stays, so that it can be filled in again.
    """
    redactor = SinkRedactor(StrictRedactor())
    return cast("JSONObject", _concealed(plan, withhold(plan), redactor))


def reveal(
    stored: Mapping[str, JSONValue], live: Sequence[Mapping[str, JSONValue]]
) -> tuple[JSONObject, list[Problem]]:
    """Return a stored plan with its secrets, and one problem for each that is nowhere.

    Args:
        stored: what `conceal` returned.
        live: plans in which the same modules and instances have their secrets; the first that has one counts.
    """
    problems: list[Problem] = []
    return cast("JSONObject", _revealed(stored, list(live), "", problems)), problems


def _concealed(value: object, withheld: object, redactor: SinkRedactor) -> object:
    # Before the value is matched as a secret: a reference under `api_key` is how plans
    # should name one.
    if isinstance(value, str) and _REFERENCE.fullmatch(value):
        return value
    if isinstance(withheld, Mapping) and isinstance(value, Mapping):
        # A key that is a secret cannot be withheld alone: nothing would find its value again.
        if any(redactor.redact_text(str(key)) != str(key) for key in value):
            return WITHHELD
        return {
            key: _concealed(value[key], item, redactor)
            for key, item in withheld.items()
        }
    if isinstance(withheld, list) and isinstance(value, (list, tuple)):
        return [
            _concealed(item, other, redactor)
            for item, other in zip(value, withheld, strict=True)
        ]
    if isinstance(withheld, str) and redactor.redact_text(withheld) != withheld:
        return WITHHELD
    if withheld is None or isinstance(withheld, (bool, int, float, str)):
        return withheld
    return str(withheld)  # an object of a program's own plan, which no file can hold


def _revealed(
    stored: JSONValue, live: Sequence[object], path: str, problems: list[Problem]
) -> object:
    if stored == WITHHELD:
        for value in live:
            if value is not None and value != WITHHELD:
                return value
        problem = "this secret is not stored, and neither settings nor environment have it now"
        problems.append(Problem(path, problem))
        return None
    if isinstance(stored, Mapping):
        known = [value for value in live if isinstance(value, Mapping)]
        begin = f"{path}." if path else ""
        return {
            key: _revealed(
                value, [each.get(key) for each in known], f"{begin}{key}", problems
            )
            for key, value in stored.items()
        }
    if isinstance(stored, list):
        lists = [value for value in live if isinstance(value, (list, tuple))]
        return [
            _revealed(
                entry,
                [_same_entry(entry, at, stored, each) for each in lists],
                f"{path}[{at}]",
                problems,
            )
            for at, entry in enumerate(stored)
        ]
    return stored


def _same_entry(
    entry: JSONValue, at: int, stored: Sequence[JSONValue], live: Sequence[object]
) -> object:
    """Return what stands in another list for an entry: the same module, else what has the same place in a like list."""
    key = _key(entry)
    if key is not None:
        return next((other for other in live if _key(other) == key), None)
    # In a list of another length the place says nothing, and a secret could go astray.
    if len(live) == len(stored):
        return live[at]
    return None


def _key(entry: object) -> tuple[object, object] | None:
    if not isinstance(entry, Mapping) or "module" not in entry:
        return None
    return entry["module"], entry.get("instance_id")
