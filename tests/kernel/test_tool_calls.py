"""One tool call: whatever happens in it, the model gets one precise result and the session goes on."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, MutableMapping

import anyio
import pytest

from amplifier import AmplifierSession
from amplifier_sdk import tool
from amplifier_sdk.chat import ToolCall
from amplifier_sdk.contracts import ContextManager, Hooks, Provider, Tool
from amplifier_sdk.errors import ToolError
from amplifier_sdk.events import TOOL_ERROR, TOOL_POST, TOOL_PRE
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.results import HookResult, ToolResult
from amplifier_sdk.toolinfo import ToolInfo
from tests.doubles import (
    Blocking,
    EchoLoop,
    MemoryContext,
    PlainLoop,
    Recorder,
    ScriptedProvider,
    Sentry,
    Worker,
    build_loader,
    build_plan,
    build_session,
    call,
    calling,
    mounted_context,
    only_result,
)

Reports = list[MutableMapping[str, object]]

NUMBER: Mapping[str, JSONValue] = {
    "type": "object",
    "properties": {"x": {"type": "integer"}},
    "required": ["x"],
    "additionalProperties": False,
}


async def the_result(model_call: ToolCall, *tools: object) -> str:
    """Let a model make one call; return the text it gets back."""
    with anyio.fail_after(5):
        async with build_session(calling(model_call), "end", tools=tools) as session:
            assert await session.execute("go") == "end"
            return only_result(mounted_context(session.coordinator).messages)


async def test_a_call_runs_its_tool_and_answers_with_the_output() -> None:
    worker = Worker("add", input_schema=NUMBER)

    assert await the_result(call("add", {"x": 2}), worker) == "done"
    assert worker.inputs == [{"x": 2}]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({}, "- x: missing; expected an integer"),
        ({"x": "2"}, '- x: expected an integer, got a string ("2")'),
        ({"x": 1, "xs": 2}, "- xs: unknown; did you mean 'x'?"),
    ],
)
async def test_arguments_that_do_not_fit_run_nothing_and_say_where(
    arguments: JSONObject, problem: str
) -> None:
    worker = Worker("add", input_schema=NUMBER)

    text = await the_result(call("add", arguments), worker)

    assert text.splitlines() == [
        "Error: The arguments of 'add' do not fit its schema:",
        problem,
    ]
    assert worker.inputs == []


async def test_arguments_that_could_not_be_read_run_nothing() -> None:
    worker = Worker()
    garbled = ToolCall(
        id="c",
        name="work",
        raw_arguments='{"x": ',
        problem="The arguments could not be read.",
    )

    assert (
        await the_result(garbled, worker) == "Error: The arguments could not be read."
    )
    assert worker.inputs == []


async def test_unknown_tool_is_answered_with_nearest_and_known_ones() -> None:
    text = await the_result(call("serch"), Worker("search"), Worker("read"))

    assert (
        text
        == "Error: There is no tool 'serch'; did you mean 'search'? Available: read, search"
    )


async def test_without_tools_an_unknown_tool_says_so() -> None:
    assert await the_result(call("x")) == "Error: There is no tool 'x'. Available: none"


async def raise_tool_error(input: JSONObject) -> object:
    raise ToolError("No such page", status=404)


async def raise_error(input: JSONObject) -> object:
    raise RuntimeError("boom")


async def raise_silent(input: JSONObject) -> object:
    raise KeyError


async def leave(input: JSONObject) -> object:
    raise SystemExit("bye")


@pytest.mark.parametrize(
    ("function", "text", "error"),
    [
        (raise_error, "Error: boom", {"message": "boom", "type": "RuntimeError"}),
        (raise_silent, "Error: KeyError", {"message": "KeyError", "type": "KeyError"}),
        (leave, "Error: bye", {"message": "bye", "type": "SystemExit"}),
    ],
)
async def test_a_tool_that_raises_fails_alone(
    function: Callable[[JSONObject], object],
    text: str,
    error: dict[str, object],
    reports: Reports,
) -> None:
    worker = Worker(function=function)  # type: ignore[arg-type]  # each is an async function
    session = build_session(calling(call("work")), "end", tools=[worker])
    recorder = Recorder.of(session.coordinator.hooks, "tool:*")
    async with session:
        assert await session.execute("go") == "end"

        assert only_result(mounted_context(session.coordinator).messages) == text
    assert recorder.names == [TOOL_PRE, TOOL_ERROR]
    assert recorder.one(TOOL_ERROR)["error"] == {**error, "msg": error["message"]}
    assert [report["event"] for report in reports] == ["tool.failed"]


async def test_a_tool_error_is_a_result_that_the_tool_meant(reports: Reports) -> None:
    session = build_session(
        calling(call("work")), "end", tools=[Worker(function=raise_tool_error)]
    )
    recorder = Recorder.of(session.coordinator.hooks, "tool:*")
    async with session:
        await session.execute("go")

        assert (
            only_result(mounted_context(session.coordinator).messages)
            == 'Error: No such page\n{"status": 404}'
        )
    assert recorder.names == [TOOL_PRE, TOOL_POST]
    assert reports == []


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (raise_tool_error, 'Error: No such page\n{"status": 404}'),
        (raise_error, "Error: boom"),
    ],
)
async def test_a_tool_with_task_groups_fails_as_one_without(
    function: Callable[[JSONObject], Coroutine[object, object, object]], text: str
) -> None:
    async def work(input: JSONObject) -> None:
        async with (
            anyio.create_task_group() as outer,
            anyio.create_task_group() as inner,
        ):
            outer.start_soon(anyio.sleep_forever)
            inner.start_soon(function, input)

    async with build_session(
        calling(call("work")), "end", tools=[Worker(function=work)]
    ) as session:
        await session.execute("go")

        assert only_result(mounted_context(session.coordinator).messages) == text


async def test_a_failed_result_of_a_tool_is_a_result() -> None:
    async def refuse(input: JSONObject) -> object:
        return ToolResult.failure("not today")

    session = build_session(
        calling(call("work")), "end", tools=[Worker(function=refuse)]
    )
    recorder = Recorder.of(session.coordinator.hooks, "tool:*")
    async with session:
        await session.execute("go")

    assert recorder.names == [TOOL_PRE, TOOL_POST]
    assert session.spending.tool_failures == 1


async def test_a_tool_that_hangs_is_stopped_at_its_deadline() -> None:
    blocking = Blocking()
    with anyio.fail_after(5):
        async with build_session(
            calling(call("block")),
            "end",
            tools=[blocking],
            limits={"tool_timeout": 0.01},
        ) as session:
            assert await session.execute("go") == "end"

            text = only_result(mounted_context(session.coordinator).messages)
            assert text == "Error: Tool 'block' did not finish within 0.01 s"
    assert blocking.ended == "cancelled"


async def test_a_tool_that_returns_nonsense_is_named(reports: Reports) -> None:
    class Liar(Worker):
        async def execute(self, input: JSONObject, /) -> ToolResult:
            return "fine"  # type: ignore[return-value]

    assert (
        await the_result(call("work"), Liar())
        == "Error: Tool 'work' returned str; it must return a ToolResult"
    )
    assert [report["event"] for report in reports] == ["tool.returned_nonsense"]


async def test_a_tool_whose_schema_cannot_be_read_fails_alone(reports: Reports) -> None:
    class Shy(Worker):
        @property
        def input_schema(self) -> Mapping[str, JSONValue]:
            raise OSError("no schema")

        @input_schema.setter
        def input_schema(self, value: object) -> None: ...

    shy = Shy("shy")
    session = build_session(tools=[shy, Worker()])
    async with session:
        host = session.coordinator.host
        tools = session.coordinator.tools
        results = await host.run_tools([call("shy"), call("work")], tools)

    assert [result.success for result in results] == [False, True]
    assert results[0].error is not None
    assert (
        results[0].error["message"]
        == "The tool cannot be used: its schema cannot be read (OSError: no schema)"
    )
    assert [report["event"] for report in reports] == ["tool.schema_failed"]


async def test_a_schema_that_is_no_schema_is_the_tool_s_failure() -> None:
    worker = Worker(input_schema={"type": "objct"})

    text = await the_result(call("work"), worker)

    assert text.startswith(
        "Error: The tool cannot be used: its schema cannot be read (ValueError: The schema of tool"
    )
    assert worker.inputs == []


async def test_a_schema_that_changes_is_read_again() -> None:
    worker = Worker(input_schema=NUMBER)
    async with build_session(tools=[worker]) as session:
        host, tools = session.coordinator.host, session.coordinator.tools
        assert (await host.run_tool(call("work", {"x": 1}), tools)).success
        assert (await host.run_tool(call("work", {"x": 2}), tools)).success

        worker.input_schema = {
            "type": "object",
            "properties": {"x": {"type": "string"}},
        }

        assert not (await host.run_tool(call("work", {"x": 1}), tools)).success
        assert (await host.run_tool(call("work", {"x": "1"}), tools)).success


async def test_the_events_of_a_call_carry_all_of_it() -> None:
    worker = Worker(input_schema=NUMBER)
    session = build_session(
        calling(call("work", {"x": 1}), call("work", {"x": 2}, id="b")),
        "end",
        tools=[worker],
    )
    recorder = Recorder.of(session.coordinator.hooks, "tool:*")
    async with session:
        await session.execute("go")

    (first, second), posts = recorder.all(TOOL_PRE), recorder.all(TOOL_POST)
    assert (first["tool_name"], first["tool_input"], first["tool_call_id"]) == (
        "work",
        {"x": 1},
        "id-work",
    )
    assert (second["tool_input"], second["tool_call_id"]) == ({"x": 2}, "b")
    described = first["tool_obj"]
    assert isinstance(described, ToolInfo)
    assert (described.name, described.description, described.input_schema) == (
        "work",
        worker.description,
        NUMBER,
    )
    assert described.is_of(worker)
    assert first["parallel_group_id"] == second["parallel_group_id"] is not None
    assert [post["result"] is post["tool_result"] for post in posts] == [True, True]
    assert all(isinstance(post["duration"], float) for post in posts)


async def test_a_lone_call_is_in_no_group() -> None:
    session = build_session(calling(call("work")), "end", tools=[Worker()])
    recorder = Recorder.of(session.coordinator.hooks, "tool:pre")
    async with session:
        await session.execute("go")

    assert recorder.one(TOOL_PRE)["parallel_group_id"] is None


async def test_results_stand_in_order_of_calls_whoever_is_first() -> None:
    second_done = anyio.Event()

    async def first(input: JSONObject) -> object:
        await second_done.wait()
        return "one"

    async def second(input: JSONObject) -> object:
        second_done.set()
        return "two"

    tools = [Worker("first", first), Worker("second", second)]
    with anyio.fail_after(5):
        async with build_session(
            calling(call("first"), call("second")), "end", tools=tools
        ) as session:
            await session.execute("go")

            assert list(mounted_context(session.coordinator).results.items()) == [
                ("id-first", "one"),
                ("id-second", "two"),
            ]


@pytest.mark.parametrize("limit", [1, 3, 8])
async def test_at_most_so_many_calls_run_at_once_as_the_limit_says(limit: int) -> None:
    running = most = 0

    async def count(input: JSONObject) -> object:
        nonlocal running, most
        running += 1
        most = max(most, running)
        for _ in range(5):
            await anyio.lowlevel.checkpoint()
        running -= 1
        return "done"

    calls = [call("work", id=f"c{n}") for n in range(12)]
    worker = Worker(function=count)
    async with build_session(
        calling(*calls), "end", tools=[worker], limits={"parallel_tools": limit}
    ) as session:
        await session.execute("go")

        assert list(mounted_context(session.coordinator).results) == [
            f"c{n}" for n in range(12)
        ]
    assert most == limit


async def test_no_call_runs_beside_an_exclusive_one() -> None:
    running: set[str] = set()
    beside: dict[str, set[str]] = {}

    def noting(name: str) -> Worker:
        async def work(input: JSONObject) -> object:
            running.add(name)
            for _ in range(3):
                await anyio.lowlevel.checkpoint()
                beside.setdefault(name, set()).update(running - {name})
            running.discard(name)
            return name

        return Worker(name, work, exclusive=name == "alone")

    names = ["a", "b", "alone", "c", "d", "alone"]
    calls = [call(name, id=f"{name}{n}") for n, name in enumerate(names)]
    tools = [noting(name) for name in dict.fromkeys(names)]
    async with build_session(calling(*calls), "end", tools=tools) as session:
        await session.execute("go")

        assert list(mounted_context(session.coordinator).results.values()) == names
    assert beside == {"a": {"b"}, "b": {"a"}, "alone": set(), "c": {"d"}, "d": {"c"}}


async def test_an_exclusive_function_tool_says_so() -> None:
    order: list[str] = []

    @tool(exclusive=True)
    async def alone() -> str:
        """Run alone."""
        order.append("in")
        await anyio.lowlevel.checkpoint()
        order.append("out")
        return "done"

    calls = [call("alone", id="a"), call("alone", id="b")]
    async with build_session(calling(*calls), "end", tools=[alone]) as session:
        await session.execute("go")

    assert order == ["in", "out", "in", "out"]


# -- loops written by hand


async def by_hand(
    *inputs: JSONValue,
    tools: list[object],
    handlers: Mapping[str, object] | None = None,
) -> list[ToolResult]:
    """Call the first tool a loop receives, directly, and return the results."""
    results: list[ToolResult] = []

    async def run(
        prompt: str,
        context: ContextManager,
        providers: dict[str, Provider],
        given: dict[str, Tool],
        hooks: Hooks,
    ) -> str:
        first = next(iter(given.values()))
        results.extend([await first.execute(input) for input in inputs])  # type: ignore[arg-type]  # a loop may err
        return "end"

    session = build_session(loop=PlainLoop(run), tools=tools)
    for event, handler in (handlers or {}).items():
        session.coordinator.hooks.register(event, handler, name="guard")  # type: ignore[call-overload]
    async with session:
        await session.execute("go")
    return results


async def test_a_tool_called_by_hand_is_still_checked() -> None:
    worker = Worker(input_schema=NUMBER)

    results = await by_hand({"x": 1}, {"x": "one"}, "no object", tools=[worker])

    assert [result.success for result in results] == [True, False, False]
    assert (
        results[2].get_serialized_output()
        == "Error: The arguments of 'work' are an object; got str"
    )
    assert worker.inputs == [{"x": 1}]


async def test_a_tool_called_by_hand_is_still_decided_on() -> None:
    worker = Worker()

    (result,) = await by_hand(
        {}, tools=[worker], handlers={TOOL_PRE: Sentry([HookResult.deny("policy")])}
    )

    assert result.get_serialized_output() == "Error: Denied by guard: policy"
    assert worker.inputs == []


async def test_a_received_tool_reads_like_the_tool_itself() -> None:
    seen: list[object] = []

    class Old(Worker):
        input_schema = None  # type: ignore[assignment]
        colour = "red"

        def get_schema(self) -> Mapping[str, JSONValue]:
            return NUMBER

    async def run(
        prompt: str,
        context: ContextManager,
        providers: dict[str, Provider],
        given: dict[str, Tool],
        hooks: Hooks,
    ) -> str:
        proxy = given["old"]
        seen.extend([proxy.name, proxy.description, proxy.input_schema, proxy.colour])  # type: ignore[attr-defined]
        assert not hasattr(proxy, "weight")
        return "end"

    old = Old("old", None, None)  # type: ignore[arg-type]
    async with build_session(loop=PlainLoop(run), tools=[old]) as session:
        await session.execute("go")

    assert seen == ["old", "Works.", NUMBER, "red"]


async def test_a_tool_with_an_instance_id_is_called_by_that_name() -> None:
    worker = Worker("calculator")
    provider = ScriptedProvider(calling(call("exact")), "end")
    modules = {
        "loop": EchoLoop(),
        "context": MemoryContext(),
        "provider": provider,
        "tool": worker,
    }
    plan = build_plan(
        providers=["provider"], tools=[{"module": "tool", "instance_id": "exact"}]
    )
    async with AmplifierSession(plan, build_loader(modules)) as session:
        await session.execute("go")

        assert only_result(mounted_context(session.coordinator).messages) == "done"
    assert [spec.name for spec in provider.requests[0].tools or ()] == ["exact"]
