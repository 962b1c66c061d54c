"""Collections that need others: whether these are there, in suitable versions, and without cycles."""

from __future__ import annotations

from collections.abc import Collection as Names
from collections.abc import Iterator, Mapping

from amplifier.app.collections.folders import Collection
from amplifier.app.sources.locations import satisfies
from amplifier_sdk.errors import ConfigError, Problem

__all__ = ["check_requirements", "dependents", "missing"]


def missing(collections: Mapping[str, Collection]) -> list[str]:
    """Return the names that some collections need and that are not among them, sorted."""
    wanted = {
        name for collection in collections.values() for name in collection.requires
    }
    return sorted(wanted - set(collections))


def check_requirements(
    collections: Mapping[str, Collection], names: Names[str]
) -> None:
    """Check what some collections need.

    Args:
        collections: those that there are, and will be.
        names: those that are new; what they need, and who needs them, is checked.

    Raises:
        ConfigError: one is missing or has an unsuitable version, or they form a cycle.
    """
    problems = [
        problem
        for collection in collections.values()
        for name, versions in collection.requires.items()
        if collection.name in names or name in names
        for problem in _problems(collection, name, versions, collections.get(name))
    ]
    sound: set[str] = set()
    cycles = (_cycle(name, collections, (), sound) for name in sorted(names))
    cycle = " -> ".join(next(filter(None, cycles), ()))
    if cycle:
        reason = "these collections require each other in a cycle"
        problems.append(Problem(cycle, reason))
    if problems:
        raise ConfigError(problems, subject="choice of collections")


def dependents(name: str, collections: Mapping[str, Collection]) -> list[str]:
    """Return the names of the collections that need one, sorted."""
    return sorted(
        found.name for found in collections.values() if name in found.requires
    )


def _problems(
    collection: Collection, name: str, versions: str, found: Collection | None
) -> Iterator[Problem]:
    place = f"{collection.name} requires {name}{' ' if versions else ''}{versions}"
    if found is None:
        problem = "it is not installed, and no catalogue knows it; install it first"
        yield Problem(place, problem)
        return
    is_any = versions.strip() in ("", "*")
    try:
        # Without a version nothing but "any" can be promised.
        if is_any or (found.version and satisfies(found.version, versions)):
            return
    except ValueError as error:
        yield Problem(place, f"the version cannot be compared: {error}")
        return
    there = f"{name} {found.version or 'without a version'}"
    yield Problem(place, f"{there} is what there is, in {found.path}")


def _cycle(
    name: str,
    collections: Mapping[str, Collection],
    trail: tuple[str, ...],
    sound: set[str],
) -> tuple[str, ...] | None:
    """Return the names of a cycle that begins at one, `None` where there is none; `sound` are those without."""
    if name in trail:
        return (*trail[trail.index(name) :], name)
    found = collections.get(name)
    if found is None or name in sound:
        return None
    for needed in sorted(found.requires):
        cycle = _cycle(needed, collections, (*trail, name), sound)
        if cycle is not None:
            return cycle
    # Each is walked once: without this, diamonds would double the work at each level.
    sound.add(name)
    return None
