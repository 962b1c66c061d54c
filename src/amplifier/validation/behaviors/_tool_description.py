"""How a tool introduces itself to a model."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Final

from amplifier.validation.behaviors._examples import properties_of, required_of
from amplifier.validation.behaviors._stage import Stage, open_stage, skip_unless
from amplifier.validation.behaviors._use import calls_of, use
from amplifier.validation.behaviors.behavior import Suite, expect, require
from amplifier.validation.behaviors.subject import Subject
from amplifier_sdk.arguments import ArgumentSchema
from amplifier_sdk.contracts import Tool
from amplifier_sdk.effects import effects_of
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.loops import schema_of, tool_spec

TOOL: Final = Suite("tool")

LONGEST_DESCRIPTION: Final = 1024
"""Characters that the strictest of the large vendors takes."""
LARGEST_SCHEMA: Final = 32_768
_NAME: Final = r"[a-zA-Z0-9_-]{1,64}"


def _schema(tool: Tool) -> Mapping[str, JSONValue]:
    """Return the schema as the tool offers it; an empty one when it offers none."""
    offered = getattr(tool, "input_schema", None)
    if offered is None and callable(get_schema := getattr(tool, "get_schema", None)):
        offered = get_schema()
    return expect({} if offered is None else offered, Mapping, f"The schema of {tool.name!r}")


@TOOL.behavior(fix="Name the tool with letters, digits, '_' and '-' only, 64 characters at most.")
async def has_a_name_that_vendors_take(subject: Subject) -> None:
    """Its name is made of letters, digits, '_' and '-' and has 64 characters at most."""
    async with open_stage(subject) as stage:
        for tool in stage.tools.values():
            require(re.fullmatch(_NAME, tool.name), f"The name is {tool.name!r:.200}")


@TOOL.behavior(fix="Mount the tool under its own name, which is what the model calls.")
async def is_mounted_under_its_name(subject: Subject) -> None:
    """It is mounted under the name that it gives itself."""
    async with open_stage(subject) as stage:
        for name, tool in stage.tools.items():
            require(name == tool.name, f"The tool {tool.name!r} is mounted as {name!r}")


@TOOL.behavior(fix="Say in the description what the tool does and when to use it.")
async def describes_itself(subject: Subject) -> None:
    """It has a description that says more than its name."""
    async with open_stage(subject) as stage:
        for tool in stage.tools.values():
            said = re.sub(r"[\W_]+", "", tool.description).lower()
            bare = re.sub(r"[\W_]+", "", tool.name).lower()
            require(said and said != bare, f"{tool.name!r} is described as {tool.description!r}")


@TOOL.behavior(fix="Shorten the description; details belong to the arguments' own descriptions.")
async def describes_itself_briefly(subject: Subject) -> None:
    """Its description has 1,024 characters at most, as some vendors demand."""
    async with open_stage(subject) as stage:
        for tool in stage.tools.values():
            length = len(tool.description)
            require(length <= LONGEST_DESCRIPTION, f"The description of {tool.name!r} has {length} characters")


@TOOL.behavior(fix="Offer input_schema, a JSON Schema of the arguments; @tool makes it from the signature.")
async def offers_a_schema(subject: Subject) -> None:
    """It says by a JSON Schema what arguments it takes."""
    async with open_stage(subject) as stage:
        for tool in stage.tools.values():
            require(_schema(tool), f"{tool.name!r} offers no input_schema, so that a model must guess")


@TOOL.behavior(fix="Correct the schema; JSON Schema 2020-12 is what tools are described in.")
async def offers_a_valid_schema(subject: Subject) -> None:
    """Its schema is valid JSON Schema."""
    async with open_stage(subject) as stage:
        for tool in stage.tools.values():
            ArgumentSchema(schema_of(tool), tool.name).compile()


@TOOL.behavior(fix='Give the schema "type": "object" and describe each argument under "properties".')
async def takes_an_object(subject: Subject) -> None:
    """Its schema is that of an object."""
    async with open_stage(subject) as stage:
        for tool in stage.tools.values():
            kind = schema_of(tool).get("type")
            require(kind == "object", f"The schema of {tool.name!r} has the type {kind!r}")


@TOOL.behavior(fix="Keep to what JSON has: text keys, lists, numbers that are finite.")
async def offers_a_schema_of_plain_json(subject: Subject) -> None:
    """Its schema is JSON data and reads back as it was."""
    async with open_stage(subject) as stage:
        for tool in stage.tools.values():
            schema = schema_of(tool)
            read = json.loads(json.dumps(schema, allow_nan=False))
            require(read == schema, f"The schema of {tool.name!r} reads back as something else")


@TOOL.behavior(fix="Copy the schema for those who change it; return the same one each time.")
async def offers_the_same_schema_each_time(subject: Subject) -> None:
    """Its schema is the same before and after its calls."""
    async with open_stage(subject) as stage:
        before = {name: copy.deepcopy(dict(schema_of(tool))) for name, tool in stage.tools.items()}
        await use(subject, stage)
        for name, tool in stage.tools.items():
            require(dict(schema_of(tool)) == before[name], f"The schema of {name!r} changed")


@TOOL.behavior(fix="Write the referred part into the schema under $defs; nothing is ever fetched.")
async def offers_a_schema_that_stands_alone(subject: Subject) -> None:
    """Every reference in its schema leads into the schema itself."""
    async with open_stage(subject) as stage:
        for tool in stage.tools.values():
            foreign = [ref for ref in _references(schema_of(tool)) if not ref.startswith("#")]
            require(not foreign, f"The schema of {tool.name!r} refers to {', '.join(foreign)}")


def _references(value: JSONValue) -> Iterator[str]:
    if isinstance(value, Mapping):
        reference = value.get("$ref")
        if isinstance(reference, str):
            yield reference
        for part in value.values():
            yield from _references(part)
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _references(part)


@TOOL.behavior(fix="Shorten the schema: every request carries it. Offer several tools instead of one that does all.")
async def offers_a_schema_of_modest_size(subject: Subject) -> None:
    """Its schema takes 32 KB at most."""
    async with open_stage(subject) as stage:
        for tool in stage.tools.values():
            size = len(json.dumps(dict(schema_of(tool))))
            require(size <= LARGEST_SCHEMA, f"The schema of {tool.name!r} takes {size} characters")


@asynccontextmanager
async def _described(subject: Subject) -> AsyncIterator[tuple[Stage, list[tuple[str, str, Mapping[str, JSONValue]]]]]:
    """Yield every argument of every tool: the tool's name, its own, and its schema."""
    async with open_stage(subject) as stage:
        arguments = [
            (tool.name, name, part)
            for tool in stage.tools.values()
            for name, part in properties_of(schema_of(tool)).items()
        ]
        skip_unless(arguments, "it takes no arguments")
        yield stage, arguments


@TOOL.behavior(fix="Describe each argument: in the docstring's Args section, or under 'description' in the schema.")
async def describes_every_argument(subject: Subject) -> None:
    """Every argument has a description."""
    async with _described(subject) as (_, arguments):
        bare = [f"{tool}.{name}" for tool, name, part in arguments if not part.get("description")]
        require(not bare, f"Without a description: {', '.join(bare)}")


@TOOL.behavior(fix="Give each argument a type, an enum or alternatives; without one anything passes.")
async def says_the_type_of_every_argument(subject: Subject) -> None:
    """Every argument has a type, an enumeration or alternatives."""
    keys = {"type", "enum", "const", "anyOf", "oneOf", "allOf", "$ref", "not", "if"}
    async with _described(subject) as (_, arguments):
        bare = [f"{tool}.{name}" for tool, name, part in arguments if not keys & set(part)]
        require(not bare, f"Without a type: {', '.join(bare)}")


@TOOL.behavior(fix="Correct the default or the argument's type.")
async def has_defaults_that_fit(subject: Subject) -> None:
    """Every default in its schema fits the argument's own schema."""
    async with _described(subject) as (_, arguments):
        defaults = [(tool, name, part) for tool, name, part in arguments if "default" in part]
        skip_unless(defaults, "none of its arguments has a default")
        for tool, name, part in defaults:
            wrapped = ArgumentSchema({"type": "object", "properties": {name: part}}, tool)
            problem = wrapped.problem({name: part["default"]})
            require(problem is None, f"The default of {tool}.{name} does not fit: {problem}")


@TOOL.behavior(fix="Write every required argument under 'properties', spelled alike.")
async def requires_only_what_it_describes(subject: Subject) -> None:
    """Every argument that its schema requires is described there."""
    async with open_stage(subject) as stage:
        for tool in stage.tools.values():
            schema = schema_of(tool)
            missing = [name for name in required_of(schema) if name not in properties_of(schema)]
            require(not missing, f"{tool.name!r} requires {', '.join(missing)} and does not describe it")


@TOOL.behavior(fix="Let get_schema return input_schema.")
async def offers_one_schema_in_both_spellings(subject: Subject) -> None:
    """Where it has get_schema as well as input_schema both say the same."""
    async with open_stage(subject) as stage:
        both = [tool for tool in stage.tools.values() if hasattr(tool, "get_schema") and hasattr(tool, "input_schema")]
        skip_unless(both, "it has one spelling of the schema")
        for tool in both:
            offered: object = getattr(tool, "get_schema", dict)()
            require(offered == getattr(tool, "input_schema", None), f"{tool.name!r} offers two different schemas")


@TOOL.behavior(fix="Correct the sample or the schema: one of them is wrong.")
async def takes_the_samples_of_its_author(subject: Subject) -> None:
    """The arguments that its author gives as samples fit its schema."""
    async with open_stage(subject) as stage:
        for tool, arguments in calls_of(subject, stage.tools):
            problem = ArgumentSchema(schema_of(tool), tool.name).problem(arguments)
            require(problem is None, f"{arguments!r:.200}: {problem}")


@TOOL.behavior(fix="Make 'exclusive' a boolean; true keeps other calls from running beside it.")
async def says_plainly_whether_it_is_exclusive(subject: Subject) -> None:
    """Its 'exclusive', if it has one, is true or false."""
    async with open_stage(subject) as stage:
        for tool in stage.tools.values():
            value = getattr(tool, "exclusive", False)
            require(isinstance(value, bool), f"'exclusive' of {tool.name!r} is {value!r}")


@TOOL.behavior(fix="Name all effects of 'read', 'write', 'exec' and 'network' in a tuple, or none of them at all.")
async def says_plainly_what_it_does(subject: Subject) -> None:
    """Its 'effects', if it has them, are effects, and its 'read_only' is true or false and does not contradict them."""
    async with open_stage(subject) as stage:
        for tool in stage.tools.values():
            told, read_only = getattr(tool, "effects", None), getattr(tool, "read_only", None)
            effects = effects_of(tool)
            require(told is None or effects is not None, f"'effects' of {tool.name!r} are {told!r}")
            require(read_only is None or isinstance(read_only, bool), f"'read_only' of {tool.name!r} is {read_only!r}")
            changing = sorted((effects or frozenset()) & {"write", "exec"})
            require(not (read_only and changing), f"{tool.name!r} is 'read_only' and has the effects {changing}")


@TOOL.behavior(fix="Return texts and mappings from name, description and input_schema, without awaiting.")
async def can_be_shown_to_a_model(subject: Subject) -> None:
    """A request to a model can be made of its name, description and schema."""
    async with open_stage(subject) as stage:
        for tool in stage.tools.values():
            spec = tool_spec(tool)
            json.dumps([spec.name, spec.description, dict(spec.parameters)])
