"""Where a cell plays: a person's own folder, a project, and the commands that are run there in this process."""

from __future__ import annotations

import io
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Final

import attrs
import pytest
from click.testing import CliRunner

from amplifier import AmplifierSession
from amplifier.app.directories import AppDirs
from amplifier.cli import main
from amplifier_kit.media.files import media_file
from amplifier_sdk.content import block_to_dict
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.media import Prompt
from tests.seams.editor import OneTurnEditor
from tests.seams.mcp_client import OneCallClient
from tests.seams.modules import SCRIPT, Asked, Call, Turns

__all__ = [
    "BEGIN",
    "GO",
    "HAND_BEGIN",
    "HAND_GO",
    "HAND_GO_AGAIN",
    "HAND_GO_BEHIND",
    "NOTES",
    "PROFILE",
    "Beginnings",
    "Made",
    "Outcome",
    "Stage",
    "script",
]

BEGIN: Final = "[a beginning]"
GO: Final = "[the work]"
HAND_BEGIN: Final = "[hand on the beginning]"
HAND_GO: Final = "[hand on the work]"
HAND_GO_BEHIND: Final = "[hand on the work behind it]"
HAND_GO_AGAIN: Final = "[hand on more work]"

PROFILE: Final = "guarded"
NOTES: Final = "Buy milk, as it was written before.\n"

PLAN: Final[JSONObject] = {
    "session": {
        "orchestrator": {"module": "loop-basic"},
        "context": {"module": "context-simple"},
    },
    "providers": [{"module": "provider-ay"}],
    "tools": [
        {"module": "tool-filesystem"},
        {"module": "tool-trials"},
        {"module": "tool-task"},
    ],
    "hooks": [],
}
"""What every session here is made of, besides its guard."""

SETTINGS: Final[JSONObject] = {
    "config": {"active": "provider-bee", "providers": [{"module": "provider-bee"}]},
    "modules": {"tools": [{"module": "tool-trials"}, {"module": "tool-task"}]},
}
"""The person's own settings: a session that lost its composition runs with these, and unguarded."""


@attrs.frozen(kw_only=True)
class Made:
    """What a session is made of, besides `PLAN` and `SETTINGS`."""

    plan: JSONObject = attrs.field(factory=dict)
    settings: JSONObject = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class Outcome:
    """What came of a start.

    Args:
        code: the exit code; 0 where a program opened the session and the turn had an answer.
        shown: what went to standard output, or was answered.
        told: what went to standard error, or was raised.
        asked: the requests that the models got.
        ran: the trial tools that ran.
    """

    code: int
    shown: str
    reported: str
    asked: tuple[Asked, ...] = ()
    ran: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """All that the person was shown."""
        return self.shown + self.reported

    @property
    def is_refused(self) -> bool:
        """Whether nothing was begun: no model was asked and no tool ran."""
        return self.code != 0 and not self.asked and not self.ran


@attrs.frozen(kw_only=True)
class Beginning:
    """A session that was begun on the stage: its id, all files there, and what models were asked and ran."""

    session_id: str
    files: Path
    asked: tuple[Asked, ...]
    ran: tuple[str, ...]


@attrs.define(eq=False)
class Beginnings:
    """The sessions that were begun so far: most rows of a column resume the same one.

    Args:
        folder: where their files are kept.
    """

    folder: Path
    found: dict[str, Beginning] = attrs.field(factory=dict)

    def keep(self, name: str, root: Path, session_id: str) -> None:
        """Keep what stands on the stage now, all of which came of one beginning."""
        files = self.folder / str(len(self.found))
        shutil.copytree(root, files, symlinks=True)
        self.found[name] = Beginning(
            session_id=session_id,
            files=files,
            asked=tuple(SCRIPT.asked),
            ran=tuple(SCRIPT.ran),
        )

    def restore(self, name: str, root: Path) -> str | None:
        """Let the stage look as it did behind a beginning, and return the session's id; `None` for a new one."""
        beginning = self.found.get(name)
        if beginning is None:
            return None
        shutil.copytree(beginning.files, root, symlinks=True, dirs_exist_ok=True)
        SCRIPT.asked.extend(beginning.asked)
        SCRIPT.ran.extend(beginning.ran)
        return beginning.session_id


@attrs.define
class Stage:
    """A home, a project in it, and what sessions there are made of by now.

    Args:
        root: an empty folder, the same one for all cells: what is stored of a session names it.
        packages: the folders of `sys.path` that bring the modules.
        beginnings: what earlier cells began.
        patch: undone when the cell has played.
        guard: the name of the column.
        backend: the event loop of those starts that have a choice.
        made: what a session is made of.
        by_profile: it is made by a profile and the settings, rather than by a plan file.
        profile: the profile; `None` where the settings alone make it.
        options: further options of the command that begins a session.
        again: options of the command that resumes one.
        where: options that say in which store sessions stand; default the project's files.
        prompt: what the turn that counts is asked.
        is_piped: it is piped in, rather than typed.
        shown: the files that are shown with it.
        calls: what is tried in that turn.
        exported: put into the text of an exported session.
        since: what happens between the beginning of a session and its resumption.
        equip: registers what an application has on a session that it opens.
        removed: modules that the plan has no more.
        session_id: the id of a session that a program opens.
        database: the URL of a server that sessions are moved to.
        namespace: the namespace of the cell there.
        count_from: how many requests and calls there were before the turn that counts.
    """

    root: Path
    packages: Path
    beginnings: Beginnings
    patch: pytest.MonkeyPatch
    guard: str = ""
    backend: str = "asyncio"
    made: Made = attrs.field(factory=Made)
    by_profile: bool = False
    profile: str | None = PROFILE
    options: tuple[str, ...] = ()
    again: tuple[str, ...] = ()
    where: tuple[str, ...] = ()
    prompt: str = GO
    is_piped: bool = False
    shown: tuple[Path, ...] = ()
    calls: tuple[Call, ...] = ()
    exported: str = ""
    since: Callable[[], None] = lambda: None
    equip: Callable[[AmplifierSession], None] = lambda _: None
    removed: tuple[str, ...] = ()
    session_id: str = "s1"
    count_from: tuple[int, int] = (0, 0)
    database: str = ""
    namespace: str = ""

    @property
    def home(self) -> Path:
        """The person's own folder: all state is below it."""
        return self.root / "home" / ".amplifier"

    @property
    def project(self) -> Path:
        """The working directory."""
        return self.root / "shop"

    @property
    def plan(self) -> JSONObject:
        """The mount plan."""
        plan = merge(PLAN, self.made.plan)
        tools = plan["tools"]
        assert isinstance(tools, list)
        return {
            **plan,
            "tools": [tool for tool in tools if _module(tool) not in self.removed],
        }

    @property
    def notes(self) -> Path:
        """A file of the project that guards keep."""
        return self.project / "notes.txt"

    def set_up(self) -> None:
        """Make the folders and files."""
        (self.project / ".git").mkdir(parents=True)
        self.home.mkdir(parents=True)
        self.notes.write_text(NOTES)
        self.write()

    def write(self) -> None:
        """Write down what sessions are made of: a plan file, a profile, its agents where it is used, the settings."""
        plan = self.plan
        (self.root / "plan.json").write_text(json.dumps(plan), "utf-8")
        agents = plan.pop("agents", {})
        _write_markdown(
            self.home / f"profiles/{PROFILE}.md", {"profile": {"name": PROFILE}, **plan}
        )
        if self.by_profile and isinstance(agents, dict):
            for name, agent in agents.items():
                assert isinstance(agent, dict)
                _write_markdown(
                    self.home / f"agents/{name}.md", {"meta": {"name": name}, **agent}
                )
        settings = merge(SETTINGS, self.made.settings)
        (self.home / "settings.yaml").write_text(json.dumps(settings), "utf-8")

    def activate_profile(self) -> None:
        """Let new sessions be made by the profile, unless something else is named."""
        if self.profile is not None:
            self.change({}, {"profile": {"active": self.profile}})

    def change(
        self, plan: Mapping[str, JSONValue], settings: Mapping[str, JSONValue]
    ) -> None:
        """Lay more over what sessions are made of."""
        self.made = Made(
            plan=merge(self.made.plan, plan),
            settings=merge(self.made.settings, settings),
        )
        self.write()

    def weaken(self) -> None:
        """Let the profile lose its hooks, its limits and what it configures of tools."""
        tools = self.made.plan.get("tools")
        listed = tools if isinstance(tools, list) else []
        modules: list[JSONValue] = [{"module": _module(tool)} for tool in listed]
        stored: JSONObject = {"tools": modules} if modules else {}
        self.made = Made(plan=stored, settings=self.made.settings)
        self.write()

    def composition(self) -> tuple[str, ...]:
        """Return the options that say what a session is made of."""
        if self.profile is None:
            return self.options
        if self.by_profile:
            return ("--profile", self.profile, *self.options)
        return ("--plan", str(self.root / "plan.json"), *self.options)

    # -- running

    def resume(self) -> None:
        """Do what happens before the turn that counts, and count from here."""
        self.since()
        self.count_from = (len(SCRIPT.asked), len(SCRIPT.ran))

    def outcome(self, code: int, shown: str, reported: str) -> Outcome:
        """Return what came of the turn that counts."""
        asked, ran = self.count_from
        return Outcome(
            code=code,
            shown=shown,
            reported=reported,
            asked=tuple(SCRIPT.asked[asked:]),
            ran=tuple(SCRIPT.ran[ran:]),
        )

    def amplifier(self, *arguments: str, input: str | None = None) -> Outcome:
        """Run a command."""
        result = CliRunner().invoke(main, list(arguments), input=input)
        return self.outcome(result.exit_code, result.stdout, result.stderr)

    def chat(self, *arguments: str, prompt: str | None = None) -> Outcome:
        """Run a command at a terminal that prints lines alone, whose input ends behind the prompt."""
        keyboard, terminal = os.openpty()
        os.write(keyboard, f"{prompt or self.prompt}\n\x04".encode())
        screen, reported = _Screen(), io.StringIO()
        code: object = None
        with (
            os.fdopen(terminal, encoding="utf-8") as typed,
            pytest.MonkeyPatch.context() as patch,
        ):
            patch.setattr(sys, "stdin", typed)
            try:
                with redirect_stdout(screen), redirect_stderr(reported):
                    main(list(arguments))
            except SystemExit as ended:
                code = ended.code
        os.close(keyboard)
        return self.outcome(
            code if isinstance(code, int) else 0, screen.text, reported.getvalue()
        )

    def edit(
        self, *arguments: str, session: str | None = None, is_left: bool = False
    ) -> Outcome:
        """Take the turn that counts from an editor, by `amplifier acp`, or continue one that was left."""
        editor = OneTurnEditor(
            self.prompt, self.is_piped, session, files=self.shown, is_left=is_left
        )
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("amplifier_kit.rpc.stdio.standard_streams", editor.streams)
            outcome = self.amplifier("acp", *arguments, "--backend", self.backend)
        reported = outcome.reported + editor.reported
        if not editor.error:
            shown = outcome.shown + editor.text
            return attrs.evolve(outcome, shown=shown, reported=reported)
        return attrs.evolve(outcome, code=1, reported=f"{reported}{editor.error}\n")

    def call_agent(self, *arguments: str) -> Outcome:
        """Take the turn that counts from an MCP client, by `amplifier mcp serve`."""
        client = OneCallClient(self.prompt)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("amplifier_kit.rpc.stdio.standard_streams", client.streams)
            command = ("mcp", "serve", *arguments, "--backend", self.backend)
            outcome = self.amplifier(*command)
        if client.is_error:
            reported = f"{outcome.reported}{client.text}\n"
            return attrs.evolve(outcome, code=1, reported=reported)
        return attrs.evolve(outcome, shown=outcome.shown + client.text)

    # -- looking

    def take_turn(self, *command: str) -> Outcome:
        """Run the turn that counts, by a command that takes a prompt behind its other words."""
        files = [word for path in self.shown for word in ("--file", str(path))]
        if self.is_piped:
            return self.amplifier(*command, *files, input=self.prompt)
        return self.amplifier(*command, *files, self.prompt)

    @property
    def given(self) -> Prompt:
        """The prompt of the turn that counts, with what it shows."""
        if self.shown:
            return [self.prompt, *map(media_file, self.shown)]
        return self.prompt

    @property
    def given_json(self) -> JSONValue:
        """The same in the JSON of requests."""
        if not self.shown:
            return self.prompt
        shown = map(block_to_dict, map(media_file, self.shown))
        return [{"type": "text", "text": self.prompt}, *shown]

    def begun(self, *turn: str) -> str:
        """Begin a session by one turn that must succeed, and return its id; an equal one is not begun twice."""
        made = [self.made.plan, self.made.settings]
        name = json.dumps([self.guard, turn, self.composition(), made])
        stored = self.beginnings.restore(name, self.root)
        if stored is not None:
            return stored
        outcome = self.amplifier("run", *turn, *self.composition())
        assert outcome.code == 0, (
            f"the session that this start needs could not begin: {outcome.text}"
        )
        (session,) = self.sessions()
        self.beginnings.keep(name, self.root, str(session["session_id"]))
        return str(session["session_id"])

    def share(self) -> None:
        """Let sessions stand in the database from here on, as those of several machines do."""
        self.where = ("--store", self.database, "--namespace", self.namespace)
        self.options += self.where
        self.again += self.where

    def move_there_and_back(self) -> None:
        """Move all sessions to the database, where none of them is resumed, and back."""
        where = ("--namespace", self.namespace)
        for direction in (
            ("--to-store", self.database),
            ("--from-store", self.database, "--to-store", "files"),
        ):
            outcome = self.amplifier("session", "move", *direction, *where)
            assert outcome.code == 0, outcome.text
            assert bool(self.sessions()) == (len(direction) > 2)

    def sessions(self, *, children: bool = False) -> list[JSONObject]:
        """Return what the list of sessions shows."""
        more = ("--children",) if children else ()
        listed: list[JSONObject] = json.loads(
            self.amplifier("session", "list", "--json", *more, *self.where).shown
        )
        return listed

    def child(self) -> str:
        """Return the id of the child of the session that was begun."""
        roots = [session["session_id"] for session in self.sessions()]
        (found,) = [
            session
            for session in self.sessions(children=True)
            if session["parent_id"] in roots
        ]
        return str(found["session_id"])

    def files(self) -> Iterator[Path]:
        """Yield every file below the person's own folder."""
        yield from (path for path in sorted(self.home.rglob("*")) if path.is_file())

    def files_with(self, text: str) -> list[str]:
        """Return the files of the state folder that hold a text, however it is written."""
        spellings = {text.encode(), json.dumps(text)[1:-1].encode()}
        return [
            str(path.relative_to(self.home))
            for path in self.files()
            if any(spelling in path.read_bytes() for spelling in spellings)
        ]

    def dirs(self) -> AppDirs:
        """Return where the application finds its files."""
        return AppDirs.find(self.project)


def merge(
    first: Mapping[str, JSONValue], second: Mapping[str, JSONValue]
) -> JSONObject:
    """Lay one plan over another: mappings key by key, lists one behind the other."""
    result: JSONObject = dict(first)
    for key, value in second.items():
        old = result.get(key)
        if isinstance(old, dict) and isinstance(value, dict):
            result[key] = merge(old, value)
        elif isinstance(old, list) and isinstance(value, list):
            result[key] = [*old, *value]
        else:
            result[key] = value
    return result


def _module(entry: JSONValue) -> JSONValue:
    return entry.get("module") if isinstance(entry, dict) else entry


def script(begin: Sequence[Call], go: Sequence[Call], prompt: str) -> Turns:
    """Write the script of a cell: what is tried in the beginning and later, by a session or a child of it."""
    return {
        BEGIN: tuple(begin),
        GO: tuple(go),
        HAND_BEGIN: (Call("task", {"agent": "self", "instruction": BEGIN}),),
        HAND_GO: (Call("task", {"agent": "self", "instruction": prompt}),),
        HAND_GO_BEHIND: (
            Call("task", {"agent": "self", "instruction": prompt, "background": True}),
            Call("task", {"action": "wait"}, child=True),
        ),
        HAND_GO_AGAIN: (Call("task", {"instruction": prompt}, child=True),),
    }


class _Screen(io.TextIOWrapper):
    """A standard output that is a terminal and keeps what was written."""

    def __init__(self) -> None:
        self._bytes = io.BytesIO()
        super().__init__(self._bytes, encoding="utf-8", write_through=True)

    def isatty(self) -> bool:
        return True

    @property
    def text(self) -> str:
        return self._bytes.getvalue().decode()


def _write_markdown(path: Path, head: Mapping[str, JSONValue]) -> None:
    path.parent.mkdir(exist_ok=True)
    lines = "\n".join(f"{key}: {json.dumps(value)}" for key, value in head.items())
    path.write_text(f"---\n{lines}\n---\n", "utf-8")
