"""What a mount plan, or settings, name: read from data that nobody has checked yet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from amplifier.kernel.plans.overlays import gathered
from amplifier_kit.open_data import as_list, as_object
from amplifier_sdk.hookspecs import KINDS
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = ["entries", "identity", "label", "named_modules"]


def entries(plan: Mapping[str, object], section: str) -> list[JSONObject]:
    """Return the modules in a list of a plan, each as an object."""
    listed = as_list(plan.get(section))
    return [
        {"module": entry} if isinstance(entry, str) else as_object(entry)
        for entry in listed
    ]


def identity(entry: Mapping[str, JSONValue]) -> tuple[JSONValue, JSONValue]:
    """Return what identifies a module of a list: its id and its instance."""
    return entry.get("module"), entry.get("instance_id")


def label(entry: Mapping[str, JSONValue]) -> str:
    """Return what people call a module of a list: its instance, else its id."""
    return str(entry.get("instance_id") or entry.get("module"))


def named_modules(plan: Mapping[str, object]) -> Iterator[tuple[str, JSONObject]]:
    """Yield the modules of a plan with their paths: loop and context, then the lists."""
    whole = gathered(plan)
    session = as_object(whole.get("session"))
    for kind in KINDS:
        if kind.single and kind.section in session:
            yield f"session.{kind.section}", as_object(session[kind.section])
    for kind in KINDS:
        if not kind.single:
            for number, entry in enumerate(entries(whole, kind.section)):
                yield f"{kind.section}[{number}]", entry
