"""A turn with three calls, two of them at once, in a session that the store keeps.

    python -m tests.reliability.store_turn FOLDER BACKEND DURABILITY LOOP PROMPT

What the store acknowledged stands in FOLDER/acknowledged, and every effect of a tool in FOLDER/effects, so that
whoever killed the process can see what it had promised and done.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Final

import anyio
import attrs

from amplifier.app.collections.folders import CollectionLibrary
from amplifier.app.directories import AppDirs
from amplifier.app.projects.files import ProjectFiles
from amplifier.app.sessions.composition import Composition
from amplifier.app.sessions.opened import open_session
from amplifier.app.settings.settings import Settings
from amplifier.app.store.journal import FileJournal
from amplifier.app.store.records import SessionRecord
from amplifier.app.store.store import ProjectSessions
from amplifier.app.store.writer import SessionWriter
from amplifier_sdk import tool
from amplifier_sdk.convert import to_json
from amplifier_sdk.journal import JournalRecord
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.streaming import TurnFinished
from tests.reliability.turn import note, use_one_thread

__all__ = [
    "act",
    "composition",
    "delegating",
    "install",
    "record",
    "store_of",
    "take_turn",
]


def _call(name: str, call: str) -> JSONValue:
    return {"name": "act", "arguments": {"name": name}, "id": call}


SCRIPT: Final[list[JSONValue]] = [
    {"text": "I look.", "tool_calls": [_call("one", "c1")]},
    {"text": "And both.", "tool_calls": [_call("two", "c2"), _call("three", "c3")]},
    "Done.",
]


@tool
async def act(name: str) -> str:
    """Have an effect; one of the name that stands in the environment is the last thing that the process does."""
    note(Path(os.environ["AMPLIFIER_TEST_FOLDER"]) / "effects", name)
    if name == os.environ.get("AMPLIFIER_TEST_FATAL"):
        os.kill(os.getpid(), signal.SIGKILL)
    return f"did {name}"


def install(folder: Path) -> Path:
    """Make the tool a module that plans can name, below a folder; return the folder to look into."""
    metadata = folder / "site" / "tool_act-1.0.dist-info"
    metadata.mkdir(parents=True, exist_ok=True)
    (metadata / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: tool-act\nVersion: 1.0\n", "utf-8"
    )
    entry = "[amplifier.modules]\ntool-act = tests.reliability.store_turn:act\n"
    (metadata / "entry_points.txt").write_text(entry, "utf-8")
    return metadata.parent


def store_of(folder: Path) -> ProjectSessions:
    """Return the store of a test."""
    return ProjectSessions(folder / "state")


def record() -> SessionRecord:
    """Say who the session is."""
    return SessionRecord(session_id="kept", working_dir="/work")


def composition(
    folder: Path, loop: str, durability: str, answers: list[JSONValue]
) -> Composition:
    """Say what the session is made of."""
    dirs = AppDirs(working_dir=folder, home=folder / "home", root=folder)
    project = ProjectFiles(dirs)
    plan: JSONObject = {
        "session": {"orchestrator": f"loop-{loop}", "context": "context-simple"},
        "providers": [
            {"module": "provider-scripted", "config": {"responses": answers}}
        ],
        "tools": ["tool-act"],
    }
    return Composition(
        plan=plan,
        dirs=dirs,
        project=project,
        collections=CollectionLibrary(dirs, project),
        settings=Settings(
            values={
                "sessions": {"durability": "sync" if durability == "sync" else "async"}
            }
        ),
    )


def delegating(folder: Path) -> Composition:
    """Say what a session is made of whose agent has effects."""
    task: JSONObject = {
        "name": "task",
        "arguments": {"agent": "scout", "instruction": "Look."},
        "id": "p1",
    }
    made = composition(folder, "basic", "written", [{"tool_calls": [task]}])
    scout: JSONObject = {
        "providers": [{"module": "provider-scripted", "config": {"responses": SCRIPT}}]
    }
    return attrs.evolve(
        made,
        plan={
            **made.plan,
            "tools": ["tool-act", "tool-task"],
            "agents": {"scout": scout},
        },
    )


async def take_turn(made: Composition, prompt: str) -> str:
    """Take a turn in the session, and return the answer."""
    async with open_session(
        made, record=record(), store=store_of(made.dirs.working_dir)
    ) as opened:
        answer = ""
        async with opened.stream(prompt) as events:
            async for event in events:
                if isinstance(event, TurnFinished):
                    answer = event.text
        return answer


def acknowledge(folder: Path) -> None:
    """Note what the store has promised to keep, once it has."""
    append, finish = FileJournal.append, SessionWriter.note_turn

    async def journaled(self: FileJournal, record: JournalRecord) -> None:
        await append(self, record)
        note(
            folder / "acknowledged",
            json.dumps({type(record).__name__: to_json(record)}),
        )

    async def finished(self: SessionWriter, *given: object, **options: object) -> None:
        await finish(self, *given, **options)  # type: ignore[arg-type]  # what it was given
        note(folder / "acknowledged", json.dumps({"stored": len(self.messages)}))

    FileJournal.append = journaled  # type: ignore[method-assign]  # the same, with a note
    SessionWriter.note_turn = finished  # type: ignore[method-assign]  # likewise


async def main(folder: Path, durability: str, loop: str, prompt: str) -> None:
    acknowledge(folder)
    use_one_thread()
    sys.stdout.write(
        f"{await take_turn(composition(folder, loop, durability, SCRIPT), prompt)}\n"
    )


if __name__ == "__main__":
    anyio.run(
        main,
        Path(sys.argv[1]),
        sys.argv[3],
        sys.argv[4],
        sys.argv[5],
        backend=sys.argv[2],
    )
