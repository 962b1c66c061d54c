"""What a project's folder brings along runs when a person trusts it, exactly as it was then, and not before."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Final

import anyio
import pytest

from amplifier.kernel.sessions.session import AmplifierSession
from amplifier.testing import MockApprovalSystem
from amplifier.testing.people import AskedQuestion
from amplifier_kit.trust import TrustStore, evaluate_project
from amplifier_module_tool_mcp.projects import ProjectServers
from amplifier_sdk.chat import ToolCall
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.results import ToolResult

Open = Callable[..., AbstractAsyncContextManager[AmplifierSession]]  # type: ignore[explicit-any]  # options go by name
Text = Callable[..., Awaitable[str]]  # type: ignore[explicit-any]  # a tool's arguments go by name
Call = Callable[..., Awaitable[ToolResult]]  # type: ignore[explicit-any]  # a tool's arguments go by name
Scripted = Callable[..., JSONObject]  # type: ignore[explicit-any]  # options go by name
Status = Callable[[AmplifierSession, str], Awaitable[JSONObject]]
Until = Callable[[Callable[[], object]], Awaitable[None]]
Noted = Callable[[str], list[str]]
ONE_BACKEND: Final = pytest.mark.parametrize(
    "anyio_backend", ["asyncio"], scope="session"
)


SERVER = str(Path(__file__).with_name("scripted_server.py"))


def declare(work: Path, *, name: str = ".mcp.json", **servers: object) -> None:
    (work / name).parent.mkdir(exist_ok=True)
    (work / name).write_text(json.dumps({"mcpServers": servers}))


def script(work: Path, place: str = "tools/serve.py") -> list[str]:
    """Put a server into the project, and return the command line that names it."""
    (work / place).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(SERVER, work / place)
    return [sys.executable, place]


@pytest.mark.process
async def test_nothing_runs_before_it_is_trusted(
    opened: Open,
    text: Text,
    failure: Text,
    status: Status,
    scripted: Scripted,
    tmp_path: Path,
    work: Path,
) -> None:
    command, file = script(work)
    noted = tmp_path / "project.txt"
    declare(
        work,
        p={"command": command, "args": [file, "good", str(noted)]},
        web={"url": "http://127.0.0.1:9/"},
    )
    async with opened({"own": scripted()}) as one:
        reported = await status(one, "p")
        assert reported["state"] == "refused"
        assert (
            "nobody trusted the mcp of this folder yet; a person agrees to it with mcp_accept"
            in str(reported["problem"])
        )
        assert (await status(one, "web"))["state"] == "refused"
        assert await text(one, "mcp__own__echo", text="x") == "x"
        assert "Denied" in await failure(one, "mcp_accept", server="p")
    assert not noted.exists()


@pytest.mark.process
async def test_a_person_sees_what_would_run_and_agrees(
    opened: Open, text: Text, call: Call, status: Status, note: Path, work: Path
) -> None:
    command, file = script(work)
    declare(work, p={"command": command, "args": [file, "good", str(note)]})
    person = MockApprovalSystem("Agree")
    async with opened(approval=person) as one:
        result = await call(one, "mcp_accept", server="p")
        assert result.success, result
        assert await text(one, "mcp__p__echo", text="x") == "x"
    shown = person.questions[0].prompt
    for part in (str(work), command, "tools/serve.py", ".mcp.json"):
        assert part in shown
    async with opened() as one:
        assert (await status(one, "p"))["state"] == "ready"


@pytest.mark.process
@pytest.mark.parametrize("changed", [".mcp.json", "tools/serve.py"])
async def test_what_changed_since_is_asked_about_again(
    opened: Open,
    changed: str,
    call: Call,
    status: Status,
    noted: Noted,
    note: Path,
    work: Path,
) -> None:
    command, file = script(work)
    declare(work, p={"command": command, "args": [file, "good", str(note)]})
    async with opened(approval=MockApprovalSystem("Agree")) as one:
        await call(one, "mcp_accept", server="p")
    before = len(noted("started"))
    (work / changed).write_text((work / changed).read_text() + "\n")
    async with opened() as one:
        assert f"it changed since it was trusted: '{changed}'" in str(
            (await status(one, "p"))["problem"]
        )
    assert len(noted("started")) == before


@pytest.mark.process
async def test_script_that_changes_in_session_is_not_started_again(
    opened: Open, failure: Text, call: Call, until: Until, note: Path, work: Path
) -> None:
    command, file = script(work)
    declare(work, p={"command": command, "args": [file, "dies", str(note)]})
    async with opened(approval=MockApprovalSystem("Agree")) as one:
        await call(one, "mcp_accept", server="p")
        (work / file).write_text("import os; os._exit(0)")
        assert "ended the connection" in await failure(one, "mcp__p__echo", text="x")
        await until(
            lambda: one.coordinator.tools["mcp__p__echo"].server.state == "failed"  # type: ignore[attr-defined]
        )
        one.coordinator.tools["mcp__p__echo"].server.reopen()  # type: ignore[attr-defined]
        assert "it changed since it was trusted" in await failure(
            one, "mcp__p__echo", text="x"
        )


async def test_what_runs_is_what_shown_and_not_what_files_said_before(
    opened: Open, failure: Text, status: Status, noted: Noted, note: Path, work: Path
) -> None:
    declare(
        work, p={"command": sys.executable, "args": ["-IS", SERVER, "good", str(note)]}
    )
    async with opened(approval=MockApprovalSystem("Agree")) as one:
        declare(work, p={"command": "true"})
        assert "begin another one" in await failure(one, "mcp_accept", server="p")
        assert (await status(one, "p"))["state"] == "refused"
    assert noted("started") == []


@pytest.mark.process
async def test_an_agreement_is_to_what_its_own_question_showed(
    opened: Open, call: Call, failure: Text, status: Status, work: Path
) -> None:
    declare(work, p={"command": "no-such-program-anywhere"})
    before = (work / ".mcp.json").read_bytes()

    async def agree(_: AskedQuestion) -> str:
        """While the person reads, the files change, and another call asks about them."""
        declare(work, p={"command": "no-such-program-either"})
        asked = ToolCall(id="call_2", name="mcp_accept", arguments={"server": "p"})
        calls.start_soon(
            one.coordinator.host.run_tool, asked, dict(one.coordinator.tools)
        )
        while not (
            pending := await one.coordinator.collect_contributions("trust.pending")
        ) or (
            pending[0][0].contents[".mcp.json"] == before  # type: ignore[index]  # it is a list of decisions
        ):
            await anyio.lowlevel.checkpoint()
        return "Agree"

    person = MockApprovalSystem(agree, "Deny")
    async with opened(approval=person) as one:
        async with anyio.create_task_group() as calls:
            await call(one, "mcp_accept", server="p")
        assert "it changed since it was trusted: '.mcp.json'" in str(
            (await status(one, "p"))["problem"]
        )
    assert "anywhere" in person.questions[0].prompt
    assert "either" in person.questions[1].prompt
    (work / ".mcp.json").write_bytes(before)
    async with opened() as one:
        assert "there is no program" in str((await status(one, "p"))["problem"])


def place_link(work: Path) -> dict[str, object]:
    (work / "real.py").write_text("")
    (work / "link.py").symlink_to("real.py")
    return {"command": sys.executable, "args": ["link.py"]}


def place_cwd(work: Path) -> dict[str, object]:
    return {"command": sys.executable, "args": ["-m", "serve"], "cwd": "."}


def place_whole(work: Path) -> dict[str, object]:
    return {
        "command": "uv",
        "args": ["run", "--directory", "${AMPLIFIER_WORKING_DIR}", "x.py"],
    }


def place_path(work: Path) -> dict[str, object]:
    return {
        "command": sys.executable,
        "args": ["-m", "serve"],
        "env": {"PYTHONPATH": str(work)},
    }


def place_around(work: Path) -> dict[str, object]:
    return {
        "command": sys.executable,
        "args": ["-m", f"{work.name}.serve"],
        "cwd": "..",
    }


def place_above(work: Path) -> dict[str, object]:
    (work / "sub").mkdir()
    return {"command": sys.executable, "args": [".."], "cwd": "sub"}


def place_home(work: Path) -> dict[str, object]:  # HOME is the folder
    return {"command": sys.executable, "args": ["-m", "serve"], "cwd": "~"}


@ONE_BACKEND
@pytest.mark.parametrize(
    ("place", "why"),
    [
        (place_link, "'link.py' is a link"),
        (place_cwd, "names the whole project folder"),
        (place_whole, "names the whole project folder"),
        (place_path, "names the whole project folder"),
        (place_around, "or one around it"),
        (place_above, "names the whole project folder"),
        (place_home, "names the whole project folder"),
    ],
    ids=["link", "cwd", "argument", "variable", "around", "above", "home"],
)
async def test_what_cannot_be_told_for_certain_is_never_trusted(
    opened: Open,
    monkeypatch: pytest.MonkeyPatch,
    place: Callable[[Path], dict[str, object]],
    why: str,
    call: Call,
    status: Status,
    work: Path,
) -> None:
    monkeypatch.setenv("HOME", str(work))
    declare(work, p=place(work))
    async with opened(approval=MockApprovalSystem("Agree")) as one:
        await call(one, "mcp_accept", server="p")
        reported = await status(one, "p")
        assert reported["state"] == "refused"
        assert why in str(reported["problem"])


@ONE_BACKEND
@pytest.mark.parametrize(
    "words",
    [
        ["tools/serve.py"],
        ["./tools/serve.py"],
        ["tools/../tools/serve.py"],
        ["${AMPLIFIER_WORKING_DIR}/tools/serve.py"],
        ["--config=tools/serve.py"],
        ["-c", "exec tools/serve.py; true"],
        ["-c", "python3 'tools/serve.py'"],
        ["-I", "tools/serve.py"],
    ],
    ids=["plain", "dot", "dots", "variable", "option", "shell", "quoted", "flag"],
)
async def test_every_file_that_a_command_line_names_is_looked_at(
    opened: Open, words: list[str], call: Call, work: Path
) -> None:
    script(work)
    declare(work, p={"command": "no-such-program-anywhere", "args": words})
    person = MockApprovalSystem("Deny")
    async with opened(approval=person) as one:
        await call(one, "mcp_accept", server="p")
    assert "'tools/serve.py': " in person.questions[0].prompt


@ONE_BACKEND
@pytest.mark.parametrize(
    "server",
    [
        {"command": "x", "args": ["../tools"], "cwd": "safe"},
        {"command": "x", "env": {"PYTHONPATH": "../tools"}, "cwd": "safe"},
        {
            "command": "x",
            "env": {"PYTHONPATH": "${AMPLIFIER_WORKING_DIR}/tools:/usr/lib"},
        },
        {"command": "x", "args": ["--app=${AMPLIFIER_WORKING_DIR}/tools"]},
        {"command": "~/tools/serve.py"},
        {"command": "x", "args": ["-c", "exec ~/tools/serve.py"]},
        {"command": "x", "cwd": "~/tools"},
        {"command": "x", "args": ["../../../a project/tools/serve.py"]},
    ],
    ids=["folder", "relative", "blank", "option", "home", "shell", "cwd", "start"],
)
async def test_every_place_of_project_that_it_reaches_is_looked_at(
    opened: Open,
    monkeypatch: pytest.MonkeyPatch,
    server: dict[str, object],
    call: Call,
    tmp_path: Path,
) -> None:
    work = tmp_path / "a project"
    script(work)
    (work / "safe").mkdir()
    monkeypatch.setenv("HOME", str(work))
    (tmp_path / "home" / "mcp" / "run").mkdir(parents=True)
    declare(work, p=server)
    person = MockApprovalSystem("Deny")
    async with opened(approval=person, work=work) as one:
        await call(one, "mcp_accept", server="p")
    assert "'tools/serve.py': " in person.questions[0].prompt


@pytest.mark.parametrize(
    "server",
    [
        {"command": "sh", "args": ["tools/start.sh"]},
        {"command": "tools/start.sh"},
        {"command": "sh", "args": ["${AMPLIFIER_WORKING_DIR}/tools/start.sh"]},
        {
            "command": "sh",
            "args": ["-c", 'cd "$AMPLIFIER_WORKING_DIR"; tools/start.sh'],
        },
        {"command": "sh", "args": ["start.sh"], "cwd": "tools"},
    ],
    ids=["argument", "program", "variable", "text", "cwd"],
)
def test_what_its_script_runs_in_turn_is_trusted_with_it(
    work: Path, home: Path, server: dict[str, object]
) -> None:
    """The module and `amplifier trust` look at the same, by the one closure of trust."""
    script(work, "tools/start.sh")
    (work / "tools/start.sh").write_text("exec python3 tools/lib/serve.py\n")
    script(work, "tools/lib/serve.py")
    (work / "tools/lib/serve.py").write_text("import helper\n")
    (work / "tools/lib/helper.py").touch()
    declare(work, p=server)
    project, store = ProjectServers(work), TrustStore.in_home()
    store.grant(evaluate_project(store, work, "mcp"))
    _, found = project.look()
    assert found is not None
    assert (found.reason, found.trusted) == ("", True)

    (work / "tools/lib/helper.py").write_text("evil")
    _, found = project.look()

    assert found is not None
    assert found.changed == ("tools/lib/helper.py",)


async def test_folders_that_it_runs_in_are_looked_at_whole(
    opened: Open, call: Call, work: Path
) -> None:
    script(work, "server/main.py")
    (work / "server" / "json.py").write_text("raise SystemExit('imported')")
    declare(work, p={"command": sys.executable, "args": ["main.py"], "cwd": "server"})
    person = MockApprovalSystem("Deny")
    async with opened(approval=person) as one:
        await call(one, "mcp_accept", server="p")
    assert "'server/json.py': " in person.questions[0].prompt


@pytest.mark.process
async def test_nothing_of_the_project_is_found_by_chance(
    opened: Open, text: Text, work: Path, home: Path
) -> None:
    """Not by the person's own servers either: they do not start in the working directory."""
    for name in ("json.py", "mcp.py", "sitecustomize.py", "usercustomize.py"):
        (work / name).write_text("raise SystemExit('imported from the project')")
    (work / ".npmrc").write_text("registry=http://127.0.0.1:9/")
    code = f"import sys, json; sys.argv = ['x', 'environment']; exec(open({SERVER!r}).read())"
    async with opened({"s": {"command": sys.executable, "args": ["-c", code]}}) as one:
        _, folder = json.loads(await text(one, "mcp__s__echo", text="x"))
        assert os.path.realpath(folder) == os.path.realpath(home / "mcp" / "run")


@pytest.mark.process
async def test_a_project_cannot_take_the_place_of_a_persons_server(
    opened: Open, text: Text, status: Status, scripted: Scripted, work: Path, home: Path
) -> None:
    declare(
        work,
        s={"command": "no-such-program-anywhere"},
        h={"command": "no-such-program-anywhere"},
    )
    (home / "mcp.json").write_text(
        json.dumps({"mcpServers": {"h": scripted(), "s": {"command": "false"}}})
    )
    async with opened({"s": scripted()}) as one:
        assert (await status(one, "s"))["declared_by"] == "plan"
        assert (await status(one, "h"))["declared_by"] == "home"
        assert await text(one, "mcp__h__echo", text="x") == "x"


async def test_files_can_be_left_out(
    opened: Open, scripted: Scripted, work: Path, home: Path
) -> None:
    declare(work, p={"command": "x"})
    (home / "mcp.json").write_text(json.dumps({"servers": {"h": scripted()}}))
    async with opened(home_file=False, project_file=False) as one:
        assert sorted(one.coordinator.tools) == ["mcp_status"]


@pytest.mark.process
@ONE_BACKEND
@pytest.mark.parametrize(
    ("content", "name", "why"),
    [
        ("{", ".mcp.json", "cannot be read"),
        ("[]", ".mcp.json", "holds no mapping"),
        ('{"mcpServers": []}', ".mcp.json", "is no mapping"),
        ('{"hooks": {}}', ".mcp.json", "unknown key 'hooks'"),
        ('{"mcpServers": {"p": 5}}', "p", "is no mapping"),
        ('{"mcpServers": {"p": {"comand": "x"}}}', "p", "did you mean 'command'"),
        ('{"mcpServers": {"p": {}}}', "p", "either a command or a url"),
        (
            '{"mcpServers": {"p": {"command": "x", "args": ["/\\ud800"]}}}',
            "p",
            "args holds a NUL or half",
        ),
        (
            '{"mcpServers": {"p": {"command": "x", "cwd": "\\u0000"}}}',
            "p",
            "cwd holds a NUL or half",
        ),
        (
            '{"mcpServers": {"p": {"command": "x", "args": ["%s"]}}}' % ("x" * 300),
            "p",
            "nobody trusted",
        ),
    ],
    ids=[
        "broken",
        "list",
        "servers",
        "key",
        "server",
        "misspelt",
        "empty",
        "surrogate",
        "nul",
        "long",
    ],
)
async def test_a_file_that_is_wrong_says_where(
    opened: Open,
    content: str,
    name: str,
    why: str,
    text: Text,
    status: Status,
    scripted: Scripted,
    work: Path,
) -> None:
    (work / ".mcp.json").write_text(content)
    async with opened({"s": scripted()}) as one:
        assert why in str((await status(one, name))["problem"])
        assert await text(one, "mcp__s__echo", text="x") == "x"


async def test_the_persons_own_file_may_be_wrong_as_well(
    opened: Open, status: Status, home: Path
) -> None:
    (home / "mcp.json").write_text("{")
    async with opened() as one:
        assert "mcp.json" in str((await status(one, "mcp.json"))["problem"])


async def test_all_of_a_projects_files_count_and_the_first_wins(
    opened: Open, call: Call, work: Path
) -> None:
    declare(work, p={"command": "first"})
    declare(
        work,
        name=".amplifier/mcp.json",
        p={"command": "second"},
        q={"command": "second"},
    )
    (work / ".amplifier" / "mcp.yaml").write_text(
        "servers: {r: {command: third}, s: {command: x, disabled: true}}"
    )
    person = MockApprovalSystem("Deny")
    async with opened(approval=person) as one:
        result = await one.coordinator.tools["mcp_status"].execute({})
        assert isinstance(result.output, dict)
        names = [entry["name"] for entry in result.output["servers"]]
        assert names == ["p", "q", "r"]
        await call(one, "mcp_accept", server="p")
    assert '"command": "first"' in person.questions[0].prompt


async def test_trust_within_the_project_is_none(
    opened: Open,
    monkeypatch: pytest.MonkeyPatch,
    failure: Text,
    status: Status,
    work: Path,
) -> None:
    inside = work / "hidden"
    inside.mkdir(mode=0o700)
    monkeypatch.setenv("AMPLIFIER_HOME", str(inside))
    declare(work, p={"command": "x"})
    async with opened(approval=MockApprovalSystem("Agree")) as one:
        assert "lies in the project" in str((await status(one, ".mcp.json"))["problem"])
        assert "cannot be trusted" in await failure(
            one, "mcp_accept", server=".mcp.json"
        )


@pytest.mark.process
async def test_a_home_folder_that_is_the_project_has_its_own_file(
    opened: Open,
    monkeypatch: pytest.MonkeyPatch,
    status: Status,
    scripted: Scripted,
    work: Path,
) -> None:
    monkeypatch.setenv("AMPLIFIER_HOME", str(work / ".amplifier"))
    (work / ".amplifier").mkdir(mode=0o700)
    (work / ".amplifier" / "mcp.json").write_text(
        json.dumps({"mcpServers": {"h": scripted()}})
    )
    async with opened() as one:
        assert (await status(one, "h"))["declared_by"] == "home"


def test_the_store_is_the_persons_own(home: Path) -> None:
    assert TrustStore.in_home().file.path == home / "trust" / "projects.json"
