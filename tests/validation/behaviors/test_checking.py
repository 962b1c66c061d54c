"""How a behaviour is checked: what the outcome says, and what the subject brings with it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.lowlevel
import attrs
import pytest

from amplifier import ModuleLoader
from amplifier.testing import MockContextManager
from amplifier.validation.behaviors import (
    Behavior,
    BehaviorFailed,
    HookSamples,
    NotApplicable,
    Subject,
    ToolSamples,
    behaviors,
    check_behavior,
)
from amplifier.validation.behaviors.behavior import Check
from amplifier.validation.behaviors.subject import SAMPLES
from amplifier_sdk import ConfigError, Coordinator, Provider, ToolResult
from amplifier_sdk.errors import Problem
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.messages import MessageDict
from tests.validation.behaviors.sound import SOUND, Echo, mounting

TOOL = SOUND["tool"]


def _behavior(check: Check) -> Behavior:
    return Behavior(
        id="tool.test", kind="tool", says="It is so.", fix="Make it so.", check=check
    )


def _named(kind: str, name: str) -> Behavior:
    return next(behavior for behavior in behaviors(kind) if behavior.id == name)


async def test_a_check_that_returns_has_passed() -> None:
    async def check(subject: Subject) -> None:
        assert subject is TOOL

    outcome = await check_behavior(_behavior(check), TOOL)

    assert (outcome.status, outcome.detail) == ("passed", "")


@pytest.mark.parametrize(
    ("error", "status", "detail"),
    [
        (BehaviorFailed("It is not."), "failed", "It is not."),
        (NotApplicable("it has none"), "skipped", "it has none"),
        (OSError("no disk"), "failed", "OSError: no disk"),
        (SystemExit(3), "failed", "SystemExit: 3"),
        (
            ExceptionGroup(
                "", [OSError("x"), ExceptionGroup("", [BehaviorFailed("deep")])]
            ),
            "failed",
            "deep",
        ),
        (ExceptionGroup("", [OSError("alone")]), "failed", "OSError: alone"),
    ],
)
async def test_what_a_check_raises_is_its_outcome(
    error: BaseException, status: str, detail: str
) -> None:
    async def check(subject: Subject) -> None:
        raise error

    outcome = await check_behavior(_behavior(check), TOOL)

    assert (outcome.status, outcome.detail) == (status, detail)


async def test_a_check_that_does_not_end_has_failed() -> None:
    async def check(subject: Subject) -> None:
        await anyio.sleep_forever()

    outcome = await check_behavior(_behavior(check), TOOL, timeout=0.01)

    assert (outcome.status, outcome.detail) == (
        "failed",
        "It did not end within 0.01 s",
    )


@pytest.mark.parametrize(("late", "status"), [(2, "passed"), (3, "failed")])
async def test_timing_check_fails_only_if_it_fails_each_time(
    late: int, status: str
) -> None:
    tries: list[int] = []

    async def check(subject: Subject) -> None:
        tries.append(len(tries))
        if len(tries) <= late:
            raise BehaviorFailed(f"late {len(tries)}")

    timed = await check_behavior(attrs.evolve(_behavior(check), is_timed=True), TOOL)

    assert (timed.status, timed.detail) == (
        status,
        "" if status == "passed" else "late 3",
    )
    assert len(tries) == 3


async def test_tries_share_the_time_of_a_check() -> None:
    async def check(subject: Subject) -> None:
        if began.is_set():
            await anyio.sleep_forever()
        began.set()
        raise BehaviorFailed("late")

    began = anyio.Event()
    outcome = await check_behavior(
        attrs.evolve(_behavior(check), is_timed=True), TOOL, timeout=0.05
    )

    assert (outcome.status, outcome.detail) == ("failed", "late")


async def test_a_cancellation_of_the_caller_passes() -> None:
    async def check(subject: Subject) -> None:
        scope.cancel()
        await anyio.sleep_forever()

    with anyio.CancelScope() as scope:
        await check_behavior(_behavior(check), TOOL)

    assert scope.cancelled_caught


def test_an_unknown_type_is_an_error_that_names_the_known() -> None:
    with pytest.raises(
        ValueError, match="'agent'; known: tool, provider, hook, orchestrator, context"
    ):
        behaviors("agent")
    with pytest.raises(ValueError, match="kind"):
        Subject(kind="agent", module=None)


def test_samples_of_another_type_are_an_error() -> None:
    with pytest.raises(
        TypeError, match="The samples of a tool are ToolSamples; got HookSamples"
    ):
        Subject(kind="tool", module=None, samples=HookSamples())


@pytest.mark.parametrize("kind", SAMPLES)
def test_behavior_ids_are_stable_and_say_what_to_do(kind: str) -> None:
    found = behaviors(kind)

    assert len({behavior.id for behavior in found}) == len(found)
    for behavior in found:
        assert behavior.id.startswith((f"{kind}.", "module."))
        assert behavior.id.replace(".", "-").replace("-", "").isalpha()
        assert behavior.says.endswith(".")
        assert behavior.fix.endswith(".")


async def test_an_id_is_looked_up_by_the_subjects_own_loader() -> None:
    loader = ModuleLoader(
        modules={"tool-echo": mounting(Echo)}, path=[], search_paths=()
    )
    behavior = _named("tool", "tool.describes-itself")

    known = await check_behavior(
        behavior, Subject(kind="tool", module="tool-echo", loader=loader)
    )
    unknown = await check_behavior(
        behavior, Subject(kind="tool", module="tool-ech", loader=loader)
    )

    assert known.status == "passed"
    assert unknown.status == "failed"
    assert "tool-ech" in unknown.detail


async def test_subject_brings_files_capabilities_and_resources() -> None:
    seen: list[object] = []

    @asynccontextmanager
    async def around() -> AsyncIterator[Mapping[str, JSONValue]]:
        seen.append("opened")
        yield {"address": "somewhere"}
        seen.append("closed")

    async def mount(
        coordinator: Coordinator, config: Mapping[str, JSONValue]
    ) -> object:
        folder = coordinator.get_capability("session.working_dir")
        file = Path(str(folder)) / "docs" / "a.txt"
        seen.append((config, file.read_text(), coordinator.get_capability("clock")))
        return Echo()

    samples = ToolSamples(
        files={"docs/a.txt": "content"}, capabilities={"clock": 5}, around=around
    )
    subject = Subject(kind="tool", module=mount, config={"size": 1}, samples=samples)

    outcome = await check_behavior(_named("tool", "tool.describes-itself"), subject)

    assert outcome.status == "passed"
    assert seen == [
        "opened",
        ({"size": 1, "address": "somewhere"}, "content", 5),
        "closed",
    ]


SCHEMAS: list[JSONObject] = [
    {"type": "object"},
    {
        "type": "object",
        "properties": {"a": {"const": 3}, "b": {"default": "x"}},
        "required": ["a", "b"],
    },
    {
        "type": "object",
        "properties": {"a": {"enum": ["x"]}, "b": {"examples": [4]}},
        "required": ["a", "b"],
    },
    {
        "type": "object",
        "properties": {"a": {"anyOf": [{"type": "integer"}, {"type": "null"}]}},
        "required": ["a"],
    },
    {
        "type": "object",
        "properties": {"a": {"type": ["number", "null"], "minimum": 7}},
        "required": ["a"],
    },
    {
        "type": "object",
        "properties": {"a": {"type": "integer", "exclusiveMinimum": 7}},
        "required": ["a"],
    },
    {
        "type": "object",
        "properties": {"a": {"type": "string", "minLength": 30}},
        "required": ["a"],
    },
    {
        "type": "object",
        "properties": {"a": {"type": "boolean"}, "b": {"type": "null"}},
        "required": ["a", "b"],
    },
    {
        "type": "object",
        "properties": {
            "a": {"type": "array", "items": {"type": "integer"}, "minItems": 3},
            "b": {"type": "array"},
        },
        "required": ["a", "b"],
    },
    {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/place"}},
        "required": ["a"],
        "$defs": {
            "place": {
                "type": "object",
                "properties": {"x": {"type": "number"}},
                "required": ["x"],
            }
        },
    },
    {"type": "object", "properties": {"a": {}, "c": True}, "required": ["a"]},
]


@pytest.mark.parametrize("schema", SCHEMAS, ids=str)
async def test_without_samples_tool_is_called_with_what_fits_schema(
    schema: JSONObject,
) -> None:
    tool = Echo(input_schema=schema)

    outcome = await check_behavior(
        _named("tool", "tool.takes-the-samples-of-its-author"),
        Subject(kind="tool", module=mounting(lambda: tool)),
    )

    assert outcome.status == "passed", outcome.detail


async def test_a_schema_that_refers_to_itself_is_no_endless_example() -> None:
    part: JSONObject = {
        "type": "object",
        "properties": {"next": {"$ref": "#/$defs/part"}},
        "required": ["next"],
    }
    schema: JSONObject = {**part, "$defs": {"part": part}}

    outcome = await check_behavior(
        _named("tool", "tool.returns-json"),
        Subject(
            kind="tool",
            module=mounting(lambda: Echo(input_schema=schema)),
            samples=ToolSamples(),
        ),
    )

    assert outcome.status == "passed", outcome.detail


class Inert(Echo):
    """A tool without a schema that answers nothing of use."""

    async def execute(self, input: JSONObject, /) -> ToolResult:
        return ToolResult(output="x")


async def test_what_a_module_does_not_have_is_skipped_with_the_reason() -> None:
    subject = Subject(kind="tool", module=mounting(lambda: Inert(input_schema={})))
    skipped = {}
    for behavior in behaviors("tool"):
        outcome = await check_behavior(behavior, subject)
        if outcome.status == "skipped":
            skipped[behavior.id] = outcome.detail

    assert skipped["tool.survives-huge-texts"] == "it takes no text"
    assert skipped["tool.survives-extreme-numbers"] == "it takes no numbers"
    assert skipped["tool.obeys-its-deadline"] == "no sample 'slow' is given"
    assert skipped["tool.describes-every-argument"] == "it takes no arguments"


@pytest.mark.parametrize(
    "name",
    ["context.survives-a-cancelled-view", "context.survives-a-cancelled-add"],
)
async def test_what_never_waits_has_no_cancellation_to_survive(name: str) -> None:
    subject = Subject(
        kind="context", module=mounting(MockContextManager, checked=False)
    )

    outcome = await check_behavior(_named("context", name), subject)

    assert outcome.status == "skipped"
    assert outcome.detail == "it never waits, so that nothing can cancel it"


async def test_context_that_waits_for_its_view_survives_its_cancellation() -> None:
    class Waiting(MockContextManager):
        async def get_messages_for_request(
            self, token_budget: int | None = None, provider: Provider | None = None
        ) -> list[MessageDict]:
            await anyio.lowlevel.checkpoint()
            return await super().get_messages_for_request(token_budget, provider)

    subject = Subject(kind="context", module=mounting(Waiting, checked=False))

    outcome = await check_behavior(
        _named("context", "context.survives-a-cancelled-view"), subject
    )

    assert outcome.status == "passed", outcome.detail


async def test_what_is_left_of_refused_module_is_named_whatever_it_is() -> None:
    async def mount(
        coordinator: Coordinator, config: Mapping[str, JSONValue]
    ) -> object:
        coordinator.register_capability("echo.early", 1)
        if config:
            raise ConfigError([Problem(key, "unknown") for key in config])
        return Echo()

    subject = Subject(kind="tool", module=mount)
    outcome = await check_behavior(
        _named("tool", "module.leaves-nothing-when-its-configuration-is-refused"),
        subject,
    )

    assert (outcome.status, outcome.detail) == (
        "failed",
        "Of the capabilities there are left: ['echo.early']",
    )
