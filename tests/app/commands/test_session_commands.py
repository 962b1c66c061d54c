"""What the commands of a conversation show, choose and change."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from amplifier.app.commands.builtin import make_registry
from amplifier.app.commands.registry import CommandRegistry
from amplifier.app.commands.talk import Talk
from amplifier.app.directories import AppDirs
from amplifier.app.plans.base_plans import PlanOptions
from amplifier.app.sessions.composition import new_record
from amplifier.app.sessions.opened import open_session
from amplifier.app.sessions.reopened import reopen
from amplifier.app.store.reader import read_history, words_of
from amplifier.app.store.recorded import read_recorded
from amplifier.app.store.store import ProjectSessions
from amplifier_kit.commands import CommandAnswer, CommandError, CommandPrompt
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.results import HookResult
from tests.app.projects import composed, write

USAGE: JSONValue = {"input_tokens": 1000, "output_tokens": 20, "cost_usd": "0.004"}


def _plan(**changes: JSONValue) -> JSONObject:
    script: JSONValue = [
        {"text": f"answer {number}", "usage": USAGE} for number in range(6)
    ]
    return {
        "session": {"orchestrator": "loop-basic", "context": "context-simple"},
        "providers": [{"module": "provider-scripted", "config": {"responses": script}}],
        "tools": [{"module": "tool-filesystem"}],
        **changes,
    }


@asynccontextmanager
async def conversation(
    dirs: AppDirs,
    *prompts: str,
    saved: bool = True,
    session: str | None = None,
    plan: JSONObject | None = None,
    **changes: JSONValue,
) -> AsyncIterator[tuple[Talk, CommandRegistry]]:
    """Open a session, take turns in it, and gather its commands."""
    composition = composed(plan or _plan(**changes), dirs.working_dir)
    store = ProjectSessions.of(composition.dirs) if saved else None
    record = (
        new_record(composition)
        if session is None
        else ProjectSessions.of(composition.dirs).find(session).record
    )
    async with open_session(composition, record=record, store=store) as opened:
        talk = Talk.of(opened)
        registry, problems = await make_registry(talk)
        assert problems == []
        for prompt in prompts:
            await take(talk, prompt)
        yield talk, registry


async def take(talk: Talk, prompt: str) -> None:
    async with talk.stream(prompt) as events:
        async for _ in events:
            pass


async def say(registry: CommandRegistry, line: str) -> str:
    """Run a command that answers."""
    name, _, arguments = line.partition(" ")
    made = await registry.find(name.removeprefix("/")).make(arguments)
    assert isinstance(made, CommandAnswer)
    return made.text


async def refused(registry: CommandRegistry, line: str) -> str:
    with pytest.raises(CommandError) as caught:
        await say(registry, line)
    return str(caught.value)


async def prompts_of(talk: Talk) -> list[object]:
    return [
        message["content"] for message in await talk.said() if message["role"] == "user"
    ]


async def test_status_says_who_the_session_is_and_whom_it_asks(dirs: AppDirs) -> None:
    async with conversation(dirs, "one") as (talk, registry):
        text = await say(registry, "/status")
        assert talk.opened.session.session_id in text
        assert "Provider: chosen by the loop (scripted)" in text
        assert "Model:    the provider's own" in text
        assert "Turns:    1" in text
        await say(registry, "/model scripted/tiny")
        text = await say(registry, "/status")
        assert "Provider: scripted" in text
        assert "Model:    tiny" in text


async def test_status_names_the_model_of_the_plan(dirs: AppDirs) -> None:
    async with conversation(
        dirs, saved=False, orchestrator={"config": {"model": "m-1"}}
    ) as (_, registry):
        text = await say(registry, "/status")
        assert "Model:    m-1" in text
        assert "Kept:     no" in text


async def test_tools_are_listed_with_effects_and_what_mode_refuses(
    dirs: AppDirs,
) -> None:
    async with conversation(dirs) as (_, registry):
        assert "write_file      write  Write" in await say(registry, "/tools")
        await say(registry, "/mode plan")
        text = await say(registry, "/tools")
        assert "write_file      write  (not in plan mode)" in text
        assert "read_file       read   Read" in text
    async with conversation(dirs, tools=[]) as (_, registry):
        assert await say(registry, "/tools") == "There are no tools."


async def test_agents_are_listed(dirs: AppDirs) -> None:
    agents: JSONValue = {"reviewer": {"description": "Reviews.\nWell."}, "silent": {}}
    async with conversation(dirs, agents=agents) as (_, registry):
        assert await say(registry, "/agents") == "reviewer  Reviews.\nsilent"
    async with conversation(dirs) as (_, registry):
        assert await say(registry, "/agents") == "There are no agents."


async def test_hooks_are_listed_in_words(dirs: AppDirs) -> None:
    async with conversation(dirs, hooks=["hooks-approval"]) as (talk, registry):
        hooks = talk.opened.session.coordinator.hooks
        for name, priority in (("Shop.look_on", 5), ("Shop.first", -5)):
            hooks.register("shop:*", lambda *_: None, priority, name, decides=False)
        lines = (await say(registry, "/hooks")).splitlines()
        own = [line.split(maxsplit=2)[1:] for line in lines if "shop:" in line]
        (guard,) = [
            line
            for line in lines
            if line.startswith("tool:pre") and "hooks-approval" in line
        ]

    assert own == [
        ["amplifier", "first (observes, priority -5)"],
        ["amplifier", "look on (observes, priority 5)"],
    ]
    assert "(may refuse, priority " in guard
    assert "ApprovalHook" not in guard


async def test_cost_counts_since_the_opening_and_in_all(dirs: AppDirs) -> None:
    async with conversation(dirs, "one", "two") as (talk, registry):
        text = await say(registry, "/cost")
        assert text.startswith(
            "Since it was opened: 2,000 in, 40 out tokens, $0.0080\n"
        )
        assert "In all: 2,000 input, 40 output, 2,040 total tokens, $0.0080" in text
        name = talk.opened.session.session_id
    async with conversation(dirs, session=name) as (_, registry):
        text = await say(registry, "/cost")
        assert text.startswith(
            "Since it was opened: no tokens are known\nIn all: 2,000 input"
        )


async def test_help_lists_the_commands_and_explains_one(dirs: AppDirs) -> None:
    async with conversation(dirs) as (talk, registry):
        text = await say(registry, "/help")
        assert all(f"/{name}" in text for name in ("status", "undo", "mode", "fork"))
        assert max(map(len, text.splitlines())) < 80
        talk.columns = 39
        narrow = await say(registry, "/help")
        assert max(map(len, narrow.splitlines())) < 40
        assert "/rename NAME\n  Name the session\n" in narrow
        talk.columns = 199
        assert "..." not in await say(registry, "/help")
        assert (
            await say(registry, "/help /undo")
            == "/undo [N] [conversation|files|both]\n"
            "  Take back the last turn, or N, and the files that it changed"
        )
        assert (
            await refused(registry, "/help undoo")
            == "There is no command /undoo; did you mean '/undo'?"
        )


async def test_undo_takes_back_the_last_turns_in_memory_and_on_disk(
    dirs: AppDirs,
) -> None:
    async with conversation(dirs, "one", "two", "three") as (talk, registry):
        assert (await say(registry, "/undo")).startswith("1 turn taken back, 2 left.")
        assert await prompts_of(talk) == ["one", "two"]
        await take(talk, "four")
        assert await prompts_of(talk) == ["one", "two", "four"]
        saved = talk.opened.writer
        assert saved is not None
        assert saved.record.turn_count == 3
        stored = [words_of(line.message) for line in read_history(saved.folder).lines]
        assert stored == ["one", "answer 0", "two", "answer 1", "four", "answer 3"]
        name = talk.opened.session.session_id
    async with conversation(dirs, session=name) as (talk, registry):
        assert (await say(registry, "/undo 2")).startswith(
            "2 turns taken back, 1 left."
        )
        assert await prompts_of(talk) == ["one"]
        assert await refused(registry, "/undo 2") == "1 turn can be taken back; got 2"
        assert "Expected a number of turns" in await refused(registry, "/undo x")


async def test_what_taken_back_is_so_in_context_with_history_of_own(
    dirs: AppDirs,
) -> None:
    session: JSONValue = {"orchestrator": "loop-basic", "context": "context-persistent"}
    plan = {**_plan(), "session": session}
    async with conversation(dirs, "one", "two", "three", plan=plan) as (talk, _):
        saved = talk.opened.session.session_id
    async with conversation(dirs, session=saved, plan=plan) as (
        talk,
        registry,
    ):
        assert (
            await say(registry, "/undo")
            == "1 turn taken back, 2 left. Files stay as they are."
        )
        assert await prompts_of(talk) == ["one", "two"]
    async with conversation(dirs, session=saved, plan=plan) as (
        talk,
        registry,
    ):
        assert await prompts_of(talk) == ["one", "two"]
        await say(registry, "/clear")
        assert await talk.said() == []
    async with conversation(dirs, session=saved, plan=plan) as (talk, _):
        assert await talk.said() == []


async def test_what_an_undone_turn_mentioned_is_shown_again(dirs: AppDirs) -> None:
    write(dirs.root / "notes.md", "Milk.")
    async with conversation(dirs, "Read @notes.md") as (talk, registry):
        await say(registry, "/undo")
        assert await talk.said() == []
        await take(talk, "Again @notes.md")
        assert [message["role"] for message in await talk.said()] == [
            "developer",
            "user",
            "assistant",
        ]


async def test_clear_forgets_all_but_the_instructions(dirs: AppDirs) -> None:
    async with conversation(dirs, "one") as (talk, registry):
        context = talk.opened.session.coordinator.context
        await context.set_messages(
            [{"role": "system", "content": "Be kind."}, *await talk.said()]
        )
        assert (await say(registry, "/clear")).startswith(
            "The conversation is empty; 1 turn forgotten."
        )
        assert await context.get_messages() == [
            {"role": "system", "content": "Be kind."}
        ]
        assert talk.starts == []
        assert talk.opened.writer is not None
        assert read_history(talk.opened.writer.folder).lines == ()


async def test_a_turn_that_leaves_nothing_is_none_to_take_back(dirs: AppDirs) -> None:
    async with conversation(dirs, saved=False) as (talk, registry):
        hooks = talk.opened.session.coordinator.hooks
        unregister = hooks.register(
            "prompt:submit", lambda *_: HookResult.deny("not today"), decides=True
        )
        await take(talk, "one")
        assert await talk.said() == []
        assert await refused(registry, "/undo") == "0 turns can be taken back; got 1"
        unregister()
        await take(talk, "two")
        assert (await say(registry, "/undo")).startswith("1 turn taken back, 0 left.")


async def test_compact_asks_the_context_manager(dirs: AppDirs) -> None:
    async with conversation(dirs, "one", "two") as (talk, registry):
        assert "The history itself is whole." in await say(registry, "/compact")
        assert len(await talk.said()) == 4
    async with conversation(dirs) as (talk, registry):
        talk.opened.session.coordinator.context.compact = None  # type: ignore[attr-defined]  # one that cannot
        assert "cannot compact" in await refused(registry, "/compact")


async def test_rename_names_a_session_that_is_kept(dirs: AppDirs) -> None:
    async with conversation(dirs) as (talk, registry):
        assert (
            await say(registry, "/rename  my   shop")
            == "The session is called 'my shop'."
        )
        assert (
            ProjectSessions.of(dirs).find("my shop").record.session_id
            == talk.opened.session.session_id
        )
        assert "A name is missing" in await refused(registry, "/rename")
        assert "has 50 characters at most; this one has 51" in await refused(
            registry, f"/rename {'x' * 51}"
        )
    async with conversation(dirs, saved=False) as (_, registry):
        assert "not stored" in await refused(registry, "/rename shop")


async def test_fork_keeps_another_session_with_some_of_the_turns(
    dirs: AppDirs,
) -> None:
    async with conversation(dirs, "one", "two") as (talk, registry):
        text = await say(registry, "/fork 1 other way")
        store = ProjectSessions.of(dirs)
        made = store.find("other way")
        recorded = read_recorded(made.folder)
        assert recorded is not None
        assert recorded == read_recorded(store.folder(talk.opened.session.session_id))
        assert made.record.session_id in text
        assert made.record.turn_count == 1
        assert "with 2 turns" in await say(registry, "/fork")
        assert "2 turns" in await refused(registry, "/fork 9")
        assert "A number of turns that go along is missing" in await refused(
            registry, "/fork x"
        )
    async with conversation(dirs, saved=False) as (_, registry):
        assert "nothing to fork" in await refused(registry, "/fork")


@pytest.mark.parametrize("saved", [True, False], ids=["kept", "not kept"])
async def test_save_writes_a_new_private_file(dirs: AppDirs, saved: bool) -> None:
    async with conversation(
        dirs,
        "The key is ghp_16C7e42F292c6912E7710c838347Ae178B4a",
        saved=saved,
    ) as (_, registry):
        assert (
            await say(registry, "/export talk.md")
            == f"Written: {dirs.working_dir / 'talk.md'}"
        )
        text = (dirs.working_dir / "talk.md").read_text("utf-8")
        assert "answer 0" in text
        assert "ghp_16C7" not in text
        assert (dirs.working_dir / "talk.md").stat().st_mode & 0o777 == 0o600
        assert "exists already" in await refused(registry, "/export talk.md")
        assert "says no form" in await refused(registry, "/export talk.docx")
        assert "cannot be written" in await refused(registry, "/export nowhere/talk.md")
        await say(registry, "/export talk.json")
        data = json.loads((dirs.working_dir / "talk.json").read_text("utf-8"))
        assert [line["turn"] for line in data["messages"]] == ["1", "1"]
        assert (await say(registry, "/export")).endswith(".md")


async def test_the_mode_is_shown_and_chosen_and_may_bring_a_prompt(
    dirs: AppDirs,
) -> None:
    async with conversation(dirs) as (talk, registry):
        assert await say(registry, "/mode") == "Mode ask: edits and commands ask first."
        made = await registry.find("mode").make("plan  a shop")
        assert made == CommandPrompt(text="a shop")
        assert await say(registry, "/mode") == "Mode plan: only tools that read run."
        assert await say(registry, "/do") == "Mode ask: edits and commands ask first."
        assert not talk.mode.is_on
        assert await registry.find("do").make("it") == CommandPrompt(text="it")
        assert (await say(registry, "/plan")).startswith("Mode plan:")
        assert (await say(registry, "/mode accept-edits")).startswith("Mode accept")
        assert talk.modes.current == "accept-edits"
        assert "did you mean 'plan'" in await refused(registry, "/mode pla")


async def test_provider_and_model_of_next_turns_are_chosen(
    dirs: AppDirs,
) -> None:
    script: JSONValue = {"responses": ["from a"], "repeat": True, "name": "a"}
    other: JSONValue = {"responses": ["from b"], "repeat": True, "name": "b"}
    providers: JSONValue = [
        {"module": "provider-scripted", "instance_id": "a", "config": script},
        {"module": "provider-scripted", "instance_id": "b", "config": other},
    ]
    async with conversation(dirs, "one", providers=providers) as (talk, registry):
        assert "The loop chooses" in await say(registry, "/provider")
        await say(registry, "/provider b")
        await take(talk, "two")
        assert [words_of(message) for message in await talk.said()] == [
            "one",
            "from a",
            "two",
            "from b",
        ]
        assert await say(registry, "/provider") == "  a\n* b"
        assert "No provider 'c' is mounted: a, b" in await refused(
            registry, "/provider c"
        )
        assert (await say(registry, "/model")).startswith("b  ")
        assert "No provider lists it" in await say(registry, "/model a/unheard-of")
        assert talk.metadata == {"provider": "a", "model": "unheard-of"}
        assert (await say(registry, "/model")).endswith("Chosen: unheard-of")
        await say(registry, "/model auto")
        assert talk.metadata == {"provider": "a"}
        await say(registry, "/provider auto")
        assert talk.metadata == {}


async def test_who_was_chosen_answers_when_session_is_opened_again(
    dirs: AppDirs,
) -> None:
    scripts: list[JSONValue] = [
        {
            "module": "provider-scripted",
            "instance_id": name,
            "config": {"responses": [name], "repeat": True},
        }
        for name in ("a", "b")
    ]
    async with conversation(dirs, "one", providers=scripts) as (talk, registry):
        await say(registry, "/provider b")
        await take(talk, "two")
        session, store = talk.opened.session.session_id, ProjectSessions.of(dirs)
    record = store.find(session).record
    assert record.provider == "b"
    composition = reopen(store, record, PlanOptions(), dirs).composition
    async with open_session(composition, record=record, store=store) as opened:
        await take(Talk.of(opened), "three")
    assert [
        words_of(message) for message in read_history(store.folder(session)).messages
    ][1::2] == ["a", "b", "b"]


async def test_a_provider_that_cannot_list_its_models_hides_no_other(
    dirs: AppDirs,
) -> None:
    async with conversation(dirs) as (talk, registry):
        providers = talk.opened.session.coordinator.get("providers")
        assert isinstance(providers, dict)

        async def fail() -> list[object]:
            raise OSError("no line")

        providers["scripted"].list_models = fail
        assert await say(registry, "/model") == "scripted    not known: no line"
        assert await say(registry, "/model any") == "any answers from the next turn on."


async def test_settings_are_shown_explained_and_set_for_the_session(
    dirs: AppDirs,
) -> None:
    write(dirs.home / "settings.yaml", "ui:\n  show_usage: false\n")
    async with conversation(dirs) as (talk, registry):
        assert await say(registry, "/config") == "ui:\n  show_usage: false"
        assert "  visibility: user\n" in await say(registry, "/config ui")
        assert await say(registry, "/config ui.show_usage true") == (
            "ui.show_usage is set for this session; it holds at once."
        )
        lines = (await say(registry, "/config ui.show_usage")).splitlines()
        assert [line.split()[:2] for line in lines] == [
            ["session", "true"],
            ["user", "false"],
            ["default", "true"],
        ]
        assert (
            await say(registry, "/config profile.active")
            == "profile.active is not set."
        )
        assert "is set" in await say(registry, "/config profile.active dev")
        assert "did you mean" in await refused(registry, "/config ui.show_usagee true")
        assert "a key is written as" in await refused(registry, "/config ui..x")
        assert talk.opened.writer is not None
        assert (talk.opened.writer.folder / "settings.yaml").is_file()
    (dirs.home / "settings.yaml").unlink()
    async with conversation(dirs, saved=False) as (_, registry):
        assert "has its default" in await say(registry, "/config")
        assert "no settings" in await refused(registry, "/config ui.show_usage true")
