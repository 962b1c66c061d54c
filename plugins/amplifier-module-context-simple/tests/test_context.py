"""The context: what a plan configures, what stays when it is cleared, and a session that outgrows its window."""

from __future__ import annotations

from itertools import pairwise

import pytest

from amplifier import AmplifierSession, ModuleCoordinator, ModuleLoader
from amplifier.testing import EventRecorder, ScriptedProvider, answer, call, mounting
from amplifier_module_context_simple import ContextConfig, SimpleContext
from amplifier_sdk import (
    ConfigError,
    ContextManager,
    JSONValue,
    Loop,
    MessageDict,
    Turn,
    orchestrator,
    tool,
)
from amplifier_sdk.checks import check_instance
from amplifier_sdk.configuration import read_config
from amplifier_sdk.modules import definition_of


def turn(number: int) -> list[MessageDict]:
    text = f"{'word ' * 99}{number}"
    return [{"role": "user", "content": text}, {"role": "assistant", "content": text}]


async def mounted(**settings: JSONValue) -> SimpleContext:
    definition = definition_of(SimpleContext)
    assert definition is not None
    context = await definition.mount(ModuleCoordinator(), settings)
    assert isinstance(context, SimpleContext)
    return context


async def test_it_is_a_context_manager() -> None:
    context = await mounted()

    assert isinstance(context, ContextManager)
    assert check_instance("context", context) == []


async def test_instructions_come_first_and_survive_clearing() -> None:
    context = await mounted(system_prompt="Be brief.")
    await context.add_message(turn(1)[0])
    before = list(await context.get_messages())

    await context.clear()

    assert before == [{"role": "system", "content": "Be brief."}, turn(1)[0]]
    assert await context.get_messages() == [{"role": "system", "content": "Be brief."}]


async def test_clearing_without_instructions_keeps_nothing() -> None:
    context = await mounted()
    await context.add_message(turn(1)[0])

    await context.clear()

    assert await context.get_messages() == []
    assert await context.get_token_count() == 0


async def test_a_resumed_history_replaces_the_instructions_too() -> None:
    context = await mounted(system_prompt="Be brief.")

    await context.set_messages(turn(9))

    assert await context.get_messages() == turn(9)


@pytest.mark.parametrize(
    "message",
    [{"content": "who?"}, {"role": 7, "content": "x"}],
    ids=["none", "number"],
)
async def test_a_message_without_a_role_is_refused(message: MessageDict) -> None:
    context = await mounted()

    with pytest.raises(ValueError, match="needs a 'role'"):
        await context.add_message(message)
    assert await context.get_messages() == []


def test_a_setting_that_nobody_knows_is_named() -> None:
    with pytest.raises(ConfigError, match="treshold: unknown"):
        read_config(ContextConfig, {"treshold": 0.5}, subject="context")


@tool
async def read_page(number: int) -> str:
    """Read a page.

    Args:
        number: which one.
    """
    return f"This is page {number}. " + "word " * 300


@orchestrator
class Steps(Loop):
    """Asks until there is an answer."""

    name = "steps"

    async def run(self, turn: Turn) -> str:
        while (response := await turn.complete()).tool_calls:
            await turn.run_tools(response.tool_calls)
        return response.text


async def test_turn_outgrows_window_and_model_reads_what_is_left_out() -> None:
    steps = [answer(call("read_page", {"number": number})) for number in range(12)]
    back = answer(call("read_left_out", {"first": 3}))
    model = ScriptedProvider(
        *steps, back, "Done.", context_window=2_000, max_output_tokens=200
    )
    modules = {
        "steps": Steps,
        "context-simple": SimpleContext,
        "provider": mounting(model),
        "read": read_page,
    }
    plan = {
        "session": {"orchestrator": "steps", "context": "context-simple"},
        "context": {"config": {"system_prompt": "Read.", "left_out_tool": True}},
        "providers": ["provider"],
        "tools": ["read"],
    }

    async with AmplifierSession(plan, ModuleLoader(modules=modules)) as session:
        recorder = EventRecorder.of(session.coordinator.hooks)
        done = await session.execute("Read all pages.")
        history = list(await session.coordinator.context.get_messages())

    views = [
        [message.to_dict() for message in request.messages]
        for request in model.requests
    ]
    goes_on = [later[: len(view)] == view for view, later in pairwise(views)]
    assert done == "Done."
    assert goes_on.count(False) == len(recorder.data("context:compaction")) > 1
    assert all(view[0] == {"role": "system", "content": "Read."} for view in views)
    assert any(
        "the tool read_left_out" in str(message["content"]) for message in views[-1]
    )
    assert "This is page 0." in str(views[-1][-1]["content"])
    assert len(history) == 2 + 13 * 2 + 1
    assert recorder.data("user:notification") == []
