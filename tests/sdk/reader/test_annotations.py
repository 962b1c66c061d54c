"""Annotations written as text mean what they mean where they were written."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from amplifier_sdk import jsontypes
from amplifier_sdk._reader.annotations import resolve, resolve_class
from amplifier_sdk.jsontypes import JSONObject, JSONValue


class Base:
    first: Missing | None  # type: ignore[name-defined]  # noqa: F821  # nobody asks for it
    own: Mapping[str, Base]


class Child(Base):
    second: list[Child]


def test_text_and_types_become_types() -> None:
    resolved = resolve(
        {"a": "int", "b": "list[str] | None", "c": bool, "d": "Base"}, globals()
    )

    assert resolved == {"a": int, "b": list[str] | None, "c": bool, "d": Base}


@pytest.mark.parametrize(
    ("annotation", "meaning"),
    [
        ("JSONValue", object),
        ("JSONObject", dict[str, object]),
        ("list[JSONValue]", list[object]),
        (JSONValue, object),
        (JSONObject, dict[str, object]),
        ("jsontypes.JSONObject", dict[str, object]),
    ],
)
def test_the_json_aliases_mean_any_json_value(
    annotation: object, meaning: object
) -> None:
    names: dict[str, object] = {
        "jsontypes": jsontypes,
        "JSONValue": JSONValue,
        "JSONObject": JSONObject,
    }

    assert resolve({"x": annotation}, names) == {"x": meaning}


def test_the_json_aliases_need_no_import_at_run_time() -> None:
    assert resolve({"x": "Mapping[str, JSONValue]"}, {}) == {"x": Mapping[str, object]}


def test_an_unknown_name_is_an_error() -> None:
    with pytest.raises(NameError, match="Missing"):
        resolve({"x": "Missing"}, {})


def test_class_and_its_bases_are_resolved_for_wanted_names_only() -> None:
    assert resolve_class(Child, ["own", "second"]) == {
        "own": Mapping[str, Base],
        "second": list[Child],
    }


def test_a_class_of_a_module_that_is_gone_can_still_name_itself() -> None:
    lost = type(
        "Lost",
        (),
        {"__annotations__": {"next": "Lost | None"}, "__module__": "nowhere_at_all"},
    )

    resolved = resolve_class(lost, ["next"])

    assert resolved == {"next": lost | None}
