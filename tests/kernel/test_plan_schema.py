"""The published JSON Schema of the mount plan accepts what a session accepts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import attrs
import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from amplifier import MountPlanValidator
from amplifier.kernel.plans.schema import plan_schema
from amplifier_sdk.hookspecs import KINDS
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.limits import Limits

ROOT: Final = Path(__file__).resolve().parents[2]
SCHEMA: Final = plan_schema()
VALIDATOR: Final = jsonschema_rs.Draft202012Validator(SCHEMA, offline=True)
LEAST: Final = {"orchestrator": "loop-basic", "context": "context-simple"}


def test_the_published_file_is_the_schema() -> None:
    """When the plan has changed, write `json.dumps(plan_schema(), indent=2)` into the file."""
    published = ROOT / "docs" / "reference" / "mount-plan.schema.json"
    assert published.read_text("utf-8") == json.dumps(SCHEMA, indent=2) + "\n"


def test_the_schema_is_one() -> None:
    jsonschema_rs.meta.validate(SCHEMA)


def test_every_key_but_a_limit_says_what_it_means() -> None:
    """The limits speak for themselves by their names, units and defaults."""
    definitions = as_object(SCHEMA["$defs"])
    tables = [
        SCHEMA,
        *(as_object(definitions[name]) for name in ("session", "module", "single")),
    ]
    keys = {
        name: as_object(key)
        for table in tables
        for name, key in properties_of(table).items()
    }

    assert len(keys) > 15
    assert [name for name, key in keys.items() if not key.get("description")] == []


def as_object(value: object) -> JSONObject:
    assert isinstance(value, dict)
    return value


def properties_of(table: JSONObject) -> JSONObject:
    """Return the properties of an object, or of the one that it may be."""
    forms = table.get("anyOf", [table])
    assert isinstance(forms, list)
    return {
        name: key
        for form in forms
        for name, key in as_object(as_object(form).get("properties", {})).items()
    }


def test_section_of_application_s_own_type_is_in_its_schema() -> None:
    own = attrs.evolve(KINDS[3], name="judge", section="judges", mount_point="judges")
    single = attrs.evolve(
        KINDS[0], name="critic", section="critic", mount_point="critic"
    )

    validator = jsonschema_rs.Draft202012Validator(
        plan_schema((*KINDS, own, single)), offline=True
    )

    session = {**LEAST, "critic": "x", "critic_source": "./x"}
    assert validator.is_valid(
        {"session": session, "judges": ["a"], "critic": {"config": {}}}
    )
    assert not validator.is_valid({"session": LEAST})


JSON: Final = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([0.5, -0.5, "", "x", "0.5", "12"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["config", "module", "x"]), inner)
    ),
    max_leaves=4,
)
"""Values that stand in a wrong place now and then. A whole float is left out: to JSON Schema 1.0 is an integer."""


def sometimes_wrong(right: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.one_of(right, right, right, right, JSON)


def mapping_of(
    required: Mapping[str, st.SearchStrategy[object]],
    optional: Mapping[str, st.SearchStrategy[object]],
) -> st.SearchStrategy[object]:
    """A mapping that may lack what it needs or have what nobody knows."""
    right = st.fixed_dictionaries(dict(required), optional=dict(optional))
    short = st.fixed_dictionaries({}, optional={**required, **optional})
    strange = st.fixed_dictionaries(
        dict(required), optional={**optional, "strange": st.none()}
    )
    return st.one_of(right, right, right, right, short, strange)


NAME: Final = sometimes_wrong(st.sampled_from(["a", "b-c", "d"]))
CONFIG: Final = sometimes_wrong(
    st.none() | st.dictionaries(st.text(max_size=2), JSON, max_size=2)
)
SINGLE: Final = sometimes_wrong(
    NAME | mapping_of({"module": NAME}, {"source": JSON, "config": CONFIG})
)
ENTRY: Final = sometimes_wrong(
    NAME
    | mapping_of(
        {"module": NAME}, {"source": JSON, "config": CONFIG, "instance_id": NAME}
    )
)
LIMITS: Final = mapping_of({}, {field.name: JSON for field in attrs.fields(Limits)})
COUNT: Final = sometimes_wrong(st.none() | st.integers(0, 3))
SESSION: Final = mapping_of(
    {"orchestrator": SINGLE, "context": SINGLE},
    {
        "orchestrator_source": JSON,
        "context_source": JSON,
        "limits": LIMITS,
        "injection_size_limit": COUNT,
        "injection_budget_per_turn": COUNT,
        "metadata": CONFIG,
        "raw": JSON,
    },
)
LIST: Final = sometimes_wrong(st.none() | st.lists(ENTRY, max_size=3))
SECTION: Final = sometimes_wrong(mapping_of({}, {"config": CONFIG}))
PLAN: Final = mapping_of(
    {"session": SESSION},
    {
        "orchestrator": SECTION,
        "context": SECTION,
        "providers": LIST,
        "tools": LIST,
        "hooks": LIST,
        "agents": CONFIG,
    },
)


@given(PLAN | JSON)
def test_the_schema_and_the_reader_agree(plan: object) -> None:
    problems = MountPlanValidator().validate(plan)
    beyond_schemas = [
        problem for problem in problems if "is listed twice" in problem.message
    ]

    assert VALIDATOR.is_valid(plan) == (len(problems) == len(beyond_schemas)), problems


@pytest.mark.parametrize("name", [field.name for field in attrs.fields(Limits)])
@given(value=JSON)
def test_each_limit_takes_what_the_schema_says(name: str, value: object) -> None:
    plan = {"session": {**LEAST, "limits": {name: value}}}

    assert VALIDATOR.is_valid(plan) == MountPlanValidator().validate(plan).passed


@pytest.mark.parametrize("name", [field.name for field in attrs.fields(Limits)])
def test_the_default_of_a_limit_is_one_of_its_values(name: str) -> None:
    limits = properties_of(as_object(as_object(SCHEMA["$defs"])["limits"]))

    plan = {"session": {**LEAST, "limits": {name: as_object(limits[name])["default"]}}}

    assert VALIDATOR.is_valid(plan)
    assert MountPlanValidator().validate(plan).passed
