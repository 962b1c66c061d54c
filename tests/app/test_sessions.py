"""What the application adds to a session before its first turn."""

from __future__ import annotations

import json
from pathlib import Path

import attrs
import pytest

from amplifier.app.directories import AppDirs
from amplifier.app.mentions.resolver import MentionResolver
from amplifier.app.mentions.session import MENTIONS_RESOLVED
from amplifier.app.plans.base_plans import PlanOptions
from amplifier.app.sessions.composition import Composition, compose
from amplifier.app.sessions.opened import OpenSession, open_session
from amplifier.app.store.children import StoredChildren
from amplifier.app.store.reader import read_history
from amplifier.app.store.records import SessionRecord
from amplifier.app.store.store import ProjectSessions
from amplifier_kit.commands import WrittenText
from amplifier_sdk.delegation import ChildRecord
from amplifier_sdk.errors import (
    AuthenticationError,
    ConfigError,
    ModuleNotFoundError,
    SessionBusyError,
)
from amplifier_sdk.journal import CallFinished, CallStarted, MessageWritten, TurnStarted
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.results import HookResult
from amplifier_sdk.streaming import TurnFinished
from tests.app.projects import composed, write
from tests.app.store.talks import calling

SCRIPTED: JSONValue = {"module": "provider-scripted", "config": {"responses": ["done"]}}


def _plan(*providers: JSONValue, tools: tuple[str, ...] = ()) -> JSONObject:
    session = {"orchestrator": "loop-basic", "context": "context-simple"}
    return {"session": session, "providers": list(providers), "tools": list(tools)}


async def test_a_session_is_ready_and_knows_where_the_person_works(
    tmp_path: Path,
) -> None:
    async with open_session(
        composed(_plan(SCRIPTED), tmp_path), record=SessionRecord(session_id="s1")
    ) as opened:
        session = opened.session
        assert session.session_id == "s1"
        assert session.coordinator.get_capability("session.working_dir") == str(
            tmp_path
        )
        assert await session.execute("hello") == "done"

    assert not session.initialized


async def test_a_session_without_its_only_provider_does_not_open(
    tmp_path: Path,
) -> None:
    with pytest.raises(ModuleNotFoundError, match="provider-scrpted"):
        async with open_session(composed(_plan("provider-scrpted"), tmp_path)):
            raise AssertionError


async def test_several_failed_providers_are_told_in_one_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        async with open_session(composed(_plan("provider-x", "provider-y"), tmp_path)):
            raise AssertionError

    assert [problem.path for problem in caught.value.problems] == [
        "provider-x",
        "provider-y",
    ]


async def test_session_goes_on_with_providers_and_tools_that_work(
    tmp_path: Path,
) -> None:
    async with open_session(
        composed(_plan("provider-x", SCRIPTED, tools=("tool-x",)), tmp_path)
    ) as opened:
        assert [failure.module_id for failure in opened.session.failures] == [
            "provider-x",
            "tool-x",
        ]


async def test_a_failed_tool_is_no_reason_to_miss_a_provider(tmp_path: Path) -> None:
    async with open_session(composed(_plan(tools=("tool-x",)), tmp_path)) as opened:
        assert [failure.module_id for failure in opened.session.failures] == ["tool-x"]


async def test_the_first_tool_must_be_mounted(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such tool is mounted; mounted: none"):
        async with open_session(
            composed(_plan(SCRIPTED), tmp_path), first_tool="read_file"
        ):
            raise AssertionError


async def test_a_misspelt_first_tool_names_the_nearest(tmp_path: Path) -> None:
    plan = _plan(SCRIPTED, tools=("tool-filesystem",))

    with pytest.raises(
        ConfigError, match=r"'read_fil': .*mounted: .*did you mean 'read_file'"
    ):
        async with open_session(composed(plan, tmp_path), first_tool="read_fil"):
            raise AssertionError


async def test_a_first_tool_that_is_mounted_is_fine(tmp_path: Path) -> None:
    plan = _plan(SCRIPTED, tools=("tool-filesystem",))

    async with open_session(composed(plan, tmp_path), first_tool="read_file") as opened:
        assert opened.session.initialized


def _profiled(dirs: AppDirs, body: str, context: str = "context-simple") -> Composition:
    head = f"profile: {{name: dev}}\nsession: {{orchestrator: loop-basic, context: {context}}}\n"
    providers = "providers: [{module: provider-scripted, config: {responses: [done], repeat: true}}]\n"
    write(dirs.home / "profiles/dev.md", f"---\n{head}{providers}---\n{body}")
    return compose(PlanOptions(profile="dev"), dirs, installed=())


async def _history(opened: OpenSession) -> list[tuple[object, object]]:
    return [
        (message["role"], message["content"])
        for message in await opened.session.coordinator.context.get_messages()
    ]


async def test_profile_body_is_one_system_message_after_mentions(
    dirs: AppDirs,
) -> None:
    write(dirs.home / "profiles/AGENTS.md", "Be brief.")
    async with open_session(_profiled(dirs, "Follow @AGENTS.md.")) as opened:
        ((role, content),) = await _history(opened)
    assert role == "system"
    assert isinstance(content, str)
    assert content.startswith('<context_file paths="@AGENTS.md → ')
    assert content.endswith("Be brief.\n</context_file>\n\nFollow @AGENTS.md.")


async def test_a_body_without_mentions_is_the_system_message_as_well(
    dirs: AppDirs,
) -> None:
    async with open_session(_profiled(dirs, "Be kind.")) as opened:
        assert await _history(opened) == [("system", "Be kind.")]


async def test_what_prompt_mentions_stands_before_it_and_is_sent_once(
    dirs: AppDirs,
) -> None:
    write(dirs.root / "notes.md", "Milk.")
    async with open_session(_profiled(dirs, "Be kind.")) as opened:
        for prompt in ("Read @notes.md", "Again @notes.md"):
            async with opened.stream(prompt) as events:
                async for _ in events:
                    pass
        roles = [role for role, _ in await _history(opened)]
    assert roles == ["system", "developer", "user", "assistant", "user", "assistant"]


async def test_modules_find_mentions_through_the_session(dirs: AppDirs) -> None:
    path = write(dirs.root / "notes.md", "Milk.")
    async with open_session(_profiled(dirs, "")) as opened:
        resolver = opened.session.coordinator.get_capability("mention_resolver")
        assert isinstance(resolver, MentionResolver)
        assert resolver.resolve("@notes.md") == path


async def test_every_mention_is_told_as_an_event(dirs: AppDirs) -> None:
    write(dirs.root / "notes.md", "Milk.")
    async with open_session(_profiled(dirs, "See @missing.md")) as opened:
        heard: list[object] = []

        def hear(_: str, data: dict[str, object]) -> None:
            heard.append(data["summary"])

        opened.session.coordinator.hooks.register(MENTIONS_RESOLVED, hear, name="test")
        await _say(opened, "Read @notes.md and @nowhere.md")
        await _say(opened, "Nothing here.")
    assert heard == [
        "Adding system instruction. Processing @mentions: Loaded 0 files; skipped @missing.md (not found)",
        "Processing @mentions: Loaded 1 files; skipped @nowhere.md (not found)",
    ]


async def test_what_a_denied_prompt_mentions_is_not_read(dirs: AppDirs) -> None:
    write(dirs.root / "notes.md", "Milk.")
    async with open_session(_profiled(dirs, "")) as opened:

        def deny(_: str, data: dict[str, object]) -> HookResult:
            return HookResult.deny("no")

        opened.session.coordinator.hooks.register("prompt:submit", deny, name="guard")
        await _say(opened, "Read @notes.md")
        assert "developer" not in [role for role, _ in await _history(opened)]


@pytest.mark.parametrize("typed", [True, False])
async def test_what_a_module_says_to_the_agent_leads_nowhere(
    dirs: AppDirs, typed: bool
) -> None:
    """It may be what a web page or a tool's output said; a person's text is followed."""
    write(dirs.root / "notes.md", "Milk.")
    async with open_session(_profiled(dirs, "")) as opened:
        metadata = {"steering": True, "typed": typed}
        await opened.session.coordinator.hooks.emit(
            "prompt:submit", {"prompt": "Read @notes.md", "metadata": metadata}
        )
        roles = [role for role, _ in await _history(opened)]
    assert ("developer" in roles) is typed


async def test_a_guard_may_take_mentions_away_and_adds_none(dirs: AppDirs) -> None:
    for name in ("a.md", "b.md", "c.md"):
        write(dirs.root / name, f"This is {name}.")
    async with open_session(_profiled(dirs, "")) as opened:

        def change(_: str, data: dict[str, object]) -> HookResult:
            return HookResult.modify(
                {**data, "prompt": "Read @b.md and @c.md\n\npiped @c.md"}
            )

        opened.session.coordinator.hooks.register("prompt:submit", change, name="guard")
        async with opened.stream(
            "Read @a.md and @b.md\n\npiped @c.md", typed="Read @a.md and @b.md"
        ) as events:
            async for _ in events:
                pass
        shown = [
            content for role, content in await _history(opened) if role == "developer"
        ]
    assert len(shown) == 1
    assert "This is b.md." in str(shown[0])


async def test_mentions_in_files_reach_less_than_typed_ones(
    dirs: AppDirs, tmp_path: Path
) -> None:
    for name in ("outside.md", "typed.md"):
        write(tmp_path / name, f"This is {name}.")
    write(dirs.root / "notes.md", "This is inside.")
    text = "By @notes.md and @../outside.md: @../typed.md"
    async with open_session(_profiled(dirs, "")) as opened:
        written = WrittenText(text, dirs.home / "commands")
        async with opened.stream(text, typed="@../typed.md", written=written) as events:
            async for _ in events:
                pass
        shown = "\n".join(
            str(content)
            for role, content in await _history(opened)
            if role == "developer"
        )
    assert "This is inside." in shown
    assert "This is typed.md." in shown
    assert "outside" not in shown


async def test_what_a_model_writes_to_a_child_is_not_followed(dirs: AppDirs) -> None:
    """Whoever hears the events of a child as well is given no file that the child's prompt names."""
    write(dirs.root / "notes.md", "Milk.")
    async with open_session(_profiled(dirs, "")) as opened:
        hooks = opened.session.coordinator.hooks
        await hooks.emit(
            "prompt:submit", {"prompt": "Read @notes.md", "session_id": "another"}
        )
        assert "developer" not in [role for role, _ in await _history(opened)]


async def test_a_turn_that_nobody_typed_follows_nothing(dirs: AppDirs) -> None:
    write(dirs.root / "notes.md", "Milk.")
    async with open_session(_profiled(dirs, "")) as opened:
        await opened.session.execute("Read @notes.md")
        assert "developer" not in [role for role, _ in await _history(opened)]


async def _say(opened: OpenSession, prompt: str) -> str:
    async with opened.stream(prompt) as events:
        async for event in events:
            if isinstance(event, TurnFinished):
                return event.text
    raise AssertionError


async def test_a_stored_session_goes_on_where_it_ended(dirs: AppDirs) -> None:
    composition = _profiled(dirs, "Be kind.")
    store, record = ProjectSessions.of(dirs), SessionRecord(session_id="s1")
    write(dirs.root / "notes.md", "Milk.")
    async with open_session(composition, record=record, store=store) as opened:
        assert await _say(opened, "Read @notes.md") == "done"
    composition = _profiled(dirs, "Be brief.")
    async with open_session(composition, record=record, store=store) as opened:
        assert opened.session.is_resumed
        assert await _say(opened, "Again @notes.md") == "done"
        history = await _history(opened)
    assert [role for role, _ in history] == [
        "system",
        "developer",
        "user",
        "assistant",
        "user",
        "assistant",
    ]
    assert history[0] == ("system", "Be brief.")
    (found,) = store.all()
    assert found.record.turn_count == 2
    assert found.record.prompt == "Read @notes.md"


async def test_the_instruction_of_a_plan_file_holds_when_it_is_resumed(
    dirs: AppDirs,
) -> None:
    answers: JSONValue = {"responses": ["done"], "repeat": True}
    provider: JSONValue = {"module": "provider-scripted", "config": answers}
    plan = {**_plan(provider), "system": {"instruction": "Be brief."}}
    file = write(dirs.root / "plan.json", json.dumps(plan))
    composition = compose(PlanOptions(file=file), dirs)
    store, record = ProjectSessions.of(dirs), SessionRecord(session_id="s1")

    for turns in (1, 2):
        async with open_session(composition, record=record, store=store) as opened:
            await _say(opened, "Hello")
            history = await _history(opened)
        assert history[0] == ("system", "Be brief.")
        assert [role for role, _ in history[1:]] == ["user", "assistant"] * turns


async def test_context_with_own_history_follows_profile(
    dirs: AppDirs,
) -> None:
    memory = write(dirs.home / "memory.md", "They like tea.")
    context = f"{{module: context-persistent, config: {{memory_files: ['{memory}']}}}}"
    store, record = ProjectSessions.of(dirs), SessionRecord(session_id="s1")
    async with open_session(
        _profiled(dirs, "Be kind.", context), record=record, store=store
    ) as opened:
        assert await _history(opened) == [
            ("system", "Be kind."),
            ("system", "They like tea."),
        ]
        await _say(opened, "Hello")
    async with open_session(
        _profiled(dirs, "Be brief.", context), record=record, store=store
    ) as opened:
        history = await _history(opened)
    assert history[:2] == [("system", "Be brief."), ("system", "They like tea.")]
    assert [role for role, _ in history[2:]] == ["user", "assistant"]


async def test_context_with_own_history_gets_open_calls_of_journal(
    dirs: AppDirs,
) -> None:
    composition = _profiled(dirs, "", "context-persistent")
    store, record = ProjectSessions.of(dirs), SessionRecord(session_id="s1")
    said = calling("rm", "ls", "df")
    async with open_session(composition, record=record, store=store) as opened:
        assert opened.writer is not None
        # as a process that is killed leaves it
        context = opened.session.coordinator.context
        await context.add_message({"role": "user", "content": "Clean up"})
        await context.add_message(said)
        journal = opened.writer.journal
        await journal.append(TurnStarted(turn_id="t1", prompt="Clean up"))
        await journal.append(MessageWritten(turn_id="t1", message=said))
        for number, name in enumerate(("rm", "ls")):
            await journal.append(
                CallStarted(turn_id="t1", call_id=f"c{number}", tool_name=name)
            )
        await journal.append(
            CallFinished(turn_id="t1", call_id="c0", success=True, output="it is gone")
        )
    async with open_session(composition, record=record, store=store) as opened:
        assert opened.interrupted is not None
        await _say(opened, "Well?")
        reported = [
            str(content) for role, content in await _history(opened) if role == "tool"
        ]
    assert reported[0] == "it is gone"
    assert "is not known" in reported[1]
    assert "was not started" in reported[2]


async def test_what_prompt_mentions_is_written_down_while_turn_runs(
    dirs: AppDirs,
) -> None:
    store, record = ProjectSessions.of(dirs), SessionRecord(session_id="s1")
    write(dirs.root / "notes.md", "Milk.")
    async with (
        open_session(_profiled(dirs, ""), record=record, store=store) as opened,
        opened.stream("Read @notes.md") as events,
    ):
        async for _ in events:
            break
        reported = read_history(store.folder("s1")).messages
    assert [message["role"] for message in reported][:2] == ["developer", "user"]
    assert "Milk." in str(reported[0]["content"])


async def test_a_turn_that_fails_is_stored_as_well(dirs: AppDirs) -> None:
    plan = _plan(
        {
            "module": "provider-scripted",
            "config": {"responses": [{"error": {"type": "AuthenticationError"}}]},
        }
    )
    store, record = ProjectSessions.of(dirs), SessionRecord(session_id="s1")
    composition = attrs.evolve(_profiled(dirs, ""), plan=plan)
    with pytest.raises(AuthenticationError):
        async with open_session(composition, record=record, store=store) as opened:
            await _say(opened, "Hello")
    async with store.open(record) as stored:
        assert stored.messages[0] == {"role": "user", "content": "Hello"}
        assert stored.record.turn_count == 1


async def test_children_are_stored(dirs: AppDirs) -> None:
    composition = _profiled(dirs, "")
    store, record = ProjectSessions.of(dirs), SessionRecord(session_id="s1")
    async with open_session(composition, record=record, store=store) as opened:
        child = await opened.session.spawn(agent_name="self", instruction="Look")
    (found,) = [
        each for each in store.all(children=True) if each.record.parent_id == "s1"
    ]
    assert found.record.session_id == child.session_id
    async with open_session(composition, record=record, store=store) as opened:
        more = await opened.session.resume(
            sub_session_id=child.session_id, instruction="More"
        )
    assert more.turn_count == 2


async def test_session_that_never_spoke_is_not_stored(
    dirs: AppDirs,
) -> None:
    store = ProjectSessions.of(dirs)
    with pytest.raises(ConfigError):
        async with open_session(_profiled(dirs, ""), store=store, first_tool="nowhere"):
            raise AssertionError
    async with open_session(_profiled(dirs, ""), store=store):
        assert len(store.all()) == 1
    assert store.all() == []
    named = SessionRecord(session_id="s1", name="mine")
    async with open_session(_profiled(dirs, ""), record=named, store=store):
        pass
    async with open_session(
        _profiled(dirs, ""), record=SessionRecord(session_id="s2"), store=store
    ):
        write(store.folder("s2") / "events.jsonl", "{}")
    assert {found.record.session_id for found in store.all()} == {"s1", "s2"}
    assert [path.name for path in store.root.iterdir()] == ["sessions"]


async def test_child_that_was_cut_off_is_told_to_person_and_to_model(
    dirs: AppDirs,
) -> None:
    composition = _profiled(dirs, "")
    store, record = ProjectSessions.of(dirs), SessionRecord(session_id="s1")
    child = ChildRecord(
        session_id="s1-0_explorer",
        parent_id="s1",
        agent_name="explorer",
        plan=composition.plan,
    )
    async with store.open(record) as stored:
        await stored.journal.append(TurnStarted(turn_id="t1", prompt="Clean up"))
        await stored.journal.append(
            MessageWritten(turn_id="t1", message=calling("task"))
        )
        await stored.journal.append(
            CallStarted(turn_id="t1", call_id="c0", tool_name="task")
        )
        async with StoredChildren(store=store).open(child) as journal:
            await journal.append(TurnStarted(turn_id="t2", prompt="Delete it"))
            await journal.append(MessageWritten(turn_id="t2", message=calling("rm")))
            await journal.append(
                CallStarted(turn_id="t2", call_id="c0", tool_name="rm")
            )
    async with open_session(composition, record=record, store=store) as opened:
        assert opened.interrupted is not None
        assert opened.interrupted.in_doubt == ("task",)
        assert [
            (cut.session.record.agent_name, cut.turn.in_doubt) for cut in opened.cut_off
        ] == [("explorer", ("rm",))]
        assert "s1-0_explorer (agent explorer)" in str((await _history(opened))[-1][1])
        more = await opened.session.resume(
            sub_session_id=child.session_id, instruction="And now?"
        )
        assert (more.output, more.turn_count) == ("done", 2)
    said = [
        message.get("content")
        for message in read_history(store.folder(child.session_id)).messages
    ]
    assert "is not known" in str(said[2])
    assert said[3] == "And now?"


async def test_prompt_that_is_refused_leaves_turn_that_runs_alone(
    dirs: AppDirs,
) -> None:
    store, record = ProjectSessions.of(dirs), SessionRecord(session_id="s1")
    async with open_session(_profiled(dirs, ""), record=record, store=store) as opened:
        async with opened.stream("Hello") as events:
            async for _ in events:
                break
            with pytest.raises(SessionBusyError):
                await _say(opened, "And?")
            assert read_history(store.folder("s1")).messages[0]["content"] == "Hello"
            assert store.find("s1").record.turn_count == 0
        assert store.find("s1").record.turn_count == 1


async def test_where_a_module_redacts_no_secret_is_stored(dirs: AppDirs) -> None:
    composition = _profiled(dirs, "")
    session = composition.plan
    composition = attrs.evolve(
        composition, plan={**session, "hooks": ["hooks-redaction"]}
    )
    store, record = ProjectSessions.of(dirs), SessionRecord(session_id="s1")
    secret = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
    async with open_session(composition, record=record, store=store) as opened:
        await _say(opened, f"Use {secret}")
    written = b"".join(file.read_bytes() for file in store.folder("s1").iterdir())
    assert b"Use " in written
    assert secret.encode() not in written
