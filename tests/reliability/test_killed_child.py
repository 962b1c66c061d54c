"""A process that is killed while a child session works: the child is there again, with what is in doubt."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

import attrs
import pytest

from amplifier.app.sessions.opened import open_session
from amplifier.app.store.reader import read_history
from amplifier.app.store.repair import diagnose
from amplifier.app.store.states import state_of
from tests.reliability.histories import objection
from tests.reliability.store_turn import (
    composition,
    delegating,
    install,
    record,
    store_of,
)
from tests.reliability.traced import effects_of, on

pytestmark = pytest.mark.process

KILLED: Final = """
import sys
from pathlib import Path
import anyio
from tests.reliability.store_turn import delegating, take_turn
anyio.run(take_turn, delegating(Path(sys.argv[1])), "Go.", backend=sys.argv[2])
"""


@on("asyncio")
async def test_child_killed_in_first_turn_is_told_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, anyio_backend: str
) -> None:
    monkeypatch.syspath_prepend(install(tmp_path))
    monkeypatch.setenv("AMPLIFIER_TEST_FOLDER", str(tmp_path))
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path), anyio_backend],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "AMPLIFIER_TEST_FATAL": "one",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    store = store_of(tmp_path)
    parent, child = sorted(
        store.all(children=True), key=lambda session: session.record.created
    )
    assert (child.record.parent_id, child.record.agent_name) == (
        parent.record.session_id,
        "scout",
    )
    assert not diagnose(store, child.record.session_id).is_sound

    parents = composition(tmp_path, "basic", "written", ["I go on."]).plan["providers"]
    again = attrs.evolve(
        made := delegating(tmp_path), plan={**made.plan, "providers": parents}
    )
    async with open_session(again, record=record(), store=store) as opened:
        assert opened.interrupted is not None
        assert opened.interrupted.in_doubt == ("task",)
        assert opened.session.spending.provider_calls == 2
        (cut,) = opened.cut_off
        assert cut.session.record.session_id == child.record.session_id
        assert (cut.turn.prompt, cut.turn.in_doubt) == ("Look.", ("act",))
        reported = (await opened.session.coordinator.context.get_messages())[-1]
        assert child.record.session_id in str(reported["content"])
        assert objection(read_history(child.folder).messages) is None
        assert effects_of(tmp_path) == ["one"]
        more = await opened.session.resume(
            sub_session_id=child.record.session_id, instruction="And now?"
        )

    assert (more.output, more.turn_count) == ("Done.", 2)
    assert "is not known" in str(read_history(child.folder).messages[2]["content"])
    assert state_of(child.folder) == "idle"
