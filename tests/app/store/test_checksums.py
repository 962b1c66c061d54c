"""The checksum of a session's record: a flipped bit is found, and versions that know none are served."""

from __future__ import annotations

import json
from pathlib import Path

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from amplifier.app.directories import AppDirs
from amplifier.app.doctor.storage import check_sessions
from amplifier.app.store.records import SessionRecord, is_intact
from amplifier.app.store.repair import diagnose, repair
from amplifier.app.store.store import ProjectSessions
from amplifier.app.store.stored import read_record
from amplifier.app.store.writer import METADATA, write_record
from amplifier_sdk.errors import ConfigError
from tests.app.store.talks import HELLO, keep, record


@pytest.fixture
async def folder(store: ProjectSessions) -> Path:
    return (await keep(store, "s1", [HELLO], name="dinner", cost_usd="0.5")).folder


def replace(folder: Path, old: str, new: str) -> None:
    text = (folder / METADATA).read_text()
    assert old in text
    (folder / METADATA).write_text(text.replace(old, new))


async def test_a_flipped_bit_is_reported_and_repaired(
    store: ProjectSessions, dirs: AppDirs, folder: Path
) -> None:
    replace(folder, '"cost_usd": "0.5"', '"cost_usd": "0.4"')
    with pytest.raises(ConfigError, match=r"its 'checksum' does not fit; .*repair s1"):
        read_record(folder)
    assert any("does not fit" in finding.message for finding in check_sessions(dirs))
    assert "does not fit" in (diagnose(store, "s1").record or "")

    await repair(store, "s1")

    assert diagnose(store, "s1").is_sound
    assert '"cost_usd": "0.4"' in (folder / f"{METADATA}.damaged").read_text()
    renewed = read_record(folder)
    assert renewed is not None
    assert (renewed.turn_count, renewed.is_renewed) == (1, True)


async def test_a_record_without_a_checksum_is_read(folder: Path) -> None:
    written = read_record(folder)
    data = json.loads((folder / METADATA).read_text())
    assert data.popitem()[0] == "checksum"
    (folder / METADATA).write_text(json.dumps(data))
    assert read_record(folder) == written


async def test_a_version_that_knows_no_checksum_may_change_a_record(
    folder: Path,
) -> None:
    data = json.loads((folder / METADATA).read_text())
    # it writes what it does not know first, and then what it does
    known = {key: value for key, value in data.items() if key != "checksum"}
    older = {"checksum": data["checksum"], **known, "name": "lunch"}
    (folder / METADATA).write_text(json.dumps(older, indent=1))

    found = read_record(folder)
    assert found is not None
    assert found.name == "lunch"
    assert found.further == {}

    write_record(folder, attrs.evolve(found, name="tea"))
    assert [*json.loads((folder / METADATA).read_text())][-1] == "checksum"
    assert read_record(folder) == attrs.evolve(found, name="tea")


async def test_a_record_that_was_indented_anew_is_as_good(folder: Path) -> None:
    written = read_record(folder)
    data = json.loads((folder / METADATA).read_text())
    (folder / METADATA).write_text(json.dumps(data, indent=4, ensure_ascii=False))
    assert read_record(folder) == written


WRITTEN = record("s1", created=1.5, prompt="Größe", tags=("a",)).to_bytes()


@given(at=st.integers(0, len(WRITTEN) - 1), bit=st.integers(0, 7))
def test_no_flipped_bit_changes_what_is_read(at: int, bit: int) -> None:
    damaged = bytearray(WRITTEN)
    damaged[at] ^= 1 << bit
    try:
        data = json.loads(damaged)
        read = SessionRecord.from_dict(data, subject="record")
    except (ConfigError, ValueError):
        return
    if is_intact(data):
        sound = SessionRecord.from_dict(json.loads(WRITTEN), subject="record")
        assert attrs.evolve(read, further={}) == sound
