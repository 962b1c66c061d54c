"""How the samples of the orchestrator contract are run: as parts of a loop, in sessions."""

from __future__ import annotations

import json
from types import SimpleNamespace

from amplifier import HookRegistry
from amplifier.testing import (
    EventRecorder,
    MockApprovalSystem,
    MockContextManager,
    MockOrchestrator,
    MockTool,
    ScriptedProvider,
    answer,
    call,
    create_test_session,
)
from amplifier.testing.sessions import mounting
from amplifier_sdk import (
    ChatRequest,
    ContextManager,
    Emission,
    HookResult,
    Hooks,
    JSONValue,
    Message,
    Orchestrator,
    Provider,
    Tool,
    ToolResult,
)
from amplifier_sdk.history import diagnose
from tests.seeds.preamble import names
from tests.seeds.runs.tools import parameters_of
from tests.seeds.samples import Sample


async def protocol(sample: Sample) -> None:
    ran = await sample.run(names())
    assert isinstance(MockOrchestrator(), ran.Orchestrator)
    ours = parameters_of(Orchestrator.execute)
    assert ours == parameters_of(ran.Orchestrator.execute)


class MyOrchestrator:
    """What the samples leave to their reader: asks once, and stores what was said."""

    def __init__(self, config: dict[str, object]) -> None:
        self.config = config

    async def execute(
        self,
        prompt: str,
        context: ContextManager,
        providers: dict[str, Provider],
        tools: dict[str, Tool],
        hooks: Hooks,
    ) -> str:
        await context.add_message({"role": "user", "content": prompt})
        request = ChatRequest(messages=[Message(role="user", content=prompt)])
        (provider,) = providers.values()
        return (await provider.complete(request)).text


async def mounted(sample: Sample) -> None:
    ran = await sample.run(names(MyOrchestrator=MyOrchestrator))
    async with create_test_session("Hi.", orchestrator=ran.mount) as session:
        assert await session.execute("go") == "Hi."
        found = session.coordinator.get("session", "orchestrator")
    assert isinstance(found, MyOrchestrator)


async def emitted(sample: Sample) -> None:
    """Run `execute` with a provider and a tool of a session: its events are heard once each, with its data."""
    scope = names()

    class Parts(MyOrchestrator):
        async def execute(
            self,
            prompt: str,
            context: ContextManager,
            providers: dict[str, Provider],
            tools: dict[str, Tool],
            hooks: Hooks,
        ) -> str:
            request = ChatRequest(messages=[Message(role="user", content=prompt)])
            vars(scope).update(
                provider_name="scripted",
                model_name="m",
                messages=[{"role": "user", "content": prompt}],
                provider=providers["scripted"],
                request=request,
                tool_call=call("work", {"a": 1}),
                tool=tools["work"],
            )
            ran = await sample.run(scope)
            await ran.execute(self, prompt, context, providers, tools, hooks)
            return "Done."

    recorder, tool = EventRecorder(), MockTool("work", "worked")
    async with create_test_session(
        "Hi.",
        orchestrator=mounting(Parts({})),
        tools=[mounting(tool)],
        hooks=[recorder],
    ) as session:
        assert await session.execute("go") == "Done."
    assert tool.calls == [{"a": 1}]
    heard = [name for name in recorder.names if name.split(":")[0] != "session"]
    wanted = ["provider:request", "provider:response", "tool:pre", "tool:post"]
    assert [name for name in heard if name in wanted] == wanted
    response = recorder.one("provider:response")
    assert response["usage"] is not None
    assert recorder.one("tool:post")["tool_input"] == {"a": 1}


async def decided(sample: Sample) -> None:
    """Let each action be answered to `tool:pre`: the loop of the sample does what the action says."""
    results = {
        "deny": HookResult(action="deny", reason="Access denied"),
        "modify": HookResult(action="modify", data={"tool_input": {"a": 2}}),
        "inject_context": HookResult(
            action="inject_context", context_injection="Mind the gap"
        ),
        "ask_user": HookResult(action="ask_user", approval_prompt="Sure?"),
    }
    outcomes: dict[str, object] = {}
    read: dict[str, str] = {}
    for action, result in results.items():

        async def handle(
            event: str, data: dict[str, object], result: HookResult = result
        ) -> HookResult:
            return result

        class Decides(MyOrchestrator):
            async def execute(
                self,
                prompt: str,
                context: ContextManager,
                providers: dict[str, Provider],
                tools: dict[str, Tool],
                hooks: Hooks,
            ) -> str:
                async def request_approval(emission: Emission) -> bool:
                    host = hooks.host
                    answered = await host.process_hook_result(emission, "tool:pre")
                    return not answered.denied

                head = "async def decide(hooks, context, data):"
                scope = names(request_approval=request_approval)
                ran = await sample.run(scope, head, "return data")
                data = {"tool_name": "other", "tool_input": {"a": 1}}
                outcomes[action] = await ran.decide(hooks, context, data)  # noqa: B023  # called in this round
                return "Done."

        async with create_test_session(
            orchestrator=mounting(Decides({})),
            approval_system=MockApprovalSystem("Deny"),
        ) as session:
            session.coordinator.hooks.register("tool:pre", handle)
            assert await session.execute("go") == "Done."
            read[action] = str(await session.coordinator.context.get_messages())
    assert outcomes["deny"] == ToolResult(is_error=True, output="Access denied")
    assert outcomes["ask_user"] == ToolResult(is_error=True, output="User denied")
    modified = outcomes["modify"]
    assert isinstance(modified, dict)
    assert modified["tool_input"] == {"a": 2}
    assert "Mind the gap" in read["inject_context"]
    assert "Mind the gap" not in read["deny"]


async def stored(sample: Sample) -> None:
    """Store an answer of blocks and a result of any kind as the lines do; the history is plain, and is sent."""
    outputs: list[JSONValue] = [
        "text",
        {"found": ["a"]},
        [1, 2],
        [{"name": "a"}],
        None,
        True,
    ]
    for output in outputs:
        provider = ScriptedProvider(answer("Let me see.", call("work")), "Done.")

        class Stores(MyOrchestrator):
            async def execute(
                self,
                prompt: str,
                context: ContextManager,
                providers: dict[str, Provider],
                tools: dict[str, Tool],
                hooks: Hooks,
            ) -> str:
                provider = providers["scripted"]
                request = ChatRequest(messages=[Message(role="user", content=prompt)])
                response = await provider.complete(request)
                tool_call = provider.parse_tool_calls(response)[0]
                result = await tools["work"].execute(tool_call.input)
                scope = SimpleNamespace(
                    context=context,
                    prompt=prompt,
                    response=response,
                    tool_call=tool_call,
                    result=result,
                )
                ran = await sample.run(scope)
                read = [Message.from_dict(message) for message in ran.messages]
                return (await provider.complete(ChatRequest(messages=read))).text

        async with create_test_session(
            orchestrator=mounting(Stores({})),
            provider=mounting(provider),
            tools=[mounting(MockTool("work", output))],
        ) as session:
            assert await session.execute("go") == "Done."
            messages = await session.coordinator.context.get_messages()
        assert json.loads(json.dumps(messages)) == messages
        assert diagnose(messages) == ()
        shown = messages[2]["content"]
        if output is None or isinstance(output, str):
            assert shown == output
        else:
            assert shown == json.dumps(output)
        assert [role for role, _ in provider.last_messages] == [
            "user",
            "assistant",
            "tool",
        ]


async def chosen(sample: Sample) -> None:
    providers = {"a": ScriptedProvider(), "b": ScriptedProvider()}
    first, second = sample.parts("# Or allow")
    for config, wanted in [({}, "a"), ({"default_provider": "b"}, "b")]:
        ran = await first.run(names(config=config, providers=providers))
        assert (ran.provider_name, ran.provider) == (wanted, providers[wanted])
        for options in ({}, {"provider": "b"}):
            scope = names(request_options=options, default_provider_name=wanted)
            ran = await second.run(scope)
            assert ran.provider_name == options.get("provider", wanted)


async def testing(sample: Sample) -> None:
    provider = ScriptedProvider("Hi.")

    def mock_provider() -> ScriptedProvider:
        return provider

    tests = await sample.run(
        names(MyOrchestrator=MyOrchestrator, MockProvider=mock_provider)
    )
    await tests.test_orchestrator_basic()
    assert provider.last_messages == [("user", "Test prompt")]


async def scripted(sample: Sample) -> None:
    rest = {
        "prompt": "go",
        "context": MockContextManager(),
        "providers": {},
        "tools": {},
        "hooks": HookRegistry(),
    }
    ran = await sample.run(names(rest=rest))
    async with create_test_session(orchestrator=mounting(ran.orchestrator)) as session:
        assert await session.execute("two") == "Response 2"


async def older_protocol(sample: Sample) -> None:
    """The older specification lists hooks in place of their registry; the parameters are the same."""
    older = dict.fromkeys(
        ("ProviderModule", "ToolModule", "HookModule", "Response"), object
    )
    ran = await sample.run(names(**older))
    theirs = parameters_of(ran.OrchestratorModule.execute)
    assert theirs == parameters_of(Orchestrator.execute)
