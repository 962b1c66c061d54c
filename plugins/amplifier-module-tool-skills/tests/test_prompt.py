"""What a model is told of the skills without asking: where, how often, and how much."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from amplifier import AmplifierSession
from amplifier.testing import (
    MockContextManager,
    ScriptedProvider,
    TestCoordinator,
    answer,
    call,
    create_test_session,
)
from amplifier_module_tool_skills import Skills
from amplifier_module_tool_skills.prompt import HEAD, catalogue, listing
from amplifier_module_tool_skills.skill_folders import Skill, SkillHead
from amplifier_module_tool_skills.skill_folders.files import TrustedSkillFiles
from amplifier_sdk.chat import ChatRequest
from amplifier_sdk.events import PROMPT_SUBMIT, PromptSubmit
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.modules import definition_of

pytestmark = pytest.mark.anyio


def write(home: Path, name: str, description: str = "Helps.", **fields: str) -> None:
    """Write a skill of the person's own."""
    path = home / "skills" / name
    path.mkdir(parents=True, exist_ok=True)
    more = "".join(
        f"{key.replace('_', '-')}: {value}\n" for key, value in fields.items()
    )
    (path / "SKILL.md").write_text(
        f"---\nname: {name}\ndescription: {description}\n{more}---\nBody.\n"
    )


def build(
    project: Path,
    provider: ScriptedProvider,
    visibility: Mapping[str, JSONValue] | None = None,
    context: MockContextManager | None = None,
    session_settings: Mapping[str, object] | None = None,
) -> AmplifierSession:
    """Make a session with the tool `load_skill`."""
    config: dict[str, JSONValue] = (
        {} if visibility is None else {"visibility": visibility}
    )
    session = create_test_session(
        provider=provider,
        tools=[Skills],
        context=context,
        configs={"tool-0": config},
        settings=session_settings,
    )
    session.coordinator.register_capability("session.working_dir", str(project))
    return session


def lists(request: ChatRequest) -> list[tuple[int, str]]:
    """Return the messages of a request that list skills, with their places."""
    return [
        (index, message.role)
        for index, message in enumerate(request.messages)
        if HEAD in message.text
    ]


async def test_the_list_stands_once_before_the_first_prompt(
    project: Path, home: Path
) -> None:
    write(home, "tides", "Tells the tides.")
    provider = ScriptedProvider(
        answer(call("load_skill", {"skill_name": "tides"})), "One.", "Two."
    )

    async with build(project, provider) as session:
        await session.execute("First.")
        await session.execute("Second.")

    assert [lists(request) for request in provider.requests] == [[(0, "system")]] * 3
    assert provider.requests[0].messages[0].text == f"{HEAD}\n- tides: Tells the tides."
    assert provider.requests[0].messages[1].text == "First."


async def test_a_resumed_history_brings_its_own_list(project: Path, home: Path) -> None:
    write(home, "tides")
    context, provider = (
        MockContextManager(),
        ScriptedProvider("One.", "Two.", "Three.", "Four."),
    )

    for name in (None, None, "maps"):
        if name is not None:
            write(home, name)
        async with build(project, provider, context=context) as session:
            await session.execute("Go on.")

    assert [lists(request) for request in provider.requests] == [
        [(0, "system")],
        [(0, "system")],
        [(0, "system"), (5, "system")],
    ]


async def test_a_cleared_history_gets_the_list_again(project: Path, home: Path) -> None:
    write(home, "tides")
    context, provider = MockContextManager(), ScriptedProvider("One.", "Two.", "Three.")

    async with build(project, provider, context=context) as session:
        for _ in range(2):
            await session.execute("Go on.")
        await context.clear()
        await session.execute("Go on.")

    assert [lists(request) for request in provider.requests] == [[(0, "system")]] * 3


async def test_where_no_history_can_be_read_list_is_given_each_time(
    project: Path, home: Path
) -> None:
    write(home, "tides")
    coordinator = TestCoordinator()
    coordinator.register_capability("session.working_dir", str(project))
    definition = definition_of(Skills)
    assert definition is not None
    definition.build(coordinator, {})

    for _ in range(2):
        emission = await coordinator.hooks.emit(
            PROMPT_SUBMIT, PromptSubmit(prompt="Begin.")
        )
        assert [injection.role for injection in emission.injections] == ["system"]


@pytest.mark.parametrize(
    ("visibility", "expected"),
    [
        pytest.param({"enabled": False}, [[], []], id="off"),
        pytest.param({"inject_role": "user"}, [[(0, "user")]] * 2, id="role"),
        pytest.param(
            {"ephemeral": True}, [[(1, "system")], [(3, "system")]], id="each-request"
        ),
        pytest.param(
            {
                "enabled": True,
                "inject_role": "user",
                "max_skills_visible": 50,
                "ephemeral": True,
                "priority": 20,
            },
            [[(1, "user")], [(3, "user")]],
            id="as-plans-of-the-original-say",
        ),
    ],
)
async def test_how_the_model_is_told_is_configured(
    project: Path,
    home: Path,
    visibility: dict[str, JSONValue],
    expected: list[list[tuple[int, str]]],
) -> None:
    write(home, "tides")
    provider = ScriptedProvider(answer(call("load_skill", {"list": True})), "Done.")

    async with build(project, provider, visibility) as session:
        await session.execute("Begin.")

    assert [lists(request) for request in provider.requests] == expected


async def test_its_place_among_the_handlers_is_configured(project: Path) -> None:
    for priority, expected in (
        (20, ["first", "tool-skills"]),
        (-1, ["tool-skills", "first"]),
    ):
        async with build(
            project, ScriptedProvider("Done."), {"priority": priority}
        ) as session:
            session.coordinator.hooks.register(
                "prompt:submit", lambda *_: None, 0, "first"
            )
            assert (
                list(
                    session.coordinator.hooks.list_handlers("prompt:submit")[
                        "prompt:submit"
                    ]
                )
                == expected
            )


async def test_so_many_skills_are_told_of_as_is_configured(
    project: Path, home: Path
) -> None:
    for name in ("a", "b", "c"):
        write(home, name)
    write(home, "for-people", disable_model_invocation="true")
    provider = ScriptedProvider("Done.")

    async with build(project, provider, {"max_skills_visible": 2}) as session:
        await session.execute("Begin.")

    assert provider.requests[0].messages[0].text.splitlines()[1:] == [
        "- a: Helps.",
        "- b: Helps.",
        "(1 more: load_skill with search finds them.)",
    ]


@pytest.mark.parametrize("ephemeral", [False, True], ids=["once", "each-request"])
async def test_without_skills_nothing_is_said(project: Path, ephemeral: bool) -> None:
    provider = ScriptedProvider("Done.")

    async with build(project, provider, {"ephemeral": ephemeral}) as session:
        await session.execute("Begin.")

    assert lists(provider.requests[0]) == []


async def test_what_nobody_trusted_is_not_told_of(project: Path, home: Path) -> None:
    write(project / ".amplifier", "tides")
    provider = ScriptedProvider("Done.")
    session = create_test_session(
        provider=provider, tools=[Skills], configs={"tool-0": {"untrusted": "mark"}}
    )
    session.coordinator.register_capability("session.working_dir", str(project))

    async with session:
        await session.execute("Begin.")

    assert lists(provider.requests[0]) == []


async def test_the_list_keeps_to_the_plans_limit_of_injections(
    project: Path, home: Path
) -> None:
    for number in range(40):
        write(home, f"skill-{number}", "x" * 900)
    provider = ScriptedProvider("Done.", "Done.")

    for limit in (None, 1000):
        limits = {} if limit is None else {"injection_size_limit": limit}
        async with build(project, provider, session_settings=limits) as session:
            await session.execute("Begin.")

    usual, short = (request.messages[0].text for request in provider.requests)
    assert 7_500 < len(usual) <= 8_000
    assert usual.count("\n- skill-") == 40
    assert len(short) <= 1000
    assert "more: load_skill with search finds them.)" in short


def skill(name: str, description: str) -> Skill:
    head = SkillHead(name=name, description=description)
    return Skill(
        head=head,
        folder=Path("/s") / name,
        source="person",
        files=TrustedSkillFiles({}),
    )


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(1, 1024), max_size=80), st.integers(400, 9000))
def test_a_list_has_room_and_is_the_same_each_time(
    lengths: list[int], most: int
) -> None:
    skills = [skill(f"s{index}", "x" * length) for index, length in enumerate(lengths)]

    text = catalogue(skills, most_skills=50, limit=most)

    assert len(text) <= most
    assert text == catalogue(skills, most_skills=50, limit=most)
    assert bool(text) == bool(listing(skills, most - len(HEAD) - 100).entries)
    for shown, description in listing(skills, most).entries:
        assert description == shown.head.description or description.endswith("…")
