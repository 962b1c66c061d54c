"""What is typed while the agent works: when it is read, by whom, and what comes of what is too late."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import anyio
import pytest

from amplifier import AmplifierSession
from amplifier_sdk import HookResult, Loop, Turn
from amplifier_sdk.errors import SessionClosedError, SessionError
from amplifier_sdk.events import PROMPT_SUBMIT, PromptSubmit
from amplifier_sdk.journal import MessageWritten
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.loops.events import STEERING_INJECTED
from amplifier_sdk.streaming import SteeringInjected, TurnFinished
from tests.doubles import (
    MemoryContext,
    MemoryJournal,
    Recorder,
    ScriptedProvider,
    Worker,
    answer,
    build_session,
    call,
    calling,
    mounted_context,
)


class Steered(Loop):
    """Reads what was typed before each request."""

    takes_steering = True

    async def run(self, turn: Turn) -> str:
        while True:
            await turn.take_steering()
            response = await turn.complete()
            if not response.tool_calls:
                return response.text
            await turn.run_tools(response.tool_calls)


def working(*texts: str, session: list[AmplifierSession]) -> Worker:
    """Make a tool during whose work somebody types."""

    async def work(input: JSONObject) -> object:
        for text in texts:
            assert session[0].steer(text) is True
        return "worked"

    return Worker(function=work)


def unread(session: AmplifierSession) -> tuple[str, ...]:
    assert session.last_turn is not None
    return session.last_turn.unread


def asked(provider: ScriptedProvider) -> list[list[tuple[str, str]]]:
    return [
        [(message.role, message.text) for message in request.messages]
        for request in provider.requests
    ]


async def test_what_is_typed_is_read_before_the_next_request() -> None:
    opened: list[AmplifierSession] = []
    provider = ScriptedProvider(calling(call("work")), answer("Both."))
    session = build_session(
        provider=provider,
        loop=Steered(),
        tools=[working("Shorter.", "In French.", session=opened)],
    )
    opened.append(session)
    recorder = Recorder.of(session.coordinator.hooks, STEERING_INJECTED)
    async with session, session.stream("go") as events:
        seen = [event async for event in events]

    assert asked(provider)[1][-2:] == [("user", "Shorter."), ("user", "In French.")]
    assert [event.text for event in seen if isinstance(event, SteeringInjected)] == [
        "Shorter.",
        "In French.",
    ]
    assert [
        (data["text"], data["waiting"]) for data in recorder.data(STEERING_INJECTED)
    ] == [
        ("Shorter.", 1),
        ("In French.", 0),
    ]
    assert isinstance(seen[-1], TurnFinished)
    assert seen[-1].unread == ()


async def test_what_comes_too_late_waits_for_next_turn_and_says_so() -> None:
    provider = ScriptedProvider()
    session = build_session(provider=provider, loop=Steered())

    async def typed_meanwhile(request: object) -> str:
        session.steer("Too late.")
        return "First."

    provider.steps += [typed_meanwhile, answer("Second.")]
    async with session:
        await session.execute("go")
        assert unread(session) == ("Too late.",)
        await session.execute("on")

        assert unread(session) == ()
        texts = [
            m["content"]
            for m in mounted_context(session.coordinator).messages
            if m["role"] == "user"
        ]
    assert texts == ["go", "on", "Too late."]


async def test_between_two_turns_a_text_waits() -> None:
    provider = ScriptedProvider("Hello.")
    async with build_session(provider=provider, loop=Steered()) as session:
        assert session.steer("Be kind.") is False
        await session.execute("go")
    assert asked(provider)[0] == [("user", "go"), ("user", "Be kind.")]


async def test_a_loop_that_reads_nothing_leaves_it() -> None:
    opened: list[AmplifierSession] = []

    async def work(input: JSONObject) -> object:
        assert opened[0].steer("Shorter.") is False
        return "worked"

    async with build_session(
        calling(call("work")), "end", tools=[Worker(function=work)]
    ) as session:
        opened.append(session)
        await session.execute("go")
        assert unread(session) == ("Shorter.",)
        assert session.withdraw_steering() == ("Shorter.",)
        assert session.withdraw_steering() == ()


async def test_it_is_a_capability() -> None:
    async with build_session("Hello.", loop=Steered()) as session:
        steer = cast(
            "Callable[[str], bool]", session.coordinator.get_capability("session.steer")
        )
        assert steer("Be kind.") is False
        assert session.withdraw_steering() == ("Be kind.",)


@pytest.mark.parametrize("text", ["", " \n"])
async def test_an_empty_text_is_refused(text: str) -> None:
    async with build_session(loop=Steered()) as session:
        with pytest.raises(ValueError, match="say what the agent shall do"):
            session.steer(text)


async def test_no_more_than_so_many_texts_wait() -> None:
    async with build_session(loop=Steered()) as session:
        for number in range(32):
            session.steer(f"{number}")
        with pytest.raises(SessionError, match="32 texts wait for the agent already"):
            session.steer("one more")
        assert len(session.withdraw_steering()) == 32


async def test_a_closed_session_takes_nothing() -> None:
    session = build_session(loop=Steered())
    await session.cleanup()
    with pytest.raises(SessionClosedError):
        session.steer("Hello?")


async def test_those_who_decide_on_prompts_decide_on_what_typed_too() -> None:
    provider = ScriptedProvider("Hello.")
    session = build_session(provider=provider, loop=Steered())
    seen: list[object] = []

    def decide(event: str, data: dict[str, object]) -> HookResult | None:
        metadata, prompt = data.get("metadata"), data["prompt"]
        seen.append((prompt, metadata))
        if prompt == "the secret":
            return HookResult.deny("it is secret")
        return HookResult.modify(
            {"prompt": {"Loud!": "Soft.", "Odd": 7}.get(str(prompt), prompt)}
        )

    async with session:
        session.coordinator.hooks.register("prompt:submit", decide)
        for text in ("the secret", "Loud!", "Odd"):
            session.steer(text)
        await session.execute("go")
    assert asked(provider)[0] == [("user", "go"), ("user", "Soft.")]
    assert seen == [
        ("go", None),
        *(
            (text, {"steering": True, "typed": True})
            for text in ("the secret", "Loud!", "Odd")
        ),
    ]


async def test_turn_that_ends_while_text_is_stored_has_not_read_it() -> None:
    context = MemoryContext()
    storing = anyio.Event()

    async def wait(message: object) -> None:
        if len(context.messages) == 1:
            storing.set()
            await anyio.sleep_forever()

    context.on_add = wait
    session = build_session("Hello.", loop=Steered(), context=context)
    async with session:
        session.steer("Be kind.")
        with anyio.fail_after(5):
            async with anyio.create_task_group() as group:
                group.start_soon(session.execute, "go")
                await storing.wait()
                group.cancel_scope.cancel()
        assert session.withdraw_steering() == ("Be kind.",)


async def test_what_was_typed_meanwhile_is_written_before_it_enters() -> None:
    journal = MemoryJournal()
    session = build_session("end", loop=Steered(), journal=journal)
    async with session:
        session.steer("Be kind.")
        await session.execute("go")

    _, written, *_ = journal.records
    assert written == MessageWritten(
        turn_id=written.turn_id, message={"role": "user", "content": "Be kind."}
    )


async def test_what_cannot_be_written_does_not_enter() -> None:
    journal = MemoryJournal(fails_at=1)
    session = build_session("end", loop=Steered(), journal=journal)
    async with session:
        session.steer("Be kind.")
        with pytest.raises(OSError, match="no space left"):
            await session.execute("go")
        history = mounted_context(session.coordinator).messages

    assert "Be kind." not in [message["content"] for message in history]
    assert session.withdraw_steering() == ("Be kind.",)


async def test_what_a_module_says_does_not_count_as_typed() -> None:
    """Neither by the capability nor by the session itself, which it can reach."""
    submitted: list[tuple[object, object]] = []

    def note(event: str, data: PromptSubmit) -> None:
        metadata = data.get("metadata", {})
        if metadata.get("steering"):
            submitted.append((data["prompt"], metadata["typed"]))

    async def work(input: JSONObject) -> object:
        steer = session.coordinator.get_capability("session.steer")
        assert callable(steer)
        assert steer("by the capability") is True
        assert session.steer("by the session") is True
        return "worked"

    session = build_session(
        calling(call("work")),
        answer("end"),
        loop=Steered(),
        tools=[Worker(function=work)],
    )
    session.coordinator.hooks.register(PROMPT_SUBMIT, note)
    async with session:
        session.steer("typed")
        await session.execute("go")

    assert submitted == [
        ("typed", True),
        ("by the capability", False),
        ("by the session", False),
    ]
