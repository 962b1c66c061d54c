"""Applications of the original: they import its session, mount a resolver, register capabilities and spawn children."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Final

import pytest
from amplifier_core import (
    AmplifierSession,
    ApprovalTimeoutError,
    HookRegistry,
    HookResult,
    ModuleCoordinator,
)
from amplifier_core.cancellation import CancellationToken
from amplifier_core.loader import ModuleLoader
from structlog.testing import capture_logs

from amplifier_sdk.errors import ConfigError

PACKAGES: Final = Path(__file__).parent / "modules"

LOOP = {
    "module": "loop-simple",
    "source": "git+https://example.org/loop",
    "debug": True,
}
PLAN = {
    "session": {
        "orchestrator": LOOP,
        "context": "context-list",
        "debug": True,
        "context_source": "x",
    },
    "context": {"config": {"messages": []}},
    "providers": [
        {"module": "provider-scripted", "config": {"steps": ["hello"]}, "debug": 1},
        {"config": {}},
    ],
    "tools": [{"module": "tool-words"}],
    "hooks": [],
    "agents": {"helper": {"description": "Helps", "providers": []}},
    "spawn": {"exclude_tools": []},
}
FILES: Final = {
    "loop-simple": "loop",
    "context-list": "context",
    "provider-scripted": "provider",
    "tool-words": "tool",
    "hooks-guard": "hook",
}


class Resolver:
    """Resolves each module to a folder of its own, as an application of the original does."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.asked: list[str] = []

    def resolve(
        self, module_id: str, source_hint: object = None, profile_hint: object = None
    ) -> object:
        self.asked.append(module_id)
        root = self.folder / f"amplifier-module-{module_id}"
        # imported packages stay, so each test has its own
        own = f"{self.folder.name}_{module_id}".replace("-", "_")
        package = root / f"amplifier_module_{own}"
        if not package.exists():
            package.mkdir(parents=True)
            source = (PACKAGES / f"{FILES[module_id]}.py").read_text()
            (package / "__init__.py").write_text(source)
            (root / "pyproject.toml").write_text(
                f'[project]\nname = "amplifier-module-{module_id}"\nversion = "1"\n'
                f'[project.entry-points."amplifier.modules"]\n{module_id} = "{package.name}:mount"\n'
            )
        return SimpleNamespace(resolve=lambda: root)


def session(folder: Path, **given: object) -> AmplifierSession:
    made = AmplifierSession(PLAN, ModuleLoader(search_paths=[]), **given)
    # the effect is there at once, awaited or not
    made.coordinator.mount("module-source-resolver", Resolver(folder))
    return made


async def test_a_session_of_an_application(tmp_path: Path) -> None:
    with capture_logs() as logs:
        made = session(tmp_path, session_id="s-1")
    assert made.config is PLAN
    assert made.coordinator.config is PLAN
    made.coordinator.register_capability("session.working_dir", str(tmp_path))
    await made.initialize()
    try:
        assert await made.execute("hi") == "hello"
        assert made.coordinator.session is made
        assert set(made.coordinator.get("tools")) == {"count_words"}
        assert made.coordinator.get_capability("session.working_dir") == str(tmp_path)
        assert made.coordinator.get("context").messages[0]["content"] == "hi"
        assert made.session_id == made.coordinator.session_id == "s-1"
    finally:
        await made.cleanup()

    (reported,) = [log for log in logs if log["event"] == "compat.plan_keys_not_used"]
    assert reported["keys"] == [
        "spawn",
        "session.debug",
        "session.orchestrator.debug",
        "providers[0].debug",
    ]


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ({}, "Configuration is required"),
        ({"session": {"context": "c"}}, "session.orchestrator"),
        ({"session": {"orchestrator": "o"}}, "session.context"),
        ({"session": None}, "session.orchestrator"),
    ],
)
def test_a_plan_without_what_it_needs(plan: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        AmplifierSession(plan)


def test_what_is_wrong_otherwise_is_still_an_error() -> None:
    plan = {"session": {"orchestrator": "o", "context": "c"}, "tools": "all"}
    with pytest.raises(ConfigError, match="a list of modules"):
        AmplifierSession(plan)


async def test_an_application_spawns_children_itself(tmp_path: Path) -> None:
    parent = session(tmp_path)

    async def spawn(
        agent_name: str,
        instruction: str,
        parent_session: AmplifierSession,
        **options: object,
    ) -> dict[str, object]:
        child = session(tmp_path, parent_id=parent_session.session_id)
        parent.coordinator.cancellation.register_child(child.coordinator.cancellation)
        await child.initialize()
        try:
            output = await child.execute(instruction)
        finally:
            await child.cleanup()
        return {"output": output, "options": sorted(options)}

    parent.coordinator.register_capability("session.spawn", spawn)
    await parent.initialize()
    called = parent.coordinator.get_capability("session.spawn")
    done = await called(
        agent_name="helper",
        instruction="help",
        parent_session=parent,
        color="red",
        agent_configs={},
    )
    await parent.cleanup()

    assert done == {"output": "hello", "options": ["agent_configs", "color"]}


# -- the parts by themselves


async def test_a_coordinator_of_any_session_like_object() -> None:
    like = SimpleNamespace(
        session_id="s", parent_id="p", config={"session": {"a": 1}}, loader=None
    )
    coordinator = ModuleCoordinator(session=like)
    coordinator.todo_state = [1]
    first, second = SimpleNamespace(name="t"), SimpleNamespace(name="t")
    await coordinator.mount("tools", first)
    await coordinator.mount("tools", second)

    assert coordinator.session is like
    assert coordinator.hooks is coordinator.hooks
    assert coordinator.get("tools") is coordinator.mount_points["tools"]
    assert coordinator.injection_size_limit is None
    assert (coordinator.session_id, coordinator.parent_id) == ("s", "p")
    assert coordinator.config is like.config
    assert coordinator.get("tools")["t"] is second
    assert coordinator.get("tools").copy() == {"t": second}
    assert coordinator.todo_state == [1]
    await coordinator.mount("tools", SimpleNamespace(), name="u")
    assert coordinator.mount_points["tools"]["u"] is not second
    with pytest.raises(TypeError, match="is text"):
        await coordinator.mount("tools", SimpleNamespace(name=7))
    await coordinator.unmount("tools", "u")
    await coordinator.unmount("tools", "t")
    assert not coordinator.get("tools")
    with pytest.raises(ValueError, match="Unknown mount point"):
        await coordinator.mount("storage", first)
    with pytest.raises(ValueError, match="Name required"):
        await coordinator.mount("tools", SimpleNamespace())
    await coordinator.mount("context", first)
    assert coordinator.mount_points["context"] is first
    coordinator.mount_points["context"] = second
    assert coordinator.get("context") is second
    assert coordinator.get("hooks").list_handlers() == {}


async def test_a_registry_by_itself() -> None:
    hooks = HookRegistry()
    hooks.set_default_fields(session_id="s")
    seen: list[tuple[str, dict[str, object]]] = []

    def note(event: str, data: dict[str, object]) -> HookResult:
        seen.append((event, data))
        return HookResult(action="continue", data={"a": 1})

    async def change(event: str, data: dict[str, object]) -> HookResult:
        return HookResult(action="modify", data={**data, "b": 2})

    remove = hooks.register("x", note, priority=5, name="note")
    hooks.on("x", change)
    hooks.on("x", change)
    result = await hooks.emit("x", {"a": {"deep": 1}})

    assert hooks.list_handlers("x") == {"x": ["change", "change_2", "note"]}
    assert result.action == "continue"
    assert result.data["b"] == 2
    assert seen[0][1]["session_id"] == "s"
    assert "timestamp" in seen[0][1]
    remove()
    remove()
    hooks.unregister("change")
    assert hooks.list_handlers("x") == {"x": ["change_2"]}
    assert (await hooks.emit("nobody", {"k": 1})).data == {"k": 1}
    assert (await hooks.emit("nobody", None)).data == {}
    with pytest.raises(TypeError, match="callable"):
        hooks.register("x", 7)


async def test_answers_are_collected() -> None:
    hooks = HookRegistry()
    hooks.register("x", lambda event, data: HookResult(data={"n": 1}))
    hooks.register("x", lambda event, data: None)

    assert await hooks.emit_and_collect("x", {}) == [{"n": 1}]


async def test_what_handlers_decide_together_is_one_result() -> None:
    hooks = HookRegistry()
    for text in ("one", "two"):
        hooks.register(
            "x",
            lambda event, data, text=text: HookResult(
                action="inject_context", context_injection=text, ephemeral=True
            ),
        )
    injected = await hooks.emit("x", {})
    hooks.register(
        "x",
        lambda event, data: {"action": "ask_user", "approval_prompt": "Sure?"},
    )
    asked = await hooks.emit("x", {})

    assert injected.action == "inject_context"
    assert injected.context_injection == "one\n\ntwo"
    assert injected.ephemeral
    assert [each.content for each in injected.context_injections] == ["one", "two"]
    assert asked.action == "ask_user"
    assert asked.approval_prompt == "Sure?"
    assert isinstance(asked, HookResult)


async def test_a_result_is_carried_out() -> None:
    shown: list[tuple[object, ...]] = []

    class Person:
        async def request_approval(
            self, prompt: str, options: list[str], timeout: float, default: str
        ) -> str:
            shown.append((prompt, timeout))
            raise ApprovalTimeoutError("late")

    class Screen:
        def show_message(self, message: str, level: str, source: str = "hook") -> None:
            shown.append((message, level))

    coordinator = ModuleCoordinator(None, Person(), Screen())
    denied = await coordinator.process_hook_result(
        HookResult(action="ask_user", approval_prompt="Well?"), "tool:pre", "h"
    )
    await coordinator.process_hook_result(
        HookResult(user_message="careful", user_message_level="warning"), "x", "h"
    )
    stored = await coordinator.process_hook_result(
        HookResult(action="inject_context", context_injection="now", ephemeral=True),
        "x",
        "h",
    )

    assert denied.action == "deny"
    assert ("careful", "warning") in shown
    assert stored.action == "inject_context"
    assert stored.ephemeral
    assert stored.context_injection == "now"


def test_the_token_reads_as_its_word() -> None:
    token = CancellationToken()
    assert str(token.state) == "none"
    assert token.request_graceful()
    assert str(token.state) == "graceful" == token.state
    assert not token.request_graceful()
    assert token.is_cancelled
    assert not token.is_immediate
    token.reset()
    assert not token.is_cancelled


async def test_the_kernel_spawns_children_of_an_applications_session(
    tmp_path: Path,
) -> None:
    parent = session(tmp_path)
    await parent.initialize()
    spawn = parent.coordinator.get_capability("session.spawn")
    child = await spawn(
        agent_name="helper", instruction="help", parent_session=parent, color="red"
    )
    assert child["output"] == "hello"
    await parent.cleanup()


async def test_an_application_registers_handlers_and_cancels(tmp_path: Path) -> None:
    made = session(tmp_path)
    heard: list[str] = []

    def hear(event: str, data: dict[str, object]) -> None:
        heard.append(event)

    for event in ("session:start", "prompt:submit", "session:end"):
        made.coordinator.hooks.register(event, hear, name=f"app-{event}")
    await made.initialize()
    await made.execute("hi")
    assert str(made.coordinator.cancellation.state) == "none"
    await made.cleanup()

    assert heard == ["session:start", "prompt:submit", "session:end"]
