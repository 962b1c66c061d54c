"""Sessions that earlier versions stored are read for ever, and go on."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Final, cast

import pytest

from amplifier.app.store.children import StoredChildren
from amplifier.app.store.reader import read_history
from amplifier.app.store.store import ProjectSessions
from amplifier_sdk.messages import MessageDict
from amplifier_sdk.secret import WITHHELD

GOLDEN: Final = Path(__file__).parents[2] / "data" / "sessions"
MORE: Final[MessageDict] = {"role": "user", "content": "And now?"}

STORES: Final = sorted(path.name for path in GOLDEN.iterdir())


@pytest.fixture(params=STORES)
def earlier(
    request: pytest.FixtureRequest, tmp_path: Path
) -> tuple[ProjectSessions, dict[str, dict[str, object]]]:
    """A copy of what a version wrote, and what is in it."""
    folder = shutil.copytree(GOLDEN / request.param, tmp_path / "state")
    return ProjectSessions(folder), json.loads(
        (folder / "expected.json").read_text("utf-8")
    )


async def test_sessions_of_an_earlier_version_are_whole_and_go_on(
    earlier: tuple[ProjectSessions, dict[str, dict[str, object]]],
) -> None:
    store, expected = earlier
    assert store.damaged() == []
    sessions = store.all(children=True)
    assert len(sessions) == len(expected) >= 20
    for session in sessions:
        wanted = expected[session.record.session_id]
        history = read_history(session.folder)
        assert session.folder == store.folder(session.record.session_id)
        record, before = (
            session.record.to_dict(),
            cast("dict[str, object]", wanted["record"]),
        )
        assert {name: record[name] for name in before} == before
        assert not any(record[name] for name in record.keys() - before.keys()), (
            "what it did not know is empty"
        )
        # not a number is not itself
        assert [*map(repr, history.messages)] == wanted["messages"]
        assert [len(turn) for turn in history.turns] == wanted["turns"]
        turn = history.interrupted
        reported = (
            None
            if turn is None
            else [[*turn.in_doubt], [*turn.not_started], turn.has_ended]
        )
        assert reported == wanted["interrupted"]
        async with store.open(session.record) as stored:
            assert stored.damage == ()
            await stored.settle()
            await stored.transcript.store("later", [*stored.messages, MORE])
        again = read_history(session.folder).messages
        assert repr(again) == repr([*history.messages, MORE])


async def test_a_child_of_an_earlier_version_is_resumed(
    earlier: tuple[ProjectSessions, dict[str, dict[str, object]]],
) -> None:
    store, _ = earlier
    child = await StoredChildren(store=store).load("named-0123456789abcdef_scout")
    assert child is not None
    assert child.agent_name == "scout"
    assert child.plan["providers"] == [
        {"module": "provider-x", "config": {"api_key": WITHHELD, "model": "m"}}
    ]
    assert child.request == {}
    assert [message["role"] for message in child.messages] == [
        "system",
        "user",
        "assistant",
    ]
