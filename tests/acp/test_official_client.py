"""The official client of the protocol drives `amplifier acp` as a process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from amplifier_kit.open_data import as_list, as_object
from amplifier_sdk.jsontypes import JSONObject
from tests.acp.test_sessions import READ, WAIT, WRITE
from tests.cli.programs import BACKENDS, PROGRAM, write_plan

SPEAK: JSONObject = {"tool_calls": [{"name": "speak", "arguments": {}}]}

pytestmark = pytest.mark.process

# Its own process: the library needs asyncio alone, and a loop of its own.
CLIENT = """
    import asyncio
    import os
    import sys

    from acp import spawn_agent_process, text_block
    from acp.schema import AllowedOutcome, RequestPermissionResponse

    folder, wanted, session, *command = sys.argv[1:]


    class Client:
        def __init__(self):
            self.called = asyncio.Event()
            self.over = asyncio.Event()

        async def request_permission(self, session_id, tool_call, options, **_):
            print("asked", tool_call.title, options[0].kind, flush=True)
            if wanted == "leave":
                await asyncio.Event().wait()
            outcome = AllowedOutcome(outcome="selected", option_id=options[0].option_id)
            return RequestPermissionResponse(outcome=outcome)

        async def session_update(self, session_id, update, **_):
            kind = update.session_update
            if kind == "tool_call":
                self.called.set()
                for part in update.content or []:
                    print("diff", repr(part.old_text), repr(part.new_text))
            if kind.endswith("_chunk"):
                print(kind, update.content.text, flush=True)
                if "The turn is" in update.content.text:
                    self.over.set()

        def on_connect(self, _):
            pass


    async def main():
        client = Client()
        async with spawn_agent_process(client, *command, env=dict(os.environ)) as (agent, process):
            print("version", (await agent.initialize(protocol_version=1)).protocol_version)
            if wanted in ("load", "answer", "leave"):
                await agent.load_session(cwd=folder, session_id=session, mcp_servers=[])
                if wanted != "load":
                    await client.over.wait()
                return
            opened = await agent.new_session(cwd=folder, mcp_servers=[])
            print("session", opened.session_id, flush=True)
            prompt = asyncio.create_task(
                agent.prompt(session_id=opened.session_id, prompt=[text_block("Hi")])
            )
            if wanted == "kill":
                await client.called.wait()
                process.kill()
                prompt.cancel()
                return
            if wanted == "cancel":
                await client.called.wait()
                await agent.cancel(session_id=opened.session_id)
            print("stop", (await prompt).stop_reason)


    asyncio.run(main())
"""


def _drive(folder: Path, wanted: str, *command: str, session: str = "-") -> list[str]:
    ended = subprocess.run(
        [sys.executable, "-c", dedent(CLIENT), str(folder), wanted, session, *command],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.splitlines()


@pytest.fixture(params=["asyncio", "trio"])
def backend(request: pytest.FixtureRequest) -> str:
    backend: str = request.param
    return backend


def test_it_edits_a_file_after_a_question(project: Path, backend: str) -> None:
    modules = ("tool-filesystem", "hooks-approval")
    plan = write_plan(project.parent, [READ, WRITE, "done"], *modules)
    command = (*PROGRAM, "acp", "--plan", str(plan), "--backend", backend)

    said = _drive(project, "prompt", *command)

    assert said[0] == "version 1"
    assert "asked write_file notes.txt allow_once" in said
    assert "diff 'old text\\n' 'new text\\n'" in said
    assert said[-2:] == ["agent_message_chunk done", "stop end_turn"]
    assert (project / "notes.txt").read_text() == "new text\n"


def test_it_cancels_a_turn(project: Path, backend: str) -> None:
    plan = write_plan(project.parent, [WAIT], "tool-trials")
    command = (*PROGRAM, "acp", "--plan", str(plan), "--backend", backend)

    assert _drive(project, "cancel", *command)[-1] == "stop cancelled"


def test_a_killed_agent_leaves_a_session_to_load(project: Path, backend: str) -> None:
    plan = write_plan(project.parent, [WAIT], "tool-trials")
    command = (*PROGRAM, "acp", "--plan", str(plan), "--backend", backend)
    said = _drive(project, "kill", *command)
    (line,) = [each for each in said if each.startswith("session ")]

    loaded = _drive(project, "load", *command, session=line.split()[1])

    assert "user_message_chunk Hi" in loaded


def test_what_a_tool_prints_is_no_protocol(project: Path, backend: str) -> None:
    plan = write_plan(project.parent, [SPEAK, "said"], "tool-trials")
    command = (*PROGRAM, "acp", "--plan", str(plan), "--backend", backend)

    said = _drive(project, "prompt", *command)

    assert said[-1] == "stop end_turn"
    assert "printed by a tool" not in "\n".join(said)


def _left(project: Path) -> str:
    """Leave a turn of a new session until its question is answered; return the session."""
    plan = write_plan(project.parent, [SPEAK, "done"], "tool-trials", "hooks-asks")
    run = (*PROGRAM, "run", "--plan", str(plan), "--ask-later", "Hi")
    assert subprocess.run(run, cwd=project, check=False, timeout=60).returncode == 3
    (asked,) = _questions(project)
    return str(asked["session_id"])


def _questions(project: Path) -> list[JSONObject]:
    listed = (*PROGRAM, "questions", "list", "--all", "--json")
    said = subprocess.check_output(listed, cwd=project, timeout=60)
    return [as_object(each) for each in as_list(json.loads(said))]


def test_it_answers_a_question_that_waited(project: Path, backend: str) -> None:
    session = _left(project)

    said = _drive(
        project, "answer", *PROGRAM, "acp", "--backend", backend, session=session
    )

    (asked,) = _questions(project)
    assert "asked speak allow_once" in said
    assert "agent_message_chunk done" in said
    assert asked["answer"] == "Allow once"


def test_another_program_answers_what_it_is_asked(project: Path, backend: str) -> None:
    session = _left(project)
    (asked,) = _questions(project)
    acp = (*PROGRAM, "acp", "--backend", backend)
    script = dedent(CLIENT)
    command = [sys.executable, "-c", script, str(project), "leave", session, *acp]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as editor:
        assert editor.stdout is not None
        for line in editor.stdout:
            if line.startswith("asked"):
                break
        answer = (*PROGRAM, "answer", str(asked["question_id"]), "allow")
        answered = subprocess.check_output(answer, cwd=project, text=True, timeout=60)
        text = "".join(editor.stdout)

    assert answered.strip() == "done"
    assert "was answered Allow once elsewhere" in text
    assert "done" not in text


@BACKENDS
def test_frames_from_a_file_are_answered(project: Path, backend: str) -> None:
    frames = project / "frames"
    frames.write_text('nonsense\n{"id":1,"method":"initialize","params":{}}\n')
    with frames.open() as given:
        ended = subprocess.run(
            [*PROGRAM, "acp", "--backend", backend],
            stdin=given,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    assert ended.returncode == 0, ended.stderr
    first = ended.stdout.splitlines()[0]
    assert '"code":-32700' in first
