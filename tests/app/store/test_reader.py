"""Sessions are read while they are open, and found by whatever was said in them."""

from __future__ import annotations

import pytest

from amplifier.app.store.reader import conversation, read_history, words_of
from amplifier.app.store.repair import diagnose
from amplifier.app.store.search import search_sessions
from amplifier.app.store.store import ProjectSessions
from amplifier_sdk.errors import ConfigError
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.messages import MessageDict
from tests.app.store.talks import HELLO, ROME, calling, interrupt, keep, result

# -- what was said


async def test_session_is_read_while_it_is_open_with_its_running_turn(
    store: ProjectSessions,
) -> None:
    session = await keep(store, turns=[HELLO, ROME])
    await interrupt(store, session)
    async with store.open(session.record) as stored:
        history = read_history(session.folder)
        assert history.messages == stored.messages
    assert [len(turn) for turn in history.turns] == [2, 3, 4]
    assert history.interrupted is not None
    assert history.interrupted.in_doubt == ("rm",)


async def test_a_session_without_files_has_said_nothing(store: ProjectSessions) -> None:
    session = await keep(store)
    assert read_history(session.folder).messages == []


async def test_what_was_said_is_apart_from_what_modules_put_in() -> None:
    assert conversation([{"role": "system", "content": "S"}, *ROME]) == ROME[1:]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("text", "text"),
        (None, ""),
        (["plain", {"type": "text", "text": "block"}], "plain\nblock"),
        (
            [{"type": "tool_call", "id": "c", "name": "ls", "input": {"path": "."}}],
            'ls {"path": "."}',
        ),
        ([{"type": "tool_result", "tool_call_id": "c", "output": "done"}], "done"),
        (
            [{"type": "tool_result", "tool_call_id": "c", "output": {"n": 1}}],
            '{"n": 1}',
        ),
        ([{"type": "image", "source": {}}, {"type": "odd"}, 5], "[image]"),
    ],
    ids=["text", "nothing", "texts", "call", "result", "data", "others"],
)
def test_a_message_has_words(content: JSONValue, words: str) -> None:
    assert words_of({"role": "user", "content": content}) == words


async def test_what_is_no_transcript_is_told(store: ProjectSessions) -> None:
    session = await keep(store, turns=[HELLO])
    (session.folder / "transcript.jsonl").write_text("shopping list\n")
    with pytest.raises(ConfigError, match="it is no log"):
        read_history(session.folder)
    assert not diagnose(store, "s1").is_sound
    assert search_sessions(store.all(), "hello").unread == ("s1",)


# -- searching


async def test_a_text_is_found_wherever_it_stands(store: ProjectSessions) -> None:
    await keep(
        store, "alpha", [ROME], name="Holiday", tags=("sun", "food"), prompt="Where to?"
    )
    await keep(
        store, "two", [HELLO, [*HELLO, calling("rm"), result(0, "rm", "gone " * 40)]]
    )
    found = {}
    for text in ("holiday", "FOOD", "where", "ALP", "rome is", "gone gone", "/tmp/x"):
        (hit,) = search_sessions(store.all(), text).hits
        found[text] = (hit.session.record.session_id, hit.place, hit.message)
    assert found == {
        "holiday": ("alpha", "name", 0),
        "FOOD": ("alpha", "tag", 0),
        "where": ("alpha", "prompt", 0),
        "ALP": ("alpha", "id", 0),
        "rome is": ("alpha", "message", 3),
        "gone gone": ("two", "message", 6),
        "/tmp/x": ("two", "message", 5),
    }
    (long,) = search_sessions(store.all(), "gone gone").hits
    assert len(long.excerpt) < 140
    assert search_sessions(store.all(), "nowhere").hits == ()
    assert search_sessions(store.all(), "").hits == ()


async def test_a_search_has_limits_and_tells_what_it_left_out(
    store: ProjectSessions,
) -> None:
    for number in range(4):
        await keep(store, f"s{number}", [HELLO], created=float(number))
    assert [
        hit.session.record.session_id
        for hit in search_sessions(store.all(), "hi.", limit=2).hits
    ] == ["s3", "s2"]
    bounded = search_sessions(store.all(), "hi.", max_bytes=800)
    assert [hit.session.record.session_id for hit in bounded.hits] == ["s3"]
    assert bounded.unread == ("s2", "s1", "s0")


async def test_a_session_without_a_transcript_is_searched(
    store: ProjectSessions,
) -> None:
    await keep(store, "empty", prompt="Hello")
    assert len(search_sessions(store.all(), "hello").hits) == 1
    assert search_sessions(store.all(), "rome").unread == ()


async def test_what_is_written_in_other_ways_is_found(store: ProjectSessions) -> None:
    said: list[MessageDict] = [
        {"role": "user", "content": 'A "quoted"\tword\nand 273 \u212aelvin, Straße'},
        {"role": "user", "content": "half \ud83d of a pair"},
        {"role": "assistant", "content": [{"type": "tool_call", "name": "rm"}]},
        {"role": "user", "content": [{"type": "image", "source": {}}]},
    ]
    session = await keep(store, "told", [said])
    await interrupt(store, session, prompt="Delete it")
    talks = await keep(store, "alone", [said])

    for text in (
        *('"QUOTED"', "word\nand", "273 kelvin", "STRASSE", "traße", "of a pair"),
        *("rm null", "[image]", "ed"),
    ):
        hits = search_sessions([session, talks], text).hits
        assert len(hits) == 2, text
    for text in ("program ended", "Delete it"):
        (hit,) = search_sessions([session, talks], text).hits
        assert hit.session == session


async def test_what_cannot_hold_a_text_is_not_decoded(
    store: ProjectSessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await keep(store, turns=[HELLO])
    monkeypatch.setattr(
        "amplifier.app.store.search.read_history",
        lambda _: pytest.fail("it was decoded"),
    )

    assert search_sessions([session], "nowhere").hits == ()
