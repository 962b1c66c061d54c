"""A turn that was left until a person answers: an editor that loads its session asks, and it continues there."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import attrs
import pytest
from anyio import to_thread

from amplifier.app.directories import AppDirs
from amplifier.app.store.file_store import FileSessionStore
from amplifier.app.store.records import SERVED_TURNS, SERVED_WAITING
from amplifier.app.store.store import ProjectSessions
from amplifier.app.store.stored_questions import changing_questions, void_questions
from amplifier.app.store.writer import write_record
from amplifier_kit.open_data import as_list, as_object
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.stores import StoredQuestion
from tests.acp.editor import Editor, editing, options_of, text_block
from tests.cli.programs import call, write_plan

LEFT: Final = 3
"""The exit code of a turn that waits for a person."""
SPEAK: Final[JSONObject] = {
    "deltas": ["I will speak."],
    "tool_calls": [{"name": "speak", "arguments": {}}],
}
SCHEMA: Final[JSONObject] = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
}
"""Of an answer; the file is `../plans/schema.json`."""
FIRST_OPTION: Final[JSONObject] = {
    "jsonrpc": "2.0",
    "id": 1,
    "result": {"outcome": {"outcome": "selected", "optionId": "0"}},
}
"""The answer to the first question of an agent."""
DISMISSED: Final[JSONObject] = {"outcome": {"outcome": "cancelled"}}


def calls(*names: str) -> JSONObject:
    return {"tool_calls": [{"name": name, "arguments": {}} for name in names]}


class Left:
    """A session whose turn was left: `amplifier run --ask-later` in the working directory."""

    def __init__(
        self,
        folder: Path,
        script: Sequence[JSONValue],
        *options: str,
        asks: bool = True,
    ) -> None:
        modules = ("tool-trials", "tool-inquire", "tool-linger", "tool-pick")
        hooks = ("hooks-asks",) if asks else ()
        file = write_plan(folder, script, *modules, *hooks)
        plan = json.loads(file.read_text())
        plan["providers"][0]["config"]["by_history"] = True
        file.write_text(json.dumps(plan))
        (folder / "schema.json").write_text(json.dumps(SCHEMA))
        command = ("run", "--plan", str(file), "--ask-later", *options, "go")
        call(*command, expect=LEFT)
        self.folder = Path.cwd()
        files = ProjectSessions.of(AppDirs.find(self.folder))
        self.store = FileSessionStore(files)
        (session,) = files.all()
        self.record, self.stored = session.record, session.folder
        self.session = session.record.session_id

    async def questions(self) -> tuple[StoredQuestion, ...]:
        return await self.store.questions(self.session)

    async def load(self, editor: Editor, verb: str = "session/load") -> JSONObject:
        return await editor.request(
            verb, cwd=str(self.folder), sessionId=self.session, mcpServers=[]
        )


@pytest.fixture
def left(
    project: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Left:
    """A session that was left; its parameter is what the model says, options, and whether calls are asked about."""
    default: tuple[Sequence[JSONValue], Sequence[str], bool]
    default = ([SPEAK, "The end."], (), True)
    script, options, asks = getattr(request, "param", default)
    monkeypatch.chdir(project)
    plans = project.parent / "plans"
    plans.mkdir()
    return Left(plans, script, *options, asks=asks)


def leaving(
    *script: JSONValue, options: Sequence[str] = (), asks: bool = True
) -> pytest.MarkDecorator:
    given = (script, options, asks)
    return pytest.mark.parametrize("left", [given], indirect=True, ids=[""])


def reported(editor: Editor) -> str:
    return editor.said("agent_thought_chunk")


def has_told(editor: Editor, text: str) -> Callable[[], bool]:
    return lambda: text in reported(editor)


def statuses(editor: Editor, id_: str) -> list[JSONValue]:
    return [
        each["status"]
        for each in editor.updates
        if str(each.get("toolCallId")).startswith(id_)
    ]


@pytest.mark.parametrize("verb", ["session/load", "session/resume"])
async def test_an_answer_in_the_editor_continues_the_turn(
    left: Left, verb: str
) -> None:
    async with editing(left.folder) as editor:
        reply = await left.load(editor, verb)
        await editor.until(has_told(editor, "The turn is over."))
        said = editor.said()
        closed = await editor.request("session/close", sessionId=left.session)
    (question,) = editor.questions
    (stored,) = await left.questions()
    call_ = as_object(question["toolCall"])

    assert "result" in reply
    assert "result" in closed
    assert "Shall it?" in json.dumps(call_["content"])
    assert call_["title"] == "speak"
    assert [each["name"] for each in options_of(question)] == list(stored.options)
    assert stored.answer == "Allow once"
    assert said == "I will speak." * (verb == "session/load") + "The end."
    assert statuses(editor, "question") == ["pending", "completed"]
    assert statuses(editor, "call")[-1] == "completed"


async def test_a_denial_is_stored_and_the_call_does_not_run(left: Left) -> None:
    async with editing(left.folder, answer="reject_once") as editor:
        await left.load(editor)
        await editor.until(has_told(editor, "The turn is over."))
    (stored,) = await left.questions()

    assert stored.answer == "Deny"
    assert statuses(editor, "call")[-1] == "failed"


@pytest.mark.parametrize("answer", ["cancelled", "nonsense", "unknown", "no object"])
async def test_what_is_no_answer_leaves_the_question(left: Left, answer: str) -> None:
    answers: dict[str, JSONValue] = {
        "cancelled": DISMISSED,
        "nonsense": {"outcome": {"outcome": "selected", "optionId": "allow"}},
        "unknown": {"outcome": {"outcome": "selected", "optionId": "17"}},
    }
    async with editing(left.folder) as editor:
        editor.answer = lambda _: answers.get(answer, [])
        await left.load(editor)
        await editor.until(has_told(editor, "amplifier answer"))
        await editor.request("session/close", sessionId=left.session)
    (stored,) = await left.questions()
    async with editing(left.folder) as again:
        await left.load(again)
        await again.until(has_told(again, "The turn is over."))

    assert stored.answer is None
    assert not stored.is_void
    assert again.said().endswith("The end.")


async def test_the_history_shows_the_call_as_pending(left: Left) -> None:
    async with editing(left.folder) as editor:
        editor.answer = lambda _: None
        await left.load(editor)
        await editor.until(lambda: bool(editor.questions))

    assert editor.said("user_message_chunk") == "go"
    assert editor.said() == "I will speak."
    assert statuses(editor, "call") == ["pending"]


async def test_an_answer_elsewhere_is_said(left: Left) -> None:
    (question,) = await left.questions()
    async with editing(left.folder) as editor:
        editor.answer = lambda _: None
        await left.load(editor)
        await editor.until(lambda: bool(editor.questions))
        await left.store.answer(question.question_id, "Allow once", by="Bo")
        await editor.until(has_told(editor, "load the session again"))
        # whoever answered holds it
        async with left.store.files.open(left.record):
            late = await editor.prompt(left.session, text_block("And now?"))

    assert "was answered Allow once elsewhere" in reported(editor)
    assert statuses(editor, "question") == ["pending", "completed"]
    assert "open" in str(as_object(late["error"])["message"])


async def test_the_first_answer_counts(left: Left) -> None:
    (question,) = await left.questions()

    def answer_both(asked: JSONObject) -> JSONValue:
        with changing_questions(left.stored) as known:
            one = known[question.question_id]
            denied = attrs.evolve(one, answer="Deny", answered_by="Bo")
            known[question.question_id] = denied
        chosen = options_of(asked)[0]["optionId"]
        return {"outcome": {"outcome": "selected", "optionId": chosen}}

    async with editing(left.folder) as editor:
        editor.answer = answer_both
        await left.load(editor)
        await editor.until(has_told(editor, "load the session again"))
    (stored,) = await left.questions()

    assert stored.answer == "Deny"
    assert "was answered Deny elsewhere, by Bo" in reported(editor)
    assert "The end." not in editor.said()


async def test_a_prompt_ends_the_turn_that_waits(left: Left) -> None:
    async with editing(left.folder) as editor:
        editor.answer = lambda _: None
        await left.load(editor)
        await editor.until(lambda: bool(editor.questions))
        slash = await editor.prompt(left.session, text_block("/help"))
        (open_,) = await left.questions()
        reply = await editor.prompt(left.session, text_block("Something else."))
    (stored,) = await left.questions()

    assert "no command works" in str(as_object(slash["error"])["message"])
    assert not open_.is_void
    assert stored.is_void
    assert as_object(reply["result"])["stopReason"] == "end_turn"
    assert "another prompt ends it" in reported(editor)
    assert "The last turn was interrupted: go" in reported(editor)
    assert statuses(editor, "question") == ["pending", "completed"]


async def test_a_turn_left_while_its_session_is_loaded_stays(
    left: Left, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process suspends it between the look whether something waits, and the opening."""
    monkeypatch.setattr("amplifier.acp.agent.left_turn", lambda _: None)
    async with editing(left.folder) as editor:
        await left.load(editor)
        await editor.until(has_told(editor, "and a prompt ends it"))
        await editor.request("session/close", sessionId=left.session)
        (stored,) = await left.questions()
        await left.load(editor)
        await editor.prompt(left.session, text_block("Something else."))
    (ended,) = await left.questions()

    assert not stored.is_void
    assert ended.is_void


async def test_an_answered_turn_continues_when_it_is_loaded(left: Left) -> None:
    (question,) = await left.questions()
    await left.store.answer(question.question_id, "Allow once", by="Bo")
    async with editing(left.folder) as editor:
        await left.load(editor)
        await editor.until(has_told(editor, "The turn is over."))

    assert editor.questions == []
    assert "The end." in editor.said()


async def test_a_turn_that_ended_is_not_waited_for(left: Left) -> None:
    async with editing(left.folder) as editor:
        await left.load(editor)
        await editor.until(has_told(editor, "The turn is over."))
        await editor.request("session/close", sessionId=left.session)
        await left.load(editor)
        reply = await editor.prompt(left.session, text_block("/help"))

    assert len(editor.questions) == 1
    assert "result" in reply


@leaving(calls("speak", "speak"), "The end.")
async def test_several_questions_are_asked_at_once(left: Left) -> None:
    async with editing(left.folder) as editor:
        await left.load(editor)
        await editor.until(has_told(editor, "The turn is over."))
    stored = await left.questions()

    assert [each.answer for each in stored] == ["Allow once"] * 2
    assert "The end." in editor.said()


@leaving(SPEAK, SPEAK, "The end.")
async def test_what_is_asked_next_is_asked_there_too(left: Left) -> None:
    async with editing(left.folder) as editor:
        await left.load(editor)
        await editor.until(has_told(editor, "The turn is over."))

    assert len(editor.questions) == 2
    assert editor.said().endswith("The end.")


@leaving(calls("inquire"), "The end.", asks=False)
async def test_texts_are_answered_by_command_and_choices_here(left: Left) -> None:
    (first,) = await left.questions()
    async with editing(left.folder) as editor:
        await left.load(editor)
        await editor.until(has_told(editor, "ANSWER' answers it"))
        await left.store.answer(first.question_id, '"Ann"', by="Bo")
        await editor.until(has_told(editor, "load the session again"))
        await editor.request("session/close", sessionId=left.session)
        asked_before = len(editor.questions)
        await left.load(editor)
        await editor.until(has_told(editor, "The turn is over."))
    (choice,) = editor.questions
    answers = {each.prompt: each.answer for each in await left.questions()}

    assert asked_before == 0
    names = [each["name"] for each in options_of(choice)]
    assert names == ["red", "blue", "Do not answer"]
    assert sorted(map(str, answers.values())) == ['"Ann"', '"red"']


@leaving(calls("speak"), calls("pick"), "The end.")
async def test_a_call_that_waits_in_the_turn_is_asked_about(left: Left) -> None:
    async with editing(left.folder) as editor:
        await left.load(editor)
        await editor.until(has_told(editor, "The turn is over."))

    names = [[o["name"] for o in options_of(each)] for each in editor.questions]
    assert ["left", "right", "Do not answer"] in names
    assert "through left" in json.dumps(editor.updates)


@leaving(calls("speak"), calls("pick"), "The end.")
async def test_cancelling_the_continued_turn_withdraws_all(left: Left) -> None:

    async with editing(left.folder) as editor:
        allow = editor.answer
        editor.answer = lambda asked: (
            None if options_of(asked)[0]["name"] == "left" else allow(asked)
        )
        await left.load(editor)
        await editor.until(lambda: len(editor.questions) == 3)
        busy = await editor.prompt(left.session, text_block("Hello?"))
        await editor.notify("session/cancel", sessionId=left.session)
        await editor.until(has_told(editor, "The turn was cancelled"))
        after = await editor.prompt(left.session, text_block("And now?"))

    assert "a prompt runs" in str(as_object(busy["error"])["message"])
    assert "result" in after
    assert all(each.answer or each.is_void for each in await left.questions())


async def test_a_mode_chosen_while_it_waits_holds(left: Left) -> None:
    async with editing(left.folder) as editor:
        editor.answer = lambda _: None
        await left.load(editor)
        chosen = {"sessionId": left.session, "modeId": "plan"}
        await editor.request("session/set_mode", **chosen)
        await editor.prompt(left.session, text_block("Speak again."))
        unknown = await editor.request(
            "session/set_mode", sessionId=left.session, modeId="magic"
        )

    assert "error" in unknown
    modes = editor.of_kind("current_mode_update")
    assert modes == []  # it is the one that the editor chose


async def test_a_question_that_is_withdrawn_meanwhile_is_closed(left: Left) -> None:
    (question,) = await left.questions()
    async with editing(left.folder) as editor:
        editor.answer = lambda _: None
        await left.load(editor)
        await editor.until(lambda: bool(editor.questions))
        turn_id = str(question.details["turn_id"])
        await to_thread.run_sync(void_questions, left.stored, turn_id)
        await editor.until(has_told(editor, "was withdrawn"))

    assert "The end." not in editor.said()


async def test_a_session_that_somebody_runs_is_refused(left: Left) -> None:
    async with left.store.files.open(left.record), editing(left.folder) as editor:
        reply = await left.load(editor)
    (stored,) = await left.questions()

    assert "error" in reply
    assert editor.questions == []
    assert not stored.is_void


async def test_what_is_asked_obeys_no_screen_and_shows_its_diff(
    left: Left, project: Path
) -> None:
    (question,) = await left.questions()
    write: JSONObject = {"file_path": "notes.txt", "content": "new\n"}
    with changing_questions(left.stored) as known:
        known[question.question_id] = attrs.evolve(
            question,
            prompt="Write\x1b[2J \u202ethis?",
            options=("Allow once", "Deny\x1b[1m"),
            details={
                **question.details,
                "tool": "write_file",
                "arguments": write,
                "agents": ["lead", "wri\x1bter"],
            },
        )
    async with editing(left.folder) as editor:
        editor.answer = lambda _: None
        await left.load(editor)
        await editor.until(lambda: bool(editor.questions))
    (asked,) = editor.questions
    content = as_list(as_object(asked["toolCall"])["content"])
    said = "".join(map(str, [content, options_of(asked)]))

    assert content[0] == {
        "type": "diff",
        "path": str(project / "notes.txt"),
        "oldText": "old text\n",
        "newText": "new\n",
    }
    assert "lead > wri" in said
    assert "\\x1b" not in repr(said).replace("\\\\x1b", "")
    assert "\u202e" not in said


async def test_a_damaged_document_is_one_clear_error(left: Left) -> None:
    (left.stored / "later.json").write_text("{")
    async with editing(left.folder) as editor:
        reply = await left.load(editor)
    (stored,) = await left.questions()

    assert "later.json" in str(as_object(reply["error"])["message"])
    assert not stored.is_void


async def test_an_editor_that_leaves_takes_nothing_along(left: Left) -> None:
    async with editing(left.folder) as editor:
        editor.answer = lambda _: None
        await left.load(editor)
        await editor.until(lambda: bool(editor.questions))
        await editor.send_bytes.aclose()
        await editor.is_over.wait()
    (stored,) = await left.questions()

    assert (stored.answer, stored.is_void) == (None, False)


async def test_two_editors_continue_it_once(left: Left) -> None:
    async with editing(left.folder) as one, editing(left.folder) as two:
        two.answer = lambda _: None
        await left.load(two)
        await two.until(lambda: bool(two.questions))
        await left.load(one)
        await one.until(has_told(one, "The turn is over."))
        await two.until(has_told(two, "load the session again"))

    assert one.said().endswith("The end.")
    assert not two.said().endswith("The end.")


async def test_a_session_that_waits_at_a_server_is_refused(left: Left) -> None:
    turn: JSONObject = {"turn_id": "t", "state": "running"}
    further: JSONObject = {SERVED_TURNS: [turn], SERVED_WAITING: "t"}
    (question,) = await left.questions()
    void_questions(left.stored, str(question.details["turn_id"]))
    write_record(left.stored, attrs.evolve(left.record, further=further))
    async with editing(left.folder) as editor:
        reply = await left.load(editor)

    assert "waits at a server" in str(as_object(reply["error"])["message"])
    assert "amplifier questions" in str(as_object(reply["error"])["message"])


@leaving(
    SPEAK,
    "no JSON",
    '{"n": 3}',
    options=("--accept-edits", "--schema", "../plans/schema.json"),
)
async def test_the_turn_continues_as_it_was_begun(left: Left) -> None:
    async with editing(left.folder) as editor:
        await left.load(editor)
        await editor.until(has_told(editor, "The turn is over."))
        await editor.prompt(left.session, text_block("/help"))
    modes = [each["currentModeId"] for each in editor.of_kind("current_mode_update")]

    assert 'no JSON{"n": 3}' in editor.said()
    # edits are accepted in the turn of which that was said
    assert modes == ["accept-edits", "ask"]


async def test_a_turn_that_cannot_continue_keeps_its_answer(left: Left) -> None:
    async with editing(left.folder) as editor:
        editor.answer = lambda _: None
        await left.load(editor)
        await editor.until(lambda: bool(editor.questions))
        async with left.store.files.open(left.record):
            await editor.send_line(json.dumps(FIRST_OPTION).encode())
            await editor.until(has_told(editor, "was not continued"))
        await editor.request("session/close", sessionId=left.session)
        said = reported(editor)
        await left.load(editor)
        await editor.until(has_told(editor, "The turn is over."))

    assert "The session is open already" in said
    assert len(editor.questions) == 1
    assert editor.said().endswith("The end.")
