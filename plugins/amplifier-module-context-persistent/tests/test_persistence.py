"""What outlives a session, what begins it anew, and where it is kept."""

from __future__ import annotations

import errno
import json
import logging
import os
import stat
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import attrs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from amplifier import AmplifierSession, ModuleCoordinator, ModuleLoader
from amplifier.testing import ScriptedProvider, answer, call, mounting
from amplifier_kit.files.appendlog import (
    AppendError,
    LogFormatError,
    _disk,
    encode_line,
)
from amplifier_kit.files.locks import LockedError
from amplifier_module_context_persistent import PersistentContext, mount
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
from amplifier_sdk.history import repair
from amplifier_sdk.stores import LogEntry


@attrs.frozen
class Sessions:
    """Opens one session after the other; each finds what the ones before it kept."""

    folder: Path

    @property
    def path(self) -> Path:
        """The file of the session `one`."""
        return self.folder / "sessions" / "one" / "context-messages.jsonl"

    @asynccontextmanager
    async def opened(
        self, coordinator: ModuleCoordinator | None = None, /, **config: JSONValue
    ) -> AsyncIterator[PersistentContext]:
        """Mount a context, and release it at the end."""
        coordinator = coordinator or ModuleCoordinator(session_id="one")
        coordinator.register_capability("session.dir", str(self.folder))
        coordinator.register_capability("session.working_dir", str(self.folder))
        context = await mount(coordinator, config)
        try:
            yield context
        finally:
            await context.aclose()

    async def keep(self, messages: Sequence[MessageDict], **config: JSONValue) -> None:
        """Add messages in a session of their own."""
        async with self.opened(**config) as context:
            for message in messages:
                await context.add_message(message)

    async def history(self, **config: JSONValue) -> list[MessageDict]:
        """Read what the next session begins with."""
        async with self.opened(**config) as context:
            return list(await context.get_messages())


@pytest.fixture
def sessions(tmp_path: Path) -> Sessions:
    return Sessions(tmp_path)


def said(text: str, role: str = "user") -> MessageDict:
    return {"role": role, "content": text}


TALK: list[MessageDict] = [
    said("Be brief.", "system"),
    said("Which day?"),
    {
        "role": "assistant",
        "content": [
            {
                "type": "thinking",
                "thinking": "Let me see.",
                "signature": "EqQBCkgIBRAB+/==",
            },
            {"type": "tool_call", "id": "c1", "name": "today", "input": {}},
        ],
        "vendor": {"cache": {"ttl": 5}},
    },
    {"role": "tool", "tool_call_id": "c1", "content": "Saturday"},
    said("Saturday.", "assistant"),
]


async def test_it_is_a_context_manager(sessions: Sessions) -> None:
    async with sessions.opened() as context:
        assert isinstance(context, ContextManager)
        assert check_instance("context", context) == []


async def test_the_next_session_goes_on_from_what_was_added(sessions: Sessions) -> None:
    await sessions.keep(TALK)
    await sessions.keep([said("And tomorrow?")])

    assert await sessions.history() == [*TALK, said("And tomorrow?")]


async def test_another_session_has_a_history_of_its_own(sessions: Sessions) -> None:
    await sessions.keep(TALK)
    async with sessions.opened(ModuleCoordinator(session_id="two")) as context:
        assert list(await context.get_messages()) == []


async def test_the_same_budget_gives_the_same_view_after_a_resume(
    sessions: Sessions,
) -> None:
    turns = [
        said(f"{number} {'x' * 400}", role)
        for number in range(40)
        for role in ("user", "assistant")
    ]
    await sessions.keep(turns)
    views = []
    for _ in range(2):
        async with sessions.opened() as context:
            views.append(list(await context.get_messages_for_request(2_000)))

    assert views[0] == views[1]
    assert len(views[0]) < len(turns)
    assert await sessions.history() == turns


json_values: st.SearchStrategy[JSONValue] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(st.characters()),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters()), inner, max_size=3)
    ),
    max_leaves=8,
)


@st.composite
def foreign_messages(draw: st.DrawFn) -> MessageDict:
    """Messages of any vendor: known and unknown fields, content in any shape, half characters."""
    message: MessageDict = dict(
        draw(st.dictionaries(st.text(st.characters()), json_values, max_size=3))
    )
    message["role"] = draw(
        st.sampled_from(["system", "developer", "user", "assistant", "tool", "critic"])
    )
    message["content"] = draw(json_values)
    return message


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(foreign_messages(), max_size=6))
def test_what_went_in_comes_out_of_the_file_as_it_was(
    sessions: Sessions, messages: list[MessageDict]
) -> None:
    async def main() -> None:
        sessions.path.unlink(missing_ok=True)
        await sessions.keep(messages)
        assert list(map(repr, await sessions.history())) == list(map(repr, messages))

    anyio.run(main)


async def test_the_memory_holds_what_the_file_holds(sessions: Sessions) -> None:
    async with sessions.opened() as context:
        message: MessageDict = {
            "role": "user",
            "content": "now",
            "metadata": {"tags": ("a",)},
        }
        await context.add_message(message)
        message["content"] = "later"

        live = list(await context.get_messages())
    assert (
        live
        == await sessions.history()
        == [{"role": "user", "content": "now", "metadata": {"tags": ["a"]}}]
    )


@pytest.mark.parametrize(
    "message",
    [{"content": "who?"}, {"role": "user", "content": object()}],
    ids=["role", "json"],
)
async def test_what_cannot_be_stored_is_in_neither(
    sessions: Sessions, message: MessageDict
) -> None:
    async with sessions.opened() as context:
        with pytest.raises(
            ValueError, match=r"needs a 'role'|cannot be written as JSON"
        ):
            await context.add_message(message)
        assert list(await context.get_messages()) == []
    assert await sessions.history() == []


# -- histories from outside


async def test_a_new_conversation_takes_the_history_it_is_given(
    sessions: Sessions,
) -> None:
    async with sessions.opened(system_prompt="Be brief.") as context:
        await context.set_messages(TALK)
        await context.add_message(said("Thanks."))

    assert await sessions.history() == [*TALK, said("Thanks.")]


async def test_a_history_with_a_message_that_is_none_changes_nothing(
    sessions: Sessions,
) -> None:
    async with sessions.opened() as context:
        await context.add_message(said("Hello."))
        with pytest.raises(ValueError, match="needs a 'role'"):
            await context.set_messages([*TALK, {"content": "who?"}])

    assert await sessions.history() == [said("Hello.")]


async def test_history_that_was_read_from_file_ignores_transcript(
    sessions: Sessions, caplog: pytest.LogCaptureFixture
) -> None:
    await sessions.keep(TALK)
    async with sessions.opened() as context:
        with caplog.at_level(logging.INFO):
            await context.set_messages(TALK[1:3])
        assert context.is_loaded
        assert list(await context.get_messages()) == TALK

    assert caplog.messages == [
        f"set_messages is ignored: the history was read from {sessions.path}"
    ]


async def test_repair_is_stored_and_old_history_stays_in_file(
    sessions: Sessions,
) -> None:
    await sessions.keep(TALK[:3])
    async with sessions.opened() as context:
        mended = repair(await context.get_messages())
        await context.repair_messages(mended)
        assert list(await context.get_messages()) == list(mended.messages)

    assert mended.findings
    assert await sessions.history() == list(mended.messages)
    *_, old, new = map(json.loads, sessions.path.read_text("utf-8").splitlines())
    assert (old["kind"], old["data"]) == ("message", TALK[2])
    assert (new["kind"], new["data"]["reason"]) == ("epoch", "repaired")
    assert new["data"]["findings"][0]["problem"] == "unanswered_call"


async def test_clearing_begins_anew_and_old_messages_stay_in_file(
    sessions: Sessions,
) -> None:
    async with sessions.opened(system_prompt="Be brief.") as context:
        await context.add_message(said("Forget this."))
        await context.clear()
        await context.add_message(said("Hello."))

    assert await sessions.history() == [said("Be brief.", "system"), said("Hello.")]
    assert "Forget this." in sessions.path.read_text("utf-8")


async def test_clearing_reads_the_memory_as_it_is_then(sessions: Sessions) -> None:
    (sessions.folder / "facts.md").write_text("The sky is green.", "utf-8")
    await sessions.keep([said("Hello.")], memory_files=["facts.md"])
    (sessions.folder / "facts.md").write_text("The sky is red.", "utf-8")
    async with sessions.opened(memory_files=["facts.md"]) as context:
        await context.clear()
        (sessions.folder / "facts.md").unlink()
        with pytest.raises(ConfigError, match="cannot be read"):
            await context.clear()

    (message,) = await sessions.history()
    assert message["content"] == "The sky is red."


async def test_after_clear_a_history_is_taken_again(sessions: Sessions) -> None:
    await sessions.keep(TALK)
    async with sessions.opened() as context:
        await context.clear()
        await context.set_messages(TALK[1:2])

    assert await sessions.history() == TALK[1:2]


# -- what a conversation begins with


async def test_memory_files_and_system_prompt_begin_new_conversation(
    sessions: Sessions,
) -> None:
    (sessions.folder / "facts.md").write_text("The sky is green.\n", "utf-8")
    config: dict[str, JSONValue] = {
        "memory_files": ["facts.md"],
        "system_prompt": "Be brief.",
    }
    await sessions.keep([said("Hello.")], **config)
    (sessions.folder / "facts.md").unlink()

    assert await sessions.history(**config) == [
        said("Be brief.", "system"),
        {
            "role": "system",
            "content": "The sky is green.\n",
            "metadata": {"source": "memory", "path": str(sessions.folder / "facts.md")},
        },
        said("Hello."),
    ]


def missing(folder: Path) -> None: ...


def binary(folder: Path) -> None:
    (folder / "facts.md").write_bytes(b"\xff\xfe")


def pipe(folder: Path) -> None:
    os.mkfifo(folder / "facts.md")


def large(folder: Path) -> None:
    (folder / "facts.md").write_bytes(b"x" * 801)


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (missing, "No such file"),
        (binary, "can't decode"),
        (pipe, "it is no regular file"),
        (large, "it has more than 800 bytes, and the budget is 100 tokens"),
    ],
    ids=["missing", "binary", "pipe", "large"],
)
async def test_a_memory_file_that_cannot_be_read_is_named(
    sessions: Sessions, make: Callable[[Path], None], problem: str
) -> None:
    make(sessions.folder)

    with pytest.raises(
        ConfigError,
        match=rf"memory_files\[0\]: .*facts\.md cannot be read: .*{problem}",
    ):
        await sessions.history(memory_files=["facts.md"], max_tokens=100)
    assert list(sessions.path.parent.iterdir()) == []
    assert await sessions.history() == []  # and the file is free


async def test_a_memory_larger_than_the_budget_is_refused(sessions: Sessions) -> None:
    (sessions.folder / "facts.md").write_text("word " * 150, "utf-8")

    with pytest.raises(
        ConfigError,
        match=r"memory_files: the conversation would begin with .* its budget is 100",
    ):
        await sessions.history(memory_files=["facts.md"], max_tokens=100)


# -- where it is kept


async def test_without_a_folder_for_sessions_it_is_kept_at_home(home: Path) -> None:
    context = await mount(ModuleCoordinator(session_id="../one"), {})
    await context.add_message(said("Hello."))
    await context.aclose()

    (found,) = (home / "sessions").iterdir()
    assert found.name.startswith("=one-")
    assert (found / "context-messages.jsonl").exists()


async def test_without_any_home_it_is_kept_in_the_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AMPLIFIER_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    context = await mount(ModuleCoordinator(session_id="one"), {})
    await context.aclose()

    assert (
        context.file.path
        == tmp_path / ".amplifier" / "sessions" / "one" / "context-messages.jsonl"
    )


@pytest.mark.parametrize("name", ["talk.jsonl", "deep/er/talk.jsonl", "~/talk.jsonl"])
async def test_a_configured_path_is_used(
    sessions: Sessions, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("HOME", str(sessions.folder / "user"))
    await sessions.keep(TALK, transcript_path=name)

    assert await sessions.history(transcript_path=name) == TALK
    place = sessions.folder / name.replace("~", "user")
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    assert not sessions.path.exists()


async def test_files_are_for_their_user_alone(sessions: Sessions) -> None:
    async with sessions.opened() as context:
        await context.add_message(said("Hello."))
        places = [
            sessions.path,
            sessions.path.parent,
            sessions.path.parent.parent,
            *sessions.path.parent.iterdir(),
        ]
        modes = {place.name: stat.S_IMODE(place.stat().st_mode) for place in places}

    assert {modes.pop("one"), modes.pop("sessions")} == {0o700}
    assert set(modes.values()) == {0o600}


# -- what goes wrong


async def shortest_refusal(sessions: Sessions, **config: JSONValue) -> float:
    """Return how many seconds a second session waits before it is refused: of three tries, on a busy machine."""
    waits: list[float] = []
    for _ in range(3):
        began = anyio.current_time()
        with pytest.raises(LockedError, match="written by this process itself"):
            await sessions.history(**config)
        waits.append(anyio.current_time() - began)
    return min(waits)


async def test_a_second_session_is_refused_with_the_name_of_the_first(
    sessions: Sessions,
) -> None:
    async with sessions.opened():
        assert await shortest_refusal(sessions) < 1


async def test_the_wait_for_another_session_is_a_setting(sessions: Sessions) -> None:
    async with sessions.opened():
        assert await shortest_refusal(sessions, lock_timeout=0) < 0.4


async def test_a_file_that_is_no_conversation_is_refused(sessions: Sessions) -> None:
    (sessions.folder / "notes.txt").write_text("Buy milk.\n", "utf-8")

    with pytest.raises(LogFormatError, match=r"notes\.txt: it is no log"):
        await sessions.history(transcript_path="notes.txt")


async def test_a_full_disk_stops_the_message_and_not_the_conversation(
    sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(handle: int, data: bytes) -> None:
        os.write(handle, data[: len(data) // 2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    async with sessions.opened() as context:
        await context.add_message(said("one"))
        with monkeypatch.context() as patch:
            patch.setattr(_disk, "write_whole", refuse)
            with pytest.raises(AppendError, match="No space left on device"):
                await context.add_message(said("two"))
            assert list(await context.get_messages()) == [said("one")]
        await context.add_message(said("three"))
        assert list(await context.get_messages()) == [said("one"), said("three")]

    assert await sessions.history() == [said("one"), said("three")]


def strays() -> list[bytes]:
    data: list[tuple[str, JSONValue]] = [
        ("message", "no message"),
        ("message", {"content": "who?"}),
        ("epoch", {"messages": [{"content": "who?"}]}),
        ("epoch", {"messages": "none"}),
        ("other", {}),
    ]
    return [
        b"123",
        b"{}",
        *(encode_line(LogEntry(kind=kind, data=item, at=1)) for kind, item in data),
    ]


@pytest.mark.parametrize("stray", strays(), ids=range(7))
async def test_a_line_that_is_no_message_is_set_aside_and_told(
    sessions: Sessions, stray: bytes
) -> None:
    await sessions.keep(TALK)
    sessions.path.write_bytes(sessions.path.read_bytes() + stray + b"\n")
    coordinator = ModuleCoordinator(session_id="one")
    heard: list[dict[str, object]] = []
    coordinator.hooks.register("user:notification", lambda _, data: heard.append(data))

    async with sessions.opened(coordinator) as context:
        assert list(await context.get_messages()) == TALK
        await coordinator.hooks.emit("session:resume", {})

    (reported,) = heard
    assert reported["level"] == "warning"
    assert reported["source"] == "context-persistent"
    assert f"The conversation's file {sessions.path} was damaged" in str(
        reported["message"]
    )
    assert (
        sessions.path.with_name("context-messages.jsonl.damaged").read_bytes()
        == stray + b"\n"
    )


# -- in a session


@orchestrator
class Steps(Loop):
    """Asks and runs tools until there are no more calls."""

    async def run(self, turn: Turn) -> str:
        while (response := await turn.complete()).tool_calls:
            await turn.run_tools(response.tool_calls)
        return response.text


async def test_at_the_end_of_a_turn_everything_is_on_the_disk(
    sessions: Sessions,
) -> None:
    @tool
    async def today() -> str:
        """Tell which day it is."""
        return "Saturday"

    modules = {
        "context-persistent": mount,
        "loop": Steps,
        "tool": today,
        "provider": mounting(
            ScriptedProvider(
                answer("Let me see.", call("today", {})), "It is Saturday."
            )
        ),
    }
    plan: dict[str, object] = {
        "session": {"orchestrator": "loop", "context": "context-persistent"},
        "providers": ["provider"],
        "tools": ["tool"],
    }
    session = AmplifierSession(plan, ModuleLoader(modules=modules), "one")
    session.coordinator.register_capability("session.dir", str(sessions.folder))
    async with session:
        await session.execute("Which day?")
        context = session.coordinator.context
        assert isinstance(context, PersistentContext)
        assert not context.file.is_dirty

    assert [message["role"] for message in await sessions.history()] == [
        "user",
        "assistant",
        "tool",
        "assistant",
    ]


@pytest.mark.parametrize(
    "event", ["orchestrator:complete", "execution:end", "cancel:completed"]
)
async def test_however_a_turn_ends_everything_is_on_the_disk(
    sessions: Sessions, event: str
) -> None:
    coordinator = ModuleCoordinator(session_id="one")
    async with sessions.opened(coordinator) as context:
        await context.add_message(said("Hello."))
        await coordinator.hooks.emit(event, {})
        assert not context.file.is_dirty


async def test_with_sync_each_message_is_on_disk_before_next_step(
    sessions: Sessions,
) -> None:
    async with sessions.opened(durability="sync") as context:
        await context.add_message(said("Hello."))
        assert not context.file.is_dirty
    async with sessions.opened() as context:
        await context.add_message(said("Hello."))
        assert context.file.is_dirty
