"""Every async test runs on both backends, with sessions that have the hook."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

import pytest

from amplifier import AmplifierSession
from amplifier.testing import create_test_session
from amplifier_module_hooks_approval import ApprovalHook
from amplifier_sdk import ApprovalSystem, ToolResult
from amplifier_sdk.chat import ToolCall
from amplifier_sdk.jsontypes import JSONValue

SessionOf = Callable[..., AmplifierSession]  # type: ignore[explicit-any]  # its options go by name
Run = Callable[..., Awaitable[ToolResult]]  # type: ignore[explicit-any]  # likewise


@pytest.fixture(scope="session", params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Name the backend of the test."""
    return str(request.param)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep records and permissions in a folder of the test's own."""
    folder = tmp_path / "home"
    monkeypatch.setenv("AMPLIFIER_HOME", str(folder))
    return folder


@pytest.fixture
def session_of() -> SessionOf:
    """Make a session that works in a folder, with the hook before any others."""

    def make(
        *tools: object,
        config: Mapping[str, object] | None = None,
        person: ApprovalSystem | None = None,
        hooks: Sequence[object] = (),
        folder: Path | None = None,
    ) -> AmplifierSession:
        session = create_test_session(
            tools=tools,
            hooks=[ApprovalHook, *hooks],
            configs={"hook-0": config or {}},
            approval_system=person,
        )
        if folder is not None:
            session.coordinator.register_capability("session.working_dir", str(folder))
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
