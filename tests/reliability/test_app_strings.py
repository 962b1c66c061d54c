"""Hard texts as what a person names: sessions, profiles, files. Each is found, or its absence is told; none is obeyed.

`AMPLIFIER_TABLES=1` takes all of them instead of a part.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from amplifier.app.directories import AppDirs
from amplifier.app.mentions.dedup import ContentDeduplicator
from amplifier.app.mentions.loader import MentionLoader
from amplifier.app.mentions.resolver import MentionResolver, Writer
from amplifier.app.profiles.chain import follow
from amplifier.app.profiles.compiler import compile_chain
from amplifier.app.profiles.library import ProfileLibrary
from amplifier.app.store.records import SessionRecord
from amplifier.app.store.store import ProjectSessions
from amplifier_sdk.errors import ConfigError
from amplifier_sdk.journal import TurnStarted
from tests.app.projects import write
from tests.reliability.strings import SAMPLE, STRINGS

pytestmark = pytest.mark.anyio

FULL: Final = "AMPLIFIER_TABLES" in os.environ
LINE_END: Final = re.compile("\r\n?")
PAIR: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]")
"""Halves of a character in their order: JSON makes the character of them."""
SPECIAL: Final = re.compile("[\"'`\n:~]")
"""What a mention cannot name, since it means something there: quotes, code, line ends, collections, the home."""
LONGEST: Final = 120
"""Bytes of a text that a file is named after."""


@pytest.fixture
def dirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AppDirs:
    """A person's home and a project, both empty."""
    (tmp_path / "home" / ".amplifier").mkdir(parents=True)
    (tmp_path / "shop").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("AMPLIFIER_HOME", raising=False)
    return AppDirs.find(tmp_path / "shop")


@pytest.fixture(params=range(12 if FULL else 1))
def texts(anyio_backend_name: str, request: pytest.FixtureRequest) -> list[str]:
    """A part of them for each test, or a half of the sample for each backend."""
    return list(
        STRINGS[request.param :: 12]
        if FULL
        else SAMPLE[anyio_backend_name == "trio" :: 2]
    )


def file_name(text: str) -> str | None:
    """Return the text where a file can be called so."""
    try:
        data = text.encode()
    except UnicodeEncodeError:
        return None
    is_name = (
        0 < len(data) <= LONGEST
        and "\0" not in text
        and "/" not in text
        and text not in (".", "..")
    )
    return text if is_name else None


async def test_a_session_of_any_id_and_name_is_kept_found_and_deleted(
    dirs: AppDirs, texts: list[str]
) -> None:
    texts = [text for text in texts if not PAIR.search(text)]
    store = ProjectSessions.of(dirs)
    for number, text in enumerate(texts):
        record = SessionRecord(session_id=text, name=f"{number} {text}", tags=(text,))
        async with store.open(record) as stored:
            await stored.note_prompt(text)
            await stored.journal.append(TurnStarted(turn_id=text, prompt=text))
            await stored.note_turn(
                [
                    {"role": "user", "content": text},
                    {"role": "assistant", "content": text},
                ]
            )
    for number, text in enumerate(texts):
        async with store.open(SessionRecord(session_id=text)) as stored:
            assert [message["content"] for message in stored.messages] == [text, text]
            assert (stored.record.session_id, stored.record.tags, stored.damage) == (
                text,
                (text,),
                (),
            )
            assert stored.interrupted is None
        if number % 10 == 0:
            assert store.find(text).record.session_id == text
            assert store.find(f"{number} {text}").record.session_id == text

    kept_in = store.sessions.resolve()
    assert sorted(session.record.session_id for session in store.all()) == sorted(texts)
    assert store.damaged() == []
    assert [path for path in outside(dirs, kept_in) if path.is_file()] == []
    check_json(kept_in)
    assert [text for text in texts[::10] if store.delete(text) != [text]] == []
    assert {session.record.session_id for session in store.all()} == {*texts} - {
        *texts[::10]
    }


def outside(dirs: AppDirs, folder: Path) -> list[Path]:
    """Return what stands in the test's folders but not in one of them."""
    return [
        path
        for path in dirs.home.parent.parent.rglob("*")
        if not path.resolve().is_relative_to(folder)
    ]


def check_json(folder: Path) -> None:
    """What is kept as JSON is JSON, line by line where it is lines."""
    for path in folder.rglob("*.json*"):
        text = path.read_text("utf-8")
        for part in (
            text.rstrip("\n").split("\n") if path.suffix == ".jsonl" else [text]
        ):
            json.loads(part, parse_constant=pytest.fail)


def test_a_profile_of_any_name_is_found_or_told_to_be_missing(
    dirs: AppDirs, texts: list[str]
) -> None:
    named = {text: text for text in texts if file_name(text)}
    for text in named:
        write(
            dirs.home / "profiles" / f"{text}.md",
            f"---\nprofile:\n  description: {json.dumps(text)}\n---\n{text}",
        )
    library = ProfileLibrary.of(dirs)
    assert {
        name for name in library.names() if ":" not in name or name in named
    } >= set(named) - {"README"}

    for text in texts:
        for asked in (
            text,
            f"user:{text}",
            f"foundation:{text}",
            f"./{text}",
            f"~/{text}",
            f"/{text}",
        ):
            try:
                found = library.find(asked)
            except ConfigError as error:
                assert str(error).isprintable() or "\n" in str(error), asked
            else:
                assert (
                    asked not in named
                    or text == found.body.strip()
                    or text.strip() in found.body
                )


def test_a_profile_may_say_any_text_where_text_belongs(
    dirs: AppDirs, texts: list[str]
) -> None:
    for number, text in enumerate(texts):
        head = {"profile": {"name": f"p{number}", "description": text, "extends": text}}
        body = text.encode("utf-8", "replace").decode()
        file = write(
            dirs.home / "profiles" / f"p{number}.md",
            f"---\n{json.dumps(head)}\n---\n{body}",
        )
        library = ProfileLibrary.of(dirs)
        try:
            compile_chain(follow(library, f"p{number}"))
        except ConfigError:
            pass
        finally:
            file.unlink()


def test_a_mention_of_any_text_is_loaded_or_told(
    dirs: AppDirs, texts: list[str]
) -> None:
    contents: Mapping[str, str] = {
        text: f"This is {number}."
        for number, text in enumerate(texts)
        if file_name(text)
    }
    for text, content in contents.items():
        write(dirs.working_dir / text, content)
    loader = MentionLoader(MentionResolver(dirs))
    typed, written = Writer(dirs.working_dir, typed=True), Writer(dirs.working_dir)

    for text in texts:
        for prompt in (
            text,
            f"See @{text} please.",
            f'See @"{text}" please.',
            f"@user:{text} @project:{text} @~{text}",
        ):
            for writer in (typed, written):
                batch = loader.load(prompt, writer, ContentDeduplicator())
                shown = "".join(message.text for message in batch.messages)
                assert shown.count("</context_file>") == len(batch.messages)
                assert batch.summary()
                if writer is written:
                    assert {
                        outcome.path
                        for outcome in batch.outcomes
                        if outcome.status == "loaded"
                    } <= {dirs.working_dir / name for name in contents}
        if text in contents and SPECIAL.search(text) is None and text == text.strip():
            assert contents[text] in "".join(
                message.text
                for message in loader.load(
                    f'@"{text}"', typed, ContentDeduplicator()
                ).messages
            )


def test_a_mentioned_file_may_hold_any_text(dirs: AppDirs, texts: list[str]) -> None:
    loader = MentionLoader(MentionResolver(dirs))
    for text in texts:
        (dirs.working_dir / "notes.txt").write_bytes(
            text.encode("utf-8", "surrogatepass")
        )
        batch = loader.load(
            "@notes.txt", Writer(dirs.working_dir, typed=True), ContentDeduplicator()
        )
        (outcome, *_) = batch.outcomes
        assert outcome.status in ("loaded", "binary", "too_large")
        if outcome.status == "loaded" and "context_file" not in text:
            assert (
                LINE_END.sub("\n", text.removeprefix("\ufeff"))
                in batch.messages[0].text
                or outcome.note
            )
