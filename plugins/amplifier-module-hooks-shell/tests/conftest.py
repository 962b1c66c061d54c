"""Both backends, a home and a folder to work in, and plugin folders that a test writes."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import pytest

from amplifier import AmplifierSession
from amplifier.testing import create_test_session
from amplifier_kit.scripted import Step
from amplifier_module_hooks_shell import mount
from amplifier_sdk import ToolResult
from amplifier_sdk.chat import ToolCall
from amplifier_sdk.jsontypes import JSONValue

WritePlugin = Callable[..., Path]  # type: ignore[explicit-any]  # its options go by name
HookOf = Callable[..., dict[str, JSONValue]]  # type: ignore[explicit-any]  # likewise
OpenSession = Callable[..., AmplifierSession]  # type: ignore[explicit-any]  # likewise
Run = Callable[..., Awaitable[ToolResult]]  # type: ignore[explicit-any]  # likewise
Texts = Callable[[AmplifierSession], Awaitable[list[str]]]


@pytest.fixture(scope="session", params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Name the backend of the test."""
    return str(request.param)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep what belongs to the person in a folder of the test's own."""
    folder = tmp_path / "home"
    monkeypatch.setenv("AMPLIFIER_HOME", str(folder))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return folder


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """The folder in which the session works."""
    folder = (tmp_path / "work").resolve()
    folder.mkdir()
    return folder


@pytest.fixture
def write_plugin(tmp_path: Path) -> WritePlugin:
    """Write a plugin folder: its manifest, its hooks as plugins have them, and other files, which may all be run."""

    def write(
        hooks: JSONValue = None,
        files: Mapping[str, str] | None = None,
        *,
        name: str = "guard",
        at: Path | None = None,
        manifest: Mapping[str, JSONValue] | None = None,
    ) -> Path:
        folder = tmp_path / name if at is None else at
        reported = {
            ".claude-plugin/plugin.json": json.dumps(
                {"name": name, **(manifest or {})}
            ),
            **(files or {}),
        }
        if hooks is not None:
            reported["hooks/hooks.json"] = json.dumps(
                {"description": "what it guards", "hooks": hooks}
            )
        for path, text in reported.items():
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, "utf-8")
            file.chmod(0o755)
        return folder

    return write


@pytest.fixture
def hook_of(write_plugin: WritePlugin) -> HookOf:
    """Write a plugin with one hook that runs a shell text; return the configuration that names it."""

    def write(
        event: str, command: str, matcher: str | None = None, **more: JSONValue
    ) -> dict[str, JSONValue]:
        hook: dict[str, JSONValue] = {"type": "command", "command": command, **more}
        if more.get("type") == "prompt":
            hook["prompt"] = hook.pop("command")
        group: dict[str, JSONValue] = {"hooks": [hook]}
        if matcher is not None:
            group["matcher"] = matcher
        return {"plugins": [str(write_plugin({event: [group]}))]}

    return write


@pytest.fixture
def answering() -> Callable[[JSONValue], str]:
    """Return a shell text that puts out JSON."""

    def write(value: JSONValue) -> str:
        text = json.dumps(value).replace("'", "'\\''")
        return f"printf '%s' '{text}'"

    return write


@pytest.fixture
def open_session(work: Path) -> OpenSession:
    """Make a session that works in the folder, with the module before other hooks, and tools that note their calls."""

    def make(
        config: Mapping[str, object], *steps: Step, **options: object
    ) -> AmplifierSession:
        hooks = options.pop("hooks", [])
        assert isinstance(hooks, list)
        session = create_test_session(
            *steps,
            hooks=[mount, *hooks],
            configs={"hook-0": config},
            **options,  # type: ignore[arg-type]  # as `create_test_session` takes them
        )
        session.coordinator.register_capability("session.working_dir", str(work))
        return session

    return make


@pytest.fixture
def run() -> Run:
    """Run one call as a loop would."""

    async def run(
        session: AmplifierSession, name: str, /, **arguments: JSONValue
    ) -> ToolResult:
        coordinator = session.coordinator
        return await coordinator.host.run_tool(
            ToolCall(id="c1", name=name, arguments=arguments), coordinator.tools
        )

    return run


@pytest.fixture
def texts() -> Texts:
    """Return what the conversation holds, a text for each message."""

    async def texts(session: AmplifierSession) -> list[str]:
        return [
            content
            if isinstance(content := message["content"], str)
            else json.dumps(content)
            for message in await session.coordinator.context.get_messages()
        ]

    return texts
