"""The grammar of the command line, read from its page and compared with every command."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import click
import pytest
from click.testing import CliRunner

from amplifier.cli import main
from tests.cli.programs import call, write_plan

PAGE: Final = (
    Path(__file__).parents[2] / "docs" / "reference" / "grammar.md"
).read_text("utf-8")
SESSIONS: Final = {"run", "continue", "resume", "chat"}
FORMATS: Final = {"text", "json", "ndjson", "markdown", "html"}
RENAMED: Final = {
    "--check-only",
    "--form",
    "--full",
    "--last",
    "--local",
    "--out",
    "--tail",
    "--verbose",
}


class Found(NamedTuple):
    path: tuple[str, ...]
    command: click.Command

    @property
    def options(self) -> Sequence[click.Option]:
        found = [each for each in self.command.params if isinstance(each, click.Option)]
        return [each for each in found if not each.hidden]


def _walk(
    command: click.Command, path: tuple[str, ...], parent: click.Context | None
) -> Iterator[Found]:
    yield Found(path, command)
    if isinstance(command, click.Group):
        ctx = click.Context(command, info_name=" ".join(path), parent=parent)
        for name in command.list_commands(ctx):
            child = command.get_command(ctx, name)
            assert child is not None
            yield from _walk(child, (*path, name), ctx)


ALL: Final = [*_walk(main, (), None)]
GROUPS: Final = [found for found in ALL if isinstance(found.command, click.Group)]
VERBS: Final = [
    found
    for found in ALL
    if len(found.path) > 1 and not isinstance(found.command, click.Group)
]


def _rows(heading: str) -> list[str]:
    """Return the first cells of a section's table."""
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| `")]
    return [line.split("|")[1] for line in lines]


def _documented(heading: str) -> set[str]:
    return {
        name for row in _rows(heading) for name in re.findall(r"`([^` ]+)[^`]*`", row)
    }


def _pairs() -> dict[str, str]:
    """Return what each short option of the page is short for."""
    rows = [
        re.findall(r"`(-[^` ]+)[^`]*`", row)
        for row in (*_rows("Options"), *_rows("Global options"))
    ]
    return {names[0]: names[1] for names in rows if len(names) == 2}


def _named(name: str) -> list[tuple[str, click.Option]]:
    return [
        (" ".join(found.path), option)
        for found in ALL
        for option in found.options
        if name in option.opts
    ]


def test_the_verbs_of_the_page_are_those_of_the_commands() -> None:
    assert {found.path[-1] for found in VERBS} - {"install"} == _documented("Verbs")


def test_the_nouns_are_singular() -> None:
    nouns = {found.path[-1] for found in GROUPS if found.path}

    assert [noun for noun in sorted(nouns) if noun.endswith("s")] == [
        "permissions",
        "questions",
    ]
    reported = PAGE.split("\n## Nouns\n")[1].split("\n## ")[0]
    assert nouns - set(re.findall(r"`(\w+)`", reported)) == set()


def test_the_global_options_are_those_of_the_page() -> None:
    named = {name for option in ALL[0].options for name in option.opts}
    helped = {*main.context_settings["help_option_names"]}

    assert named | helped == _documented("Global options")


def test_a_short_option_means_one_thing() -> None:
    meanings = {
        (name, next(each for each in option.opts if each.startswith("--")))
        for found in ALL
        for option in found.options
        for name in option.opts
        if not name.startswith("--") and name != "-C"
    }

    assert dict(meanings) == {
        short: long for short, long in _pairs().items() if long != "--help"
    }
    assert len(dict(meanings)) == len(meanings)


def test_an_option_with_a_short_form_has_it_everywhere() -> None:
    without = [
        (path, long)
        for short, long in _pairs().items()
        for path, option in _named(long)
        if short not in option.opts
    ]

    # there a tag, a session and a provider are one of several things to say
    assert [each for each in without if each[0] not in ("init", "session move")] == []


def test_output_is_a_format() -> None:
    for path, option in _named("--output"):
        assert isinstance(option.type, click.Choice), path
        assert {*option.type.choices} <= FORMATS, path


def test_json_is_short_for_an_output() -> None:
    with_json = {path for path, _ in _named("--json")}

    assert with_json <= {path for path, _ in _named("--output")}
    assert {
        path for path, option in _named("--json") if option.flag_value != "json"
    } == (set())


@pytest.mark.parametrize("name", ["--to", "--file"])
def test_to_and_file_name_files(name: str) -> None:
    for path, option in _named(name):
        assert isinstance(option.type, click.Path), path
        assert option.type.file_okay, path
        assert not option.type.dir_okay, path


@pytest.mark.parametrize("name", ["--yes", "--detail", "--dry-run", "--force"])
def test_these_are_flags(name: str) -> None:
    found = _named(name)

    assert found
    assert [path for path, option in found if not option.is_flag] == []


def test_scope_is_one_of_three() -> None:
    for path, option in _named("--scope"):
        assert isinstance(option.type, click.Choice), path
        assert {*option.type.choices} <= {"local", "project", "user"}, path


def test_limit_is_a_number() -> None:
    for path, option in _named("--limit"):
        assert isinstance(option.type, click.IntRange), path


def test_no_option_has_another_name_for_the_same() -> None:
    used = {name for found in ALL for option in found.options for name in option.opts}

    assert used & RENAMED == set()


def test_every_command_has_debug() -> None:
    commands = [found for found in ALL if not isinstance(found.command, click.Group)]

    assert [
        found.path
        for found in commands
        if not any("--debug" in option.opts for option in found.options)
    ] == []


def test_a_turn_has_the_same_options_however_its_session_begins() -> None:
    options = {
        found.path[0]: {name for option in found.options for name in option.opts}
        for found in ALL
        if len(found.path) == 1 and found.path[0] in SESSIONS
    }

    assert options["continue"] == options["resume"]
    assert options["run"] == options["resume"] | {"--continue", "--resume"}
    assert options["chat"] <= options["resume"]


@pytest.mark.parametrize("begin", [("run", "--continue"), ("continue",)])
def test_the_latest_session_is_resumed_by_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begin: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    plan = write_plan(tmp_path, responses=["One.", "Two."])
    call("run", "First", "--plan", str(plan))

    resumed = call(*begin, "Second", "--output", "json")

    assert '"text": "' in resumed.stdout
    assert len(call("session", "list", "--json").stdout.split('"session_id"')) == 2


def test_a_session_is_named_once() -> None:
    refused = CliRunner().invoke(main, ["run", "x", "--continue", "--resume", "y"])

    assert refused.exit_code == 2
    assert "--resume names a session, --continue the latest one" in refused.stderr


@pytest.mark.parametrize(
    "prompt", ["Which files are here?", "two\nlines", "with \x1b[31mcolour"]
)
def test_a_prompt_without_a_command_is_answered_with_what_to_type(prompt: str) -> None:
    refused = CliRunner().invoke(main, [prompt])

    assert refused.exit_code == 2
    assert "type: amplifier run '" in refused.stderr
    assert "\x1b" not in refused.stderr


def test_the_version_is_an_option() -> None:
    assert call("--version").stdout == call("version").stdout.splitlines()[0] + "\n"


def test_a_command_runs_in_another_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there").mkdir()

    call("-C", "there", "session", "export", "x", "--to", "y", expect=1)

    assert Path.cwd() == tmp_path / "there"
    assert "does not exist" in call("-C", "nowhere", "version", expect=2).stderr


def test_quiet_leaves_out_notices_of_its_own_command_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "There is no session" in call("session", "list").stderr
    assert call("--quiet", "session", "list").stderr == ""
    # and only there
    assert "There is no session" in call("session", "list").stderr


def test_quiet_leaves_warnings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "home" / "agents"
    folder.mkdir(parents=True)
    (folder / "broken.md").write_text("---\nmeta: [\n---\n", "utf-8")
    monkeypatch.setenv("AMPLIFIER_HOME", str(tmp_path / "home"))

    output = call("--quiet", "agent", "list").stderr

    assert "warning:" in output
    assert "There is no agent" not in output


def test_no_color_reaches_what_writes_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "")
    monkeypatch.setenv("TERM", "xterm")

    call("--no-color", "version")

    assert os.environ["NO_COLOR"] == "1"
