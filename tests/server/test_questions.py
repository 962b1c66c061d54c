"""What tools and agents ask a person, served: stored, answered once, by whom may, and continued wherever it is."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import anyio
import attrs
import pytest
from click.testing import CliRunner

from amplifier.app.plans.base_plans import PlanOptions
from amplifier.app.sessions.opened import open_session
from amplifier.app.sessions.selection import SessionSelector, select_session
from amplifier.cli import main
from amplifier.server.records import without_waiting
from amplifier_kit.open_data import as_object
from amplifier_sdk.errors import ConfigError
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.stores import LogEntry, StoredQuestion
from tests.server.asked import (
    calling_tool,
    plan_of_agents,
    plan_that_asks,
    write_tools,
)
from tests.server.serving import WRITES, Site, ended
from tests.server.test_sessions import begun, events_until, unheld
from tests.server.test_workers import Fleet, fleet
from tests.serving.client import Answer, Caller

pytestmark = pytest.mark.timeout(60)

DEPLOYS = (calling_tool("deploy", target="web"), "Deployed.")
UPLOADS = (calling_tool("upload"), "Uploaded.")


@pytest.fixture
def effects(site: Site, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file in which the tools note what they do."""
    write_tools(site)
    monkeypatch.syspath_prepend(str(site.home / "packages"))
    # an earlier test of this process may have imported its own
    monkeypatch.delitem(sys.modules, "asked_tools", raising=False)
    file = site.home / "effects.log"
    monkeypatch.setenv("EFFECTS", str(file))
    return file


@asynccontextmanager
async def asking(site: Site, *responses: JSONValue) -> AsyncIterator[Fleet]:
    async with fleet(site) as all_:
        plan_that_asks(site, *responses)
        yield all_


async def question(caller: Caller, session: str) -> JSONObject:
    """Wait for the one open question of a session."""
    await events_until(caller, session, "approval_requested")
    (asked,) = (await caller.get(f"/sessions/{session}")).json["approvals"]
    return dict(as_object(asked))


async def answered(
    caller: Caller, session: str, asked: JSONObject, **answer: JSONValue
) -> Answer:
    path = f"/sessions/{session}/approvals/{asked['approval_id']}"
    return await caller.post(path, answer)


async def stored(all_: Fleet, session: str) -> list[StoredQuestion]:
    store = (await all_.server.stores.tenant("default")).store
    return [each for each in await store.questions(session) if "key" in each.details]


async def test_tool_that_asks_first_runs_again_with_its_answer(
    site: Site, effects: Path
) -> None:
    async with asking(site, *DEPLOYS) as all_:
        caller = all_.caller
        session, turn = await begun(caller)
        async with all_.worker("w1") as stores:
            await all_.until(turn, "waiting")
            store = (await stores.tenant("default")).store
            await store.release(await store.acquire(session, owner="any", period=5))
        asked = await question(caller, session)
        reply = await answered(caller, session, asked, answer="next")
        async with all_.worker("w2"):
            done = await ended(caller, session, turn)
        (saved,) = await stored(all_, session)

    assert as_object(asked["schema"])["enum"] == ["main", "next"]
    assert "deploy {" in str(asked["prompt"])
    assert reply.status == 204
    assert done["output"] == "Deployed."
    assert effects.read_text().split("\n") == [
        "ran web",
        "ran web",
        "deployed next",
        "",
    ]
    assert saved.details["tool"] == "deploy"
    assert saved.details["arguments"] == {"target": "web"}
    assert saved.details["roles"] == ["operator", "owner"]
    assert saved.answered_by == "olga"


async def test_answer_is_one_of_the_schema_and_counts_once(
    site: Site, effects: Path
) -> None:
    wrong: list[dict[str, JSONValue]] = [
        {},
        {"option": "main"},
        {"answer": "other"},
        {"answer": {"x": 1}},
        {"answer": "main", "declined": True},
        {"answer": None},
    ]
    readers = await site.token("rita", "reader")
    others = await site.token("eve", "owner", "evil")
    async with asking(site, *DEPLOYS) as all_:
        reader, other = Caller(all_.server, readers), Caller(all_.server, others)
        caller = all_.caller
        session, turn = await begun(caller)
        async with all_.worker("w1"):
            await all_.until(turn, "waiting")
        asked = await question(caller, session)
        refused = [await answered(caller, session, asked, **each) for each in wrong]
        by_reader = await answered(reader, session, asked, answer="main")
        by_other = await answered(other, session, asked, answer="main")
        replies: list[int] = []

        async def race(value: str) -> None:
            reply = await answered(caller, session, asked, answer=value)
            replies.append(reply.status)

        async with anyio.create_task_group() as group:
            for value in ("main", "next", "main", "next"):
                group.start_soon(race, value)
        async with all_.worker("w2"):
            await ended(caller, session, turn)
        late = await answered(caller, session, asked, declined=True)

    assert {each.status for each in refused} == {422}
    assert (by_reader.status, by_other.status) == (403, 404)
    assert sorted(replies) == [204, 204, 409, 409]
    assert late.status == 409
    assert effects.read_text().count("deployed") == 1


async def test_declined_question_is_none_for_its_tool(
    site: Site, effects: Path
) -> None:
    async with asking(site, *DEPLOYS) as all_:
        session, turn = await begun(all_.caller)
        async with all_.worker("w1"):
            asked = await question(all_.caller, session)
            await answered(all_.caller, session, asked, declined=True)
            await ended(all_.caller, session, turn)

    assert "deployed None" in effects.read_text()


async def test_other_tool_waits_while_its_worker_lives(
    site: Site, effects: Path
) -> None:
    async with asking(site, *UPLOADS) as all_:
        session, turn = await begun(all_.caller)
        async with all_.worker("w1"):
            asked = await question(all_.caller, session)
            await all_.until(turn, "running")
            await answered(all_.caller, session, asked, answer="v1")
            done = await ended(all_.caller, session, turn)

    assert done["output"] == "Uploaded."
    assert effects.read_text() == "begun\nuploaded v1\n"


async def test_other_tool_is_in_doubt_once_its_worker_is_gone(
    site: Site, effects: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("amplifier.server.served_turns._GRACE", 0.2)
    async with asking(site, *UPLOADS) as all_:
        session, turn = await begun(all_.caller)
        async with all_.worker("w1", drain=0.0):
            asked = await question(all_.caller, session)
        late = await answered(all_.caller, session, asked, answer="v1")
        async with all_.worker("w2"):
            done = await ended(all_.caller, session, turn)
        store = (await all_.server.stores.tenant("default")).store
        said = await store.read_log(session, "transcript")

    assert late.status == 409
    assert done["state"] == "finished"
    assert effects.read_text() == "begun\n"
    assert "Whether it had its effect is not known" in str(said.entries)


async def test_question_of_a_process_that_died_is_withdrawn(
    site: Site, effects: Path
) -> None:
    async with asking(site, *UPLOADS) as all_:
        session, turn = await begun(all_.caller)
        async with all_.worker("w1"):
            asked = await question(all_.caller, session)
            tenant = await all_.server.stores.tenant("default")
            (open_,) = await stored(all_, session)
            await answered(all_.caller, session, asked, answer="v1")
            await ended(all_.caller, session, turn)
        # as a worker that was killed would have left it
        again, next_turn = await begun(all_.caller)
        lease = await tenant.store.acquire(again, owner="dead", period=5)
        details = {**open_.details, "turn_id": next_turn}
        left = attrs.evolve(
            open_, question_id="left", session_id=again, details=details
        )
        await tenant.store.ask(lease, left)
        await tenant.store.release(lease)
        all_.site.plan("Fine.")
        async with all_.worker("w2"):
            await ended(all_.caller, again, next_turn)
        events = await events_until(all_.caller, again, "turn_result")
        saved = {each.question_id: each for each in await stored(all_, again)}

    assert saved["left"].answer == "null"
    withdrawn = [each for each in events if each.type == "approval_withdrawn"]
    assert [each.data["approval_id"] for each in withdrawn] == ["left"]


async def test_question_that_nobody_answers_in_time(site: Site, effects: Path) -> None:
    assert not effects.exists()
    async with asking(site, calling_tool("hurry"), "Late.") as all_:
        session, turn = await begun(all_.caller)
        async with all_.worker("w1"):
            asked = await question(all_.caller, session)
            done = await ended(all_.caller, session, turn)
        late = await answered(all_.caller, session, asked, answer="yes")
        store = (await all_.server.stores.tenant("default")).store
        said = await store.read_log(session, "transcript")

    assert done["output"] == "Late."
    assert late.status == 409
    assert "Nobody answered in time" in str(said.entries)


@pytest.mark.parametrize("change", ["definition", "arguments"])
async def test_answer_does_not_cover_a_call_that_changed(
    site: Site, effects: Path, change: str
) -> None:
    async with asking(site, *DEPLOYS) as all_:
        session, turn = await begun(all_.caller)
        async with all_.worker("w1"):
            await all_.until(turn, "waiting")
        asked = await question(all_.caller, session)
        if change == "definition":
            tool = sys.modules["asked_tools"].deploy
            tool.description = "Deploy, and delete what was there."
        else:
            await _change_journal(all_, session)
        await answered(all_.caller, session, asked, answer="next")
        async with all_.worker("w2"):
            await all_.until(turn, "waiting")
            (first, second) = sorted(
                await stored(all_, session), key=lambda each: each.answer is None
            )

    assert first.answer == '"next"'
    assert second.answer is None
    assert "deployed" not in effects.read_text()


async def _change_journal(all_: Fleet, session: str) -> None:
    """Alter the arguments of the call, as somebody would who writes in the database."""
    store = (await all_.server.stores.tenant("default")).store
    log = await store.read_log(session, "journal")
    text = json.dumps([each.data for each in log.entries]).replace("web", "all")
    entries = [
        LogEntry(kind=each.kind, data=cast("JSONValue", data), at=each.at)
        for each, data in zip(log.entries, json.loads(text), strict=True)
    ]
    lease = await store.acquire(session, owner="eve", period=5)
    await store.replace(lease, "journal", attrs.evolve(log, entries=tuple(entries)))
    await store.release(lease)


TOOL_OR_WRITE: Sequence[tuple[str, Sequence[JSONValue]]] = (
    ("tool", DEPLOYS),
    ("approval", WRITES),
)


@pytest.mark.parametrize("depth", [2, 3])
@pytest.mark.parametrize(("kind", "script"), TOOL_OR_WRITE)
async def test_question_of_any_depth_is_the_roots_and_continues_there(
    site: Site, effects: Path, depth: int, kind: str, script: Sequence[JSONValue]
) -> None:
    async with fleet(site) as all_:
        if kind == "tool":
            plan_that_asks(site)
        plan_of_agents(site, depth, script)
        session, turn = await begun(all_.caller)
        async with all_.worker("w1"):
            await all_.until(turn, "waiting")
        asked = await question(all_.caller, session)
        answer: dict[str, JSONValue] = (
            {"answer": "next"} if kind == "tool" else {"option": "Allow once"}
        )
        await answered(all_.caller, session, asked, **answer)
        async with all_.worker("w2"):
            done = await ended(all_.caller, session, turn)
        (saved,) = await stored(all_, session)

    agents = [f"agent-{level}" for level in range(1, depth + 1)]
    assert saved.details["agents"] == agents
    assert asked["agents"] == agents
    assert f"agent-{depth}" in str(asked["prompt"])
    assert done.get("output") == "Level 0 is done.", done
    if kind == "tool":
        assert effects.read_text().count("deployed next") == 1
    else:
        assert (site.folder / "notes.txt").read_text() == "hello"


@pytest.mark.parametrize("depth", [2, 3])
@pytest.mark.parametrize(("kind", "script"), TOOL_OR_WRITE)
async def test_cancelling_the_root_voids_questions_of_any_depth(
    site: Site, effects: Path, depth: int, kind: str, script: Sequence[JSONValue]
) -> None:
    async with fleet(site) as all_:
        if kind == "tool":
            plan_that_asks(site)
        plan_of_agents(site, depth, script)
        session, turn = await begun(all_.caller)
        async with all_.worker("w1"):
            await all_.until(turn, "waiting")
        asked = await question(all_.caller, session)
        await all_.caller.post(f"/sessions/{session}/turns/{turn}/cancel")
        done = await ended(all_.caller, session, turn)
        answer: dict[str, JSONValue] = (
            {"answer": "next"} if kind == "tool" else {"option": "Allow once"}
        )
        late = await answered(all_.caller, session, asked, **answer)

    assert done["state"] == "cancelled"
    assert late.status == 409
    assert not (site.folder / "notes.txt").exists()
    assert not effects.exists() or "deployed" not in effects.read_text()


async def _without_mark(all_: Fleet, session: str) -> None:
    """Let a session's record be as that of a worker which was killed right as its turn asked."""
    store = (await all_.server.stores.tenant("default")).store
    lease = await store.acquire(session, owner="dead", period=5)
    record = await store.read_record(session)
    assert record is not None
    await store.write_record(lease, without_waiting(record))
    await store.release(lease)


async def test_answer_to_a_worker_that_was_killed_as_it_asked_is_heard(
    site: Site, effects: Path
) -> None:
    async with asking(site, *DEPLOYS) as all_:
        session, turn = await begun(all_.caller)
        async with all_.worker("w1"):
            await all_.until(turn, "waiting")
        await _without_mark(all_, session)
        asked = await question(all_.caller, session)
        await answered(all_.caller, session, asked, answer="next")
        async with all_.worker("w2"):
            done = await ended(all_.caller, session, turn)

    assert done["output"] == "Deployed."
    assert effects.read_text().count("deployed next") == 1


async def test_turn_that_waits_is_ended_once_its_run_is_over(
    site: Site, effects: Path
) -> None:
    async with asking(site, *DEPLOYS) as all_:
        session, turn = await begun(all_.caller)
        async with all_.worker("w1"):
            await all_.until(turn, "waiting")
        asked = await question(all_.caller, session)
        await all_.engine.cancel(turn)
        done = await ended(all_.caller, session, turn)
        late = await answered(all_.caller, session, asked, answer="next")

    assert done["state"] == "failed"
    assert late.status == 409
    assert "deployed" not in effects.read_text()


@pytest.mark.parametrize("script", [DEPLOYS, UPLOADS], ids=["left", "held"])
async def test_server_without_workers_asks_for_its_tools(
    site: Site, effects: Path, script: Sequence[JSONValue]
) -> None:
    secret = await site.token()
    async with site.serving() as server:
        plan_that_asks(site, *script)
        caller = Caller(server, secret)
        session, turn = await begun(caller)
        asked = await question(caller, session)
        await answered(caller, session, asked, answer="main")
        done = await ended(caller, session, turn)

    assert done["state"] == "finished"
    assert effects.read_text().splitlines()[-1].endswith("main")


async def test_terminal_lists_and_answers_what_a_server_of_the_folder_asks(
    site: Site, effects: Path
) -> None:
    secret = await site.token()
    async with site.serving() as server:
        plan_that_asks(site, *DEPLOYS)
        caller = Caller(server, secret)
        session, turn = await begun(caller)
        asked = await question(caller, session)
        id_ = str(asked["approval_id"])
        listed = await anyio.to_thread.run_sync(_command, "questions", "list")
        reply = await anyio.to_thread.run_sync(_command, "answer", id_[:12], "next")
        done = await ended(caller, session, turn)

    assert id_[:12] in listed
    assert "Cancel the turn" not in listed
    assert '"next", by' in reply
    assert done["output"] == "Deployed."
    assert effects.read_text().count("deployed next") == 1


def _command(*words: str) -> str:
    result = CliRunner().invoke(main, list(words))
    assert result.exit_code == 0, result.output
    return result.output


async def test_answer_of_any_shape_is_refused_or_heard_and_breaks_nothing(
    site: Site, effects: Path
) -> None:
    shapes: list[JSONValue] = [
        "\ud800",
        "\x00",
        "x" * 200_000,
        [[[[[]]]]] * 50,
        {"answer": {"__proto__": 1}},
        10**40,
        True,
    ]
    async with asking(site, *DEPLOYS) as all_:
        session, turn = await begun(all_.caller)
        async with all_.worker("w1"):
            await all_.until(turn, "waiting")
        asked = await question(all_.caller, session)
        codes = [
            (await answered(all_.caller, session, asked, answer=each)).status
            for each in shapes
        ]
        (open_,) = await stored(all_, session)

    assert set(codes) <= {400, 413, 422}
    assert open_.answer is None
    assert effects.read_text() == "ran web\n"


async def test_session_whose_turn_waits_is_resumed_by_its_server_alone(
    site: Site, effects: Path
) -> None:
    secret = await site.token()
    async with site.serving() as server:
        plan_that_asks(site, *DEPLOYS)
        caller = Caller(server, secret)
        session, turn = await begun(caller)
        asked = await question(caller, session)
        await unheld(server, session)
        chosen = await anyio.to_thread.run_sync(
            select_session, PlanOptions(), SessionSelector(resume=session), site.dirs
        )
        opening = open_session(
            chosen.composition, record=chosen.record, store=chosen.store
        )
        with pytest.raises(ConfigError, match="a turn of it waits at a server"):
            async with opening:
                pass
        await answered(caller, session, asked, answer="main")
        done = await ended(caller, session, turn)

    assert done["output"] == "Deployed."
    assert effects.read_text().count("deployed main") == 1
