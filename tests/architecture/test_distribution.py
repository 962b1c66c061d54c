"""What installing the bare distribution brings."""

from __future__ import annotations

from importlib.metadata import requires

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.architecture.source_tree import ROOT, requirements_of

ALLOWED = 12


def _closure() -> set[str]:
    """Return the names of every distribution that `amplifier` without extras needs on this interpreter."""
    found = {"amplifier"}
    waiting = list(requirements_of(ROOT))
    while waiting:
        requirement = waiting.pop()
        if requirement.marker is not None and not requirement.marker.evaluate(
            {"extra": ""}
        ):
            continue
        name = canonicalize_name(requirement.name)
        if name not in found:
            found.add(name)
            waiting += [Requirement(text) for text in requires(name) or ()]
    return found


def test_the_bare_distribution_needs_at_most_twelve_with_itself() -> None:
    found = _closure()

    assert len(found) <= ALLOWED, sorted(found)
    assert {"anyio", "attrs", "pluggy"} < found
