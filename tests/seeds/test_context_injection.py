"""The samples of the context injection architecture that the kernel and the SDK serve.

Profiles and mentions are the application's; what it does with a session, and what modules ask for, is here.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

import attrs
import pytest

from amplifier import AmplifierSession, ModuleCoordinator, ModuleLoader
from amplifier.testing import ScriptedProvider
from amplifier.testing.sessions import mounting
from amplifier_sdk import Coordinator, Tool, ToolResult
from amplifier_sdk.hookspecs import Config
from amplifier_sdk.jsontypes import JSONObject


@attrs.define
class ContextFile:
    paths: list[Path]
    content: str


class ContentDeduplicator:
    def __init__(self) -> None:
        self._seen_hashes: set[str] = set()
        self._content_map: dict[str, ContextFile] = {}

    def add_file(self, path: Path, content: str) -> bool:
        content_hash = sha256(content.encode()).hexdigest()
        if content_hash in self._seen_hashes:
            # Already seen - add path to existing entry
            self._content_map[content_hash].paths.append(path)
            return False  # Not unique

        self._seen_hashes.add(content_hash)
        self._content_map[content_hash] = ContextFile(paths=[path], content=content)
        return True  # Unique


class MentionResolver:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def resolve(self, mention: str) -> Path:
        return self.folder / mention.removeprefix("@")


class ReadMention:
    """A tool that asks the session for what the application offers."""

    name = "read_mention"
    description = "Read a mentioned file."

    def __init__(self, coordinator: Coordinator) -> None:
        self.coordinator = coordinator

    async def execute(self, input: JSONObject, /) -> ToolResult:
        # Module usage:
        resolver = self.coordinator.get_capability("mention_resolver")
        assert isinstance(resolver, MentionResolver)
        path = resolver.resolve(str(input["mention"]))
        return ToolResult(output=path.read_text())


async def mount(coordinator: ModuleCoordinator, config: Config) -> Tool:
    return ReadMention(coordinator)


def a_session(provider: ScriptedProvider) -> AmplifierSession:
    plan: Mapping[str, object] = {
        "session": {"orchestrator": "loop-basic", "context": "context-simple"},
        "providers": ["provider"],
        "tools": ["tool"],
    }
    return AmplifierSession(
        plan, ModuleLoader(modules={"provider": mounting(provider), "tool": mount})
    )


async def test_instructions_and_prompt_files_arrive_in_order() -> None:
    provider = ScriptedProvider("An answer.")
    session = a_session(provider)
    async with session:
        # 4. System message storage
        context = session.coordinator.get("context")
        await context.add_message(  # type: ignore[attr-defined]  # the context
            {"role": "system", "content": "You are an assistant."}
        )
        # 5. Runtime processing: developer messages before the user's
        await context.add_message(  # type: ignore[attr-defined]
            {"role": "developer", "content": "<context_file>FILE.md</context_file>"}
        )
        await session.execute("Explain @FILE.md")
        messages = await context.get_messages()  # type: ignore[attr-defined]

    assert provider.last_messages == [
        ("system", "You are an assistant."),
        ("developer", "<context_file>FILE.md</context_file>"),
        ("user", "Explain @FILE.md"),
    ]
    assert [message["role"] for message in messages] == [
        "system",
        "developer",
        "user",
        "assistant",
    ]


async def test_modules_find_what_the_application_offers(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("Be kind.")
    async with a_session(ScriptedProvider()) as session:
        # App layer:
        session.coordinator.register_capability(
            "mention_resolver", MentionResolver(tmp_path)
        )
        session.coordinator.register_capability(
            "mention_deduplicator", ContentDeduplicator()
        )

        result = await session.coordinator.tools["read_mention"].execute(
            {"mention": "@AGENTS.md"}
        )
        deduplicator = session.coordinator.get_capability("mention_deduplicator")

    assert result.output == "Be kind."
    assert isinstance(deduplicator, ContentDeduplicator)
    assert deduplicator.add_file(tmp_path / "a", "x")
    assert not deduplicator.add_file(tmp_path / "b", "x")


async def test_a_capability_that_nobody_offers_is_nothing() -> None:
    assert ModuleCoordinator().get_capability("mention_resolver") is None


@pytest.mark.parametrize(
    "spelling", [("context",), ("session", "context")], ids=" ".join
)
async def test_the_context_is_found_in_both_spellings(
    spelling: tuple[str, ...],
) -> None:
    async with a_session(ScriptedProvider("Hi.")) as session:
        await session.execute("Hello")
        assert session.coordinator.get(*spelling) is session.coordinator.context
