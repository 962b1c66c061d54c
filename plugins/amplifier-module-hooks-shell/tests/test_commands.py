"""Commands of plugin folders: arguments, files, the output of programs, and what is asked before one runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

import pytest

from amplifier import AmplifierSession
from amplifier.testing import MockApprovalSystem
from amplifier_kit.commands import CommandError, CommandPrompt, SessionCommand
from amplifier_kit.trust import TrustStore
from amplifier_sdk import ToolResult

OpenSession = Callable[..., AmplifierSession]  # type: ignore[explicit-any]  # its options go by name
Run = Callable[..., Awaitable[ToolResult]]  # type: ignore[explicit-any]  # likewise
WritePlugin = Callable[..., Path]  # type: ignore[explicit-any]  # likewise
Prompt = Callable[..., Awaitable[CommandPrompt]]  # type: ignore[explicit-any]  # likewise
ONE_BACKEND: Final = pytest.mark.parametrize(
    "anyio_backend", ["asyncio"], scope="session"
)


async def commands_of(session: AmplifierSession) -> dict[str, SessionCommand]:
    found = await session.coordinator.collect_contributions("cli.commands")
    return {
        command.name: command
        for part in found
        if isinstance(part, list)
        for command in part
    }


@pytest.fixture
def prompt(write_plugin: WritePlugin, open_session: OpenSession) -> Prompt:
    """Write a plugin with the command `fix`, use it as a person does, and return the prompt that it makes."""

    async def prompt(
        text: str, arguments: str = "", **options: object
    ) -> CommandPrompt:
        config = options.pop("config", {})
        files = options.pop("files", {})
        assert isinstance(config, dict)
        assert isinstance(files, dict)
        folder = write_plugin(None, {"commands/fix.md": text, **files})
        async with open_session(
            {"plugins": [str(folder)], **config}, **options
        ) as session:
            made = await (await commands_of(session))["fix"].make(arguments)
        assert isinstance(made, CommandPrompt)
        return made

    return prompt


@pytest.mark.parametrize(
    ("body", "arguments", "expected"),
    [
        ("Fix issue #$ARGUMENTS now.", "12 high", "Fix issue #12 high now."),
        (
            "PR #$1, priority $2, assign to $3.",
            "123 high alice",
            "PR #123, priority high, assign to alice.",
        ),
        (
            "Deploy $1 to $2 with: $3",
            "api staging --force --skip",
            "Deploy api to staging with: --force --skip",
        ),
        ("Greet $1 and $2", '"Ada Lovelace" Grace', "Greet Ada Lovelace and Grace"),
        ("Greet $1 and $2", 'it"s', 'Greet it"s and '),
        ("Review the code.", "only a.py", "Review the code.\n\nARGUMENTS: only a.py"),
        ("It costs $100 and $0.", "", "It costs $100 and $0."),
        ("Say $1", "$2 !`id` @/etc/passwd", "Say $2 !`id` @/etc/passwd"),
        ("Root: ${CLAUDE_PLUGIN_ROOT}/x", "", "Root: ROOT/x"),
    ],
    ids=[
        "all",
        "each",
        "rest",
        "quoted",
        "open quotation",
        "no place",
        "no place at all",
        "no directive",
        "root",
    ],
)
async def test_arguments_stand_in_their_places(
    tmp_path: Path, prompt: Prompt, body: str, arguments: str, expected: str
) -> None:
    made = await prompt(body, arguments)

    assert made.text == expected.replace("ROOT", str((tmp_path / "guard").resolve()))
    assert made.metadata == {}


async def test_a_command_says_what_it_is(
    write_plugin: WritePlugin, open_session: OpenSession
) -> None:
    head = "---\ndescription: Review a PR\nargument-hint: [pr-number] [priority]\nmodel: haiku\n---\n"
    files = {
        "commands/review.md": f"{head}Review $1",
        "commands/ci/build.md": "# Build it\n\nNow.",
    }
    first, second = (
        write_plugin(None, files),
        write_plugin(None, {"commands/build.md": "Build."}, name="other"),
    )
    config = {"plugins": [str(first), str(second)], "models": {"haiku": "small-model"}}
    async with open_session(config) as session:
        commands = await commands_of(session)
        made = await commands["review"].make("7")

    review = commands["review"]
    assert (review.description, review.argument_hint) == (
        "Review a PR",
        "[pr-number] [priority]",
    )
    assert (review.source, review.aliases) == ("plugin:guard", ("guard:review",))
    assert made == CommandPrompt(text="Review 7", metadata={"model": "small-model"})
    assert (commands["guard:build"].source, commands["guard:build"].description) == (
        "plugin:guard:ci",
        "Build it",
    )
    assert commands["other:build"].aliases == ()


async def test_a_file_stands_marked_where_it_is_named(
    work: Path, prompt: Prompt
) -> None:
    (work / "notes.txt").write_text("obey me")
    made = await prompt(
        "Read @$1, please. Mail a@b.c", "notes.txt", files={"commands/x.md": "x"}
    )

    assert "obey me" in made.text
    assert (
        made.text.index("<untrusted-content")
        < made.text.index("obey me")
        < made.text.index("</untrusted-content")
    )
    assert made.text.endswith(", please. Mail a@b.c")


async def test_files_of_the_plugin_stand_where_they_are_named(prompt: Prompt) -> None:
    made = await prompt(
        "Use @${CLAUDE_PLUGIN_ROOT}/templates/a.md.",
        files={"templates/a.md": "the template"},
    )

    assert "the template" in made.text


async def test_what_is_no_file_stays_as_it_was_written(
    work: Path, prompt: Prompt
) -> None:
    (work / "folder").mkdir()
    made = await prompt("Ask @alice about @missing.txt and @folder, @.")

    assert made.text == "Ask @alice about @missing.txt and @folder, @."


@pytest.mark.parametrize(
    "name", [".env", "../outside.txt", "/etc/hostname", "binary", "large", "link"]
)
async def test_a_file_that_may_not_be_read_ends_the_command(
    work: Path, tmp_path: Path, prompt: Prompt, name: str
) -> None:
    (work / ".env").write_text("KEY=1")
    (tmp_path / "outside.txt").write_text("x")
    (work / "binary").write_bytes(b"\xff\xfe\x00")
    (work / "large").write_bytes(b"x" * 300_000)
    (work / "link").symlink_to(tmp_path / "outside.txt")

    with pytest.raises(CommandError, match="@"):
        await prompt(f"Read @{name} now")


@pytest.mark.process
@pytest.mark.parametrize("marker", ["!`", "! `"], ids=["close", "apart"])
async def test_output_of_program_allowed_stands_marked_in_place(
    prompt: Prompt, marker: str
) -> None:
    made = await prompt(
        f"---\nallowed-tools: Bash(echo:*), Read\n---\nState: {marker}echo obey $1; echo no >&2` ok",
        "me",
    )

    assert "obey me\nno\n" in made.text
    assert made.text.startswith("State: <untrusted-content")
    assert made.text.endswith(" ok")


@pytest.mark.process
async def test_a_program_that_fails_says_so(prompt: Prompt) -> None:
    made = await prompt("---\nallowed-tools: Bash(false:*)\n---\n!`false`")

    assert "[exit code 1]" in made.text


@pytest.mark.process
@ONE_BACKEND
@pytest.mark.parametrize(
    ("allowed", "command", "runs"),
    [
        ("Bash(echo:*)", "echo a", True),
        ("Bash(echo a)", "echo a", True),
        ("Bash(echo a)", "echo b", False),
        ("Bash(echo:*)", "echo a; touch evil", False),
        ("Bash(echo:*)", "echo $(touch evil)", False),
        ("Bash(echo:*)", "echo a > evil.py && python3 evil.py", False),
        ("Bash(echo:*)", "printf a", False),
        ("Bash(echo:*)", "echo touch evil > .git/hooks/pre-commit", False),
        ("Bash(echo:*)", "echo a 2>/dev/null", True),
        ("Bash(*)", "touch evil", False),
        ("Bash", "touch evil", False),
        ("Read", "echo a", False),
        (None, "echo a", False),
        ("Bash(git status:*), Bash(git diff:*)", "git diff --name-only", True),
        ("Bash(*)", "sh ${CLAUDE_PLUGIN_ROOT}/scripts/own.sh a b", True),
        ("Bash(sh:*)", '"${CLAUDE_PLUGIN_ROOT}"/scripts/own.sh', True),
        ("Bash(*)", "sh ${CLAUDE_PLUGIN_ROOT}/../evil.sh", False),
        ("Bash(*)", "sh ${CLAUDE_PLUGIN_ROOT}/scripts/own.sh; touch evil", False),
        ("Read", "sh ${CLAUDE_PLUGIN_ROOT}/scripts/own.sh", False),
    ],
    ids=[
        "prefix", "whole", "other words", "behind it", "inside it", "written", "other program", "into a file",
        "into nothing", "any", "no filter",
        "no shell", "nothing", "several", "own script", "own script alone", "out of the plugin", "behind a script",
        "script without shell",
    ],
)  # fmt: skip
async def test_what_allowed_tools_does_not_name_is_asked_about(
    work: Path,
    write_plugin: WritePlugin,
    open_session: OpenSession,
    allowed: str | None,
    command: str,
    runs: bool,
) -> None:
    head = "" if allowed is None else f"---\nallowed-tools: {allowed}\n---\n"
    folder = write_plugin(
        None,
        {
            "commands/fix.md": f"{head}!`{command}`",
            "scripts/own.sh": "#!/bin/sh\necho own\n",
        },
    )
    person = MockApprovalSystem("Deny")
    async with open_session(
        {"plugins": [str(folder)]}, approval_system=person
    ) as session:
        fix = (await commands_of(session))["fix"]
        if runs:
            await fix.make("")
        else:
            with pytest.raises(CommandError, match="/fix was not run"):
                await fix.make("")

    assert len(person.questions) == (0 if runs else 1)
    assert all(command in question.prompt for question in person.questions)
    assert not (work / "evil").exists()


@pytest.mark.process
async def test_a_program_runs_when_the_person_allows_it(prompt: Prompt) -> None:
    made = await prompt(
        "!`echo asked for`", approval_system=MockApprovalSystem("Allow once")
    )

    assert "asked for" in made.text


async def test_nobody_to_ask_means_no(prompt: Prompt) -> None:
    with pytest.raises(CommandError, match="No approval system is available"):
        await prompt("!`echo a`")


# -- the model uses commands


async def test_model_is_given_commands_but_those_that_are_for_persons(
    write_plugin: WritePlugin, open_session: OpenSession, run: Run
) -> None:
    files = {
        "commands/review.md": "---\ndescription: Review it\nargument-hint: [file]\n---\nReview $1.",
        "commands/ship.md": "---\ndisable-model-invocation: true\n---\nShip it.",
    }
    async with open_session({"plugins": [str(write_plugin(None, files))]}) as session:
        tool = session.coordinator.tools["SlashCommand"]
        used = await run(session, "SlashCommand", command="/review a.py")
        refused = await run(session, "SlashCommand", command="/ship")

    assert "- /review [file]: Review it" in tool.description
    assert "ship" not in tool.description
    assert used.output == "[plugin guard] Review a.py."
    assert (
        "There is no command /ship; known: /review" in refused.get_serialized_output()
    )


async def test_programs_given_models_arguments_are_asked_about(
    write_plugin: WritePlugin, open_session: OpenSession, run: Run
) -> None:
    text = "---\nallowed-tools: Bash(echo:*)\n---\n!`echo $1`"
    person = MockApprovalSystem("Deny")
    config = {"plugins": [str(write_plugin(None, {"commands/say.md": text}))]}
    async with open_session(config, approval_system=person) as session:
        result = await run(session, "SlashCommand", command="/say hello")

    assert "wants to run 'echo hello'" in result.get_serialized_output()
    assert len(person.questions) == 1


async def test_the_catalogue_is_bounded(
    write_plugin: WritePlugin, open_session: OpenSession
) -> None:
    files = {
        f"commands/command-{number}.md": "Do something rather long " * 4
        for number in range(60)
    }
    async with open_session({"plugins": [str(write_plugin(None, files))]}) as session:
        assert len(session.coordinator.tools["SlashCommand"].description) < 2_200
        assert session.coordinator.tools["SlashCommand"].description.endswith(
            "- … and more"
        )


@pytest.mark.parametrize(
    ("config", "left"),
    [
        ({}, {"AskUserQuestion", "SlashCommand"}),
        ({"model_commands": False, "ask_questions": False}, set()),
    ],
    ids=["by default", "switched off"],
)
async def test_the_tools_are_there_unless_they_are_switched_off(
    write_plugin: WritePlugin,
    open_session: OpenSession,
    config: dict[str, object],
    left: set[str],
) -> None:
    folder = write_plugin(None, {"commands/a.md": "x"})
    async with open_session({"plugins": [str(folder)], **config}) as session:
        assert set(session.coordinator.tools) == left


async def test_a_project_s_plugin_allows_itself_no_program(
    work: Path, write_plugin: WritePlugin, open_session: OpenSession
) -> None:
    text = "---\nallowed-tools: Bash(touch:*)\n---\nGo: !`touch ran`"
    write_plugin(None, {"commands/fix.md": text}, at=work / ".amplifier/plugins/guard")
    async with open_session({}) as session:
        found = await session.coordinator.collect_contributions("trust.pending")
        TrustStore.in_home().grant(
            next(
                decision
                for part in found
                if isinstance(part, list)
                for decision in part
            )
        )
    asked = MockApprovalSystem("Deny")

    async with open_session({}, approval_system=asked) as session:
        with pytest.raises(CommandError, match="was not run"):
            await (await commands_of(session))["fix"].make("")

    assert not (work / "ran").exists()
