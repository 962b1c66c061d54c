"""The original's application layer: bundles that are loaded, composed and prepared, sessions and children of them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

import pytest
from amplifier_core import HookResult

from amplifier_sdk.errors import ModuleNotFoundError
from tests.compat.modules import application

MODULES: Final = Path(__file__).parent / "modules"
FILES: Final = {
    "loop-original": "loop",
    "provider-original": "provider",
    "tool-words-original": "tool",
    "tool-delegate-original": "delegate",
    "hooks-guard-original": "hook",
}

BASE = """---
bundle:
  name: base
  version: 1.0.0
session:
  orchestrator: {module: loop-original, source: modules/loop-original}
  context: {module: context-simple}
  debug: true
providers:
  - module: provider-original
    source: modules/provider-original
    config: {steps: [one]}
tools:
  - module: tool-words-original
    source: modules/tool-words-original
spawn: {exclude_tools: [delegate]}
---
Base.
"""

SHOP = """---
bundle: {name: shop}
includes:
  - bundle: base.md
context: {include: [notes.md]}
providers:
  - module: provider-original
    config: {steps: STEPS}
tools:
  - module: tool-delegate-original
    source: modules/tool-delegate-original
hooks:
  - module: hooks-guard-original
    source: modules/hooks-guard-original
    config: {deny: DENY}
agents:
  clerk:
    description: Counts.
    system: {instruction: You count.}
---
You run a shop.
"""

Steps = list[object]
Prepare = Callable[..., Awaitable[application.PreparedBundle]]  # type: ignore[explicit-any]  # untyped


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The projects of the modules; imported packages stay, so all tests share them."""
    folder = tmp_path_factory.mktemp("bundle")
    for name, file in FILES.items():
        package = (
            folder / "modules" / name / f"amplifier_module_{name}".replace("-", "_")
        )
        package.mkdir(parents=True)
        shutil.copy(MODULES / f"{file}.py", package / "__init__.py")
    return folder


@pytest.fixture
def prepared(packages: Path) -> Prepare:
    """Return a function that loads and prepares a bundle."""

    async def prepare(steps: Steps, deny: str | None = None) -> object:
        (packages / "base.md").write_text(BASE)
        (packages / "notes.md").write_text("We sell tea.")
        text = SHOP.replace("STEPS", json.dumps(steps))
        (packages / "shop.md").write_text(text.replace("DENY", json.dumps(deny)))
        bundle = await application.load_bundle(packages / "shop.md")
        return await bundle.prepare()

    return prepare


def calling(tool: str, **arguments: object) -> dict[str, object]:
    return {"id": f"call-{tool}", "name": tool, "input": arguments}


def asked(session: application.AmplifierSession) -> list[list[tuple[str, str]]]:
    """Return the roles and texts of each request."""
    provider = session.coordinator.get("providers", "scripted-original")
    return [
        [(message.role, str(message.content)) for message in request.messages]
        for request in provider.requests
    ]


async def test_a_session_of_a_prepared_bundle(prepared: Prepare) -> None:
    bundle = await prepared([calling("count_words", text="a b"), "two"])
    session = await bundle.create_session(session_id="s-1")
    try:
        assert await session.execute("how many?") == "two"
        tools = session.coordinator.get("tools")
        assert set(tools) == {"count_words", "delegate"}
        assert "clerk: Counts." in tools["delegate"].description
        assert session.config["agents"]["clerk"]["description"] == "Counts."
        names = [name for name, _ in bundle.resolver.asked]
    finally:
        await session.cleanup()

    # what the bundle does not bring is found where it is installed
    assert "context-simple" in names
    assert session.session_id == "s-1"


async def test_the_system_prompt_is_made_for_each_request(
    prepared: Prepare, packages: Path
) -> None:
    bundle = await prepared(["one", "two"])
    session = await bundle.create_session(session_cwd=packages)
    await session.execute("first")
    (packages / "notes.md").write_text("We sell coffee.")
    await session.execute("second")
    first, second = asked(session)
    messages = await session.coordinator.get("context").get_messages()
    await session.cleanup()

    assert first[0][0] == second[0][0] == "system"
    assert "You run a shop." in first[0][1]
    assert "We sell tea." in first[0][1]
    assert f"Working directory: {packages.resolve()}" in first[0][1]
    assert "We sell coffee." in second[0][1]
    assert [message["role"] for message in messages] == ["user", "assistant"] * 2


@pytest.mark.parametrize("by", ["application", "kernel"])
async def test_an_agent_of_a_bundle_works_for_its_session(
    prepared: Prepare, by: str
) -> None:
    steps: Steps = [calling("delegate", agent="clerk", instruction="Count."), "done"]
    bundle = await prepared(steps)
    session = await bundle.create_session(session_id="s-2")
    children: list[dict[str, object]] = []

    async def spawn(
        agent_name: str,
        instruction: str,
        parent_session: application.AmplifierSession,
        agent_configs: dict[str, dict[str, dict[str, str]]],
        sub_session_id: str | None = None,
        **options: object,
    ) -> dict[str, object]:
        agent = agent_configs[agent_name]
        child = application.Bundle(
            name=agent_name,
            base_path=bundle.bundle.base_path,
            providers=[
                {
                    "module": "provider-original",
                    "source": "modules/provider-original",
                    "config": {"steps": ["counted"]},
                }
            ],
            instruction=agent["system"]["instruction"],
        )
        done: dict[str, object] = await bundle.spawn(
            child,
            instruction,
            parent_session=parent_session,
            session_id=sub_session_id,
            parent_messages=options["parent_messages"],
            self_delegation_depth=options["self_delegation_depth"],
        )
        children.append({**done, **options})
        return done

    if by == "application":
        session.coordinator.register_capability("session.spawn", spawn)
    announced: list[object] = []
    session.coordinator.hooks.register(
        "delegate:agent_spawned", lambda event, data: announced.append(data["agent"])
    )
    assert await session.execute("How many sheets?") == "done"
    (_, after) = asked(session)
    await session.cleanup()

    result = json.loads(after[-1][1])
    assert announced == ["clerk"]
    assert result["agent"] == "clerk"
    assert result["session_id"] == "s-2-clerk"
    if by == "application":
        (child,) = children
        assert result["response"] == "counted"
        assert child["status"] == "success"
        assert child["self_delegation_depth"] == 1
        assert child["cost"] == []


async def test_an_application_resumes_a_session(prepared: Prepare) -> None:
    bundle = await prepared(["again"])
    session = await bundle.create_session(session_id="s-3", is_resumed=True)
    heard: list[str] = []
    for event in ("session:start", "session:resume"):
        session.coordinator.hooks.register(
            event, lambda event, data: heard.append(event)
        )
    context = session.coordinator.get("context")
    await context.set_messages(
        [
            {"role": "user", "content": "first"},
            {"role": "assistant", "content": [{"type": "text", "text": "one"}]},
        ]
    )
    assert await session.execute("second") == "again"
    (request,) = asked(session)
    await session.cleanup()

    assert heard == ["session:resume"]
    assert [role for role, _ in request] == ["system", "user", "assistant", "user"]


@pytest.mark.parametrize(
    ("answer", "words"), [("Allow", 1), ("Deny", 0), ("allow always", 1), (None, 0)]
)
async def test_an_application_asks_the_person(
    prepared: Prepare, answer: str | None, words: int
) -> None:
    bundle = await prepared([calling("count_words", text="a"), "done"])
    person, screen = application.Person(answer), application.Screen()
    session = await bundle.create_session(approval_system=person, display_system=screen)

    async def ask(event: str, data: dict[str, object]) -> HookResult:
        return HookResult(
            action="ask_user",
            approval_prompt="Count?",
            approval_options=["Allow", "allow always", "Deny"],
        )

    async def tell(event: str, data: dict[str, object]) -> HookResult:
        return HookResult(user_message="counting", user_message_level="warning")

    session.coordinator.hooks.register("tool:pre", ask, name="ask")
    session.coordinator.hooks.register("provider:request", tell, name="tell")
    session.coordinator.display_system.push_nesting()
    await session.execute("go")
    tool = session.coordinator.get("tools", "count_words")
    await session.cleanup()

    assert len(tool.inputs) == words
    # before it stands what the call is, and behind it how far an answer reaches
    assert "Count?" in person.asked[0][0].splitlines()
    assert person.asked[0][3] == "deny"
    assert (1, "warning", "counting") in [line[:3] for line in screen.lines]


async def test_a_hook_of_a_bundle_denies(prepared: Prepare) -> None:
    steps: Steps = [calling("count_words", text="a"), "done"]
    bundle = await prepared(steps, deny="count_words")
    session = await bundle.create_session()
    await session.execute("go")
    (_, after) = asked(session)
    await session.cleanup()

    assert "not here" in after[-1][1]


async def test_an_application_cancels_a_session(prepared: Prepare) -> None:
    bundle = await prepared([calling("count_words", text="a"), "never"])
    session = await bundle.create_session()

    async def cancel(event: str, data: dict[str, object]) -> HookResult:
        session.coordinator.cancellation.request_immediate()
        return HookResult()

    session.coordinator.hooks.register("tool:pre", cancel, priority=100)
    assert await session.execute("go") == ""
    messages = await session.coordinator.get("context").get_messages()
    await session.cleanup()

    assert [message["role"] for message in messages] == ["user", "assistant", "tool"]


async def test_a_cancelled_child_is_known_as_one(prepared: Prepare) -> None:
    bundle = await prepared([calling("count_words", text="cancel"), "never"])
    session = await bundle.create_session()
    child = await session.coordinator.get_capability("session.spawn")(
        agent_name="clerk", instruction="Count.", parent_session=session
    )
    assert await session.execute("go") == ""
    await session.cleanup()

    assert child["status"] == "cancelled"


async def test_what_nobody_has_is_named_with_what_the_application_said(
    prepared: Prepare,
) -> None:
    bundle = await prepared(["one"])
    bundle.mount_plan["session"]["context"] = {"module": "context-nowhere"}

    with pytest.raises(ModuleNotFoundError) as caught:
        await bundle.create_session()
    assert "Module 'context-nowhere'" in str(caught.value)
    assert "is not in the prepared bundle" in str(caught.value)
