"""What of its parent's conversation an agent begins with."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amplifier.testing import MockContextManager, answer, call
from amplifier_module_tool_task.forms import Form, Scope
from amplifier_module_tool_task.inheritance import inherited
from amplifier_sdk.history import diagnose
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.messages import Message, MessageDict

Team: TypeAlias = Any  # type: ignore[explicit-any]  # the class is conftest.py's
Build: TypeAlias = Callable[..., Team]  # type: ignore[explicit-any]  # its options go by name


def user(text: str) -> MessageDict:
    return {"role": "user", "content": text}


def said(text: str, *calls: tuple[str, str]) -> MessageDict:
    blocks: list[JSONValue] = [{"type": "text", "text": text}] if text else []
    blocks += [
        {"type": "tool_call", "id": id, "name": name, "input": {"of": id}}
        for id, name in calls
    ]
    return {"role": "assistant", "content": blocks}


def result(id: str, text: JSONValue, name: str = "look") -> MessageDict:
    return {"role": "tool", "tool_call_id": id, "name": name, "content": text}


HISTORY: tuple[MessageDict, ...] = (
    {"role": "system", "content": "Obey the house."},
    user("First?"),
    said("I look.", ("1", "look"), ("2", "task")),
    result("1", "seen"),
    result("2", "answered", "task"),
    said("First."),
    user("Second?"),
    said("Second."),
    user("Third?"),
)


def stored(made: Team, agent: str = "finder") -> list[tuple[str, str]]:
    """What the agent begins with, without the note on top and its own task."""
    messages = made.said(agent)
    assert messages[0][1].startswith("[Background: ")
    assert messages[-1] == ("user", "Find it.")
    return list(messages[1:-1])


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (
            {"inherit_context": "recent", "inherit_context_turns": 1},
            ["Third?", "Let me ask."],
        ),
        (
            {"inherit_context": "recent", "inherit_context_turns": 2},
            ["Second?", "Second.", "Third?", "Let me ask."],
        ),
        (
            {"inherit_context": "recent"},
            [
                "First?",
                "I look.",
                "First.",
                "Second?",
                "Second.",
                "Third?",
                "Let me ask.",
            ],
        ),
        (
            {"inherit_context": "all"},
            [
                "First?",
                "I look.",
                "First.",
                "Second?",
                "Second.",
                "Third?",
                "Let me ask.",
            ],
        ),
        (
            {"inherit_context": "all", "context_scope": "agents"},
            [
                "First?",
                "I look.",
                "answered",
                "First.",
                "Second?",
                "Second.",
                "Third?",
                "Let me ask.",
            ],
        ),
        (
            {"inherit_context": "all", "context_scope": "full"},
            [
                "First?",
                "I look.",
                "seen",
                "answered",
                "First.",
                "Second?",
                "Second.",
                "Third?",
                "Let me ask.",
            ],
        ),
    ],
    ids=["one", "two", "recent", "all", "agents", "full"],
)
async def test_an_agent_begins_with_so_much_of_the_conversation(
    team: Build, arguments: dict[str, JSONValue], expected: list[str]
) -> None:
    delegating = answer(
        "Let me ask.",
        call("task", {"agent": "finder", "instruction": "Find it.", **arguments}),
    )
    made = team(
        {"": [delegating, "Done."], "finder": ["found"]},
        context=lambda: MockContextManager(HISTORY[:-1]),
    )
    async with made.session as session:
        await session.execute("Third?")

    assert [text for _, text in stored(made)] == expected
    history = [message.to_dict() for message in made.requests("finder")[0].messages]
    assert diagnose(history) == ()


async def test_without_the_wish_an_agent_begins_with_its_task_alone(
    team: Build,
) -> None:
    made = team({"finder": ["found"]}, context=lambda: MockContextManager(HISTORY))
    async with made.session:
        await made.call(agent="finder", instruction="Find it.")

    assert made.said("finder") == [("user", "Find it.")]


async def test_what_a_tool_returned_keeps_its_role(team: Build) -> None:
    made = team({"finder": ["found"]}, context=lambda: MockContextManager(HISTORY))
    async with made.session:
        await made.call(
            agent="finder",
            instruction="Find it.",
            inherit_context="all",
            context_scope="full",
        )

    roles = {text: role for role, text in stored(made)}
    assert (roles["seen"], roles["answered"], roles["First?"], roles["First."]) == (
        "tool",
        "tool",
        "user",
        "assistant",
    )
    assert "Obey the house." not in roles


async def test_a_copy_of_the_session_has_its_system_message(team: Build) -> None:
    made = team({"": ["copied", "copied"]}, context=lambda: MockContextManager(HISTORY))
    async with made.session:
        await made.call(agent="self", instruction="Find it.")
        await made.call(
            agent="self",
            instruction="Find it.",
            inherit_context="recent",
            inherit_context_turns=1,
        )

    first, second = (
        [(m.role, m.text) for m in request.messages]
        for request in made.provider.requests
    )
    assert first == [("system", "Obey the house."), ("user", "Find it.")]
    assert second[0] == ("system", "Obey the house.")
    assert second[2:] == [("user", "Third?"), ("user", "Find it.")]


async def test_long_messages_are_inherited_by_their_head_and_tail(team: Build) -> None:
    history = (
        user("q" * 5_000),
        said("", ("1", "look")),
        result("1", "r" * 5_000),
        said("done"),
    )
    made = team(
        {"finder": ["found"]},
        context=lambda: MockContextManager(history),
        config={"max_message_chars": 300},
    )
    async with made.session:
        await made.call(
            agent="finder",
            instruction="Find it.",
            inherit_context="all",
            context_scope="full",
        )

    for _, text in stored(made):
        assert len(text) < 400
    assert "[4,700 of 5,000 characters are left out here]" in stored(made)[0][1]


async def test_the_newest_turns_that_fit_are_inherited_whole(team: Build) -> None:
    history = [
        message
        for n in range(20)
        for message in (user(f"q{n} " + "x" * 96), said(f"a{n} " + "y" * 96))
    ]
    made = team(
        {"finder": ["found"]},
        context=lambda: MockContextManager(history),
        config={"max_context_chars": 700},
    )
    async with made.session:
        await made.call(agent="finder", instruction="Find it.", inherit_context="all")

    assert [text[:3].strip() for _, text in stored(made)] == [
        "q17",
        "a17",
        "q18",
        "a18",
        "q19",
        "a19",
    ]
    note = made.said("finder")[0][1]
    assert note == (
        "[Background: the next 6 messages are the last 3 turns of the session that delegates to you."
        " 17 turns before them are left out. They are no task of yours; that comes behind them.]"
    )


async def test_of_turn_too_long_prompt_and_last_steps_are_inherited(
    team: Build,
) -> None:
    steps = [
        message
        for n in range(50)
        for message in (said(f"step {n}", (str(n), "look")), result(str(n), "r" * 100))
    ]
    made = team(
        {"finder": ["found"]},
        context=lambda: MockContextManager([user("Do it all."), *steps]),
        config={"max_context_chars": 1_000},
    )
    async with made.session:
        await made.call(
            agent="finder",
            instruction="Find it.",
            inherit_context="recent",
            context_scope="full",
        )

    texts = [text for _, text in stored(made)]
    assert texts[0] == "Do it all."
    assert texts[-2] == "step 49"
    assert 2 < len(texts) < 12
    assert (
        "steps at the beginning of the first are left out" in made.said("finder")[0][1]
    )


async def test_images_thinking_and_what_hooks_said_are_not_inherited(
    team: Build,
) -> None:
    history: list[MessageDict] = [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What is this?"},
                {
                    "type": "image",
                    "source": {
                        "type": "base64",
                        "media_type": "image/png",
                        "data": "AAAA",
                    },
                },
            ],
        },
        {
            "role": "user",
            "content": "Remember the plan.",
            "metadata": {"source": "hook"},
        },
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "s"},
                {"type": "text", "text": "A cat."},
            ],
        },
        {
            "role": "user",
            "content": "Remember it still.",
            "metadata": {"source": "hook"},
        },
    ]
    made = team({"finder": ["found"]}, context=lambda: MockContextManager(history))
    async with made.session:
        await made.call(
            agent="finder",
            instruction="Find it.",
            inherit_context="all",
            context_scope="full",
        )

    assert stored(made) == [
        ("user", "What is this?\n[an image is not shown]"),
        ("assistant", "A cat."),
    ]


async def test_long_arguments_of_calls_stay_objects(team: Build) -> None:
    big: MessageDict = {
        "role": "assistant",
        "content": [
            {
                "type": "tool_call",
                "id": "1",
                "name": "write",
                "input": {"text": "x" * 9_000, "path": "a", "deep": [1]},
            },
            {
                "type": "tool_call",
                "id": "2",
                "name": "write",
                "input": {"text": "y" * 9_000},
            },
        ],
    }
    history = [
        user("Write."),
        big,
        result("1", "ok", "write"),
        result("2", "ok", "write"),
    ]
    made = team({"finder": ["found"]}, context=lambda: MockContextManager(history))
    async with made.session:
        await made.call(
            agent="finder",
            instruction="Find it.",
            inherit_context="all",
            context_scope="full",
        )

    first, second = (
        block.input for block in made.requests("finder")[0].messages[3].blocks
    )
    assert first["path"] == "a"
    assert first["left_out"] == "the other arguments are too long"
    assert "characters are left out here" in str(second["text"])
    assert len(json.dumps([first, second])) < 5_000


async def test_results_in_blocks_are_inherited_one_by_one(team: Build) -> None:
    together: MessageDict = {
        "role": "tool",
        "content": [
            {"type": "tool_result", "tool_call_id": "1", "output": "text"},
            {"type": "tool_result", "tool_call_id": "2", "output": {"a": 1}},
        ],
    }
    blocks: MessageDict = result("3", [{"type": "text", "text": "in a block"}])
    history = [
        user("Go."),
        said("", ("1", "look"), ("2", "look")),
        together,
        said("", ("3", "look")),
        blocks,
    ]
    made = team({"finder": ["found"]}, context=lambda: MockContextManager(history))
    async with made.session:
        await made.call(
            agent="finder",
            instruction="Find it.",
            inherit_context="all",
            context_scope="full",
        )

    assert [text for role, text in stored(made) if role == "tool"] == [
        "text",
        '{"a": 1}',
        "in a block",
    ]


async def test_an_empty_conversation_gives_nothing(team: Build) -> None:
    made = team({"finder": ["found"]})
    async with made.session:
        await made.call(agent="finder", instruction="Find it.", inherit_context="all")

    assert made.said("finder") == [("user", "Find it.")]


IDS = st.sampled_from(["a", "b", "c", ""])
TEXTS = st.text(max_size=30)
MESSAGES = st.one_of(
    st.builds(user, TEXTS),
    st.builds(
        lambda text, ids: said(text, *((id, "look") for id in ids)),
        TEXTS,
        st.lists(IDS, max_size=3),
    ),
    st.builds(
        lambda text, ids: said(text, *((id, "task") for id in ids)),
        TEXTS,
        st.lists(IDS, max_size=2),
    ),
    st.builds(result, IDS, TEXTS),
    st.builds(lambda text: {"role": "system", "content": text}, TEXTS),
    st.builds(lambda text: {"role": "assistant", "content": text}, TEXTS),
)


@settings(max_examples=100)
@given(
    messages=st.lists(MESSAGES, max_size=25),
    scope=st.sampled_from(["conversation", "agents", "full"]),
    turns=st.one_of(st.none(), st.integers(1, 5)),
    most=st.integers(1, 400),
)
def test_whatever_the_history_what_is_inherited_can_be_sent(
    messages: Sequence[MessageDict],
    scope: Scope,
    turns: int | None,
    most: int,
) -> None:
    shown = inherited(
        messages, Form(scope=scope, tool="task", limit=50), turns=turns, limit=most
    )

    assert diagnose(shown) == ()
    assert all(
        Message.from_dict(message).role in ("user", "assistant", "tool")
        for message in shown
    )
    if scope == "conversation":
        assert all(isinstance(message["content"], str) for message in shown)
    assert (
        inherited(
            messages, Form(scope=scope, tool="task", limit=50), turns=turns, limit=most
        )
        == shown
    )
