"""Commands that people write as files."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import attrs
import pytest

from amplifier.app.commands.builtin import make_registry
from amplifier.app.commands.registry import CommandRegistry
from amplifier.app.commands.talk import Talk
from amplifier.app.directories import AppDirs
from amplifier.app.sessions.opened import open_session
from amplifier_kit.commands import CommandError, CommandPrompt, WrittenText
from amplifier_sdk.jsontypes import JSONObject
from tests.app.projects import composed, trust, write

PLAN: JSONObject = {
    "session": {"orchestrator": "loop-basic", "context": "context-simple"},
    "providers": [{"module": "provider-scripted", "config": {"responses": ["done"]}}],
}


@attrs.define
class Asked:
    """A person who gives one answer to everything."""

    answer: str
    questions: list[str] = attrs.field(factory=list)

    async def request_approval(
        self, prompt: str, options: Sequence[str], timeout: float, default: str, /
    ) -> str:
        self.questions.append(prompt)
        return self.answer


@asynccontextmanager
async def commands(
    dirs: AppDirs, person: Asked | None = None
) -> AsyncIterator[tuple[CommandRegistry, list[str]]]:
    async with open_session(
        composed(PLAN, dirs.working_dir), approval=person
    ) as opened:
        yield await make_registry(Talk.of(opened))


async def make(
    registry: CommandRegistry, name: str, arguments: str = ""
) -> CommandPrompt:
    made = await registry.find(name).make(arguments)
    assert isinstance(made, CommandPrompt)
    return made


async def refuses(registry: CommandRegistry, name: str, place: str) -> None:
    """Run a command; it says which file has the name, and what helps."""
    with pytest.raises(
        CommandError, match=r"is not trusted.*amplifier trust"
    ) as caught:
        await make(registry, name)
    assert place in str(caught.value)


async def test_a_file_is_a_command_with_arguments_and_a_model(dirs: AppDirs) -> None:
    head = "---\ndescription: Translate a text\nargument-hint: LANGUAGE TEXT\nmodel: small\n---\n"
    write(dirs.home / "commands/translate.md", head + "Into $1, of @notes.md: $2\n")
    write(dirs.home / "commands/git/note.md", "Note this.\n")
    async with commands(dirs) as (registry, problems):
        made = await make(registry, "translate", "French good morning")
        text = "Into French, of @notes.md: good morning"
        assert (made.text, made.metadata) == (text, {"model": "small"})
        assert made.written == WrittenText(
            "Into French, of  @notes.md : good morning", dirs.home / "commands"
        )
        assert registry.find("translate").description == "Translate a text"
        assert (
            await make(registry, "user:git:note", "milk")
        ).text == "Note this.\n\nARGUMENTS: milk"
    assert problems == []


async def test_the_files_of_a_project_count_once_they_are_trusted(
    dirs: AppDirs,
) -> None:
    write(dirs.root / ".amplifier/commands/ship.md", "Ship it.")
    write(dirs.root / ".claude/commands/team/check.md", "Check it.")
    async with commands(dirs) as (registry, _):
        await refuses(registry, "ship", ".amplifier/commands/ship.md")
        await refuses(registry, "project:team:check", ".claude/commands/team/check.md")
    trust(dirs, "commands")
    async with commands(dirs) as (registry, _):
        assert (await make(registry, "ship")).text == "Ship it."
        assert (await make(registry, "project:team:check")).text == "Check it."
    write(dirs.root / ".amplifier/commands/ship.md", "Delete it.")
    async with commands(dirs) as (registry, _):
        await refuses(registry, "ship", ".amplifier/commands/ship.md")


async def test_personal_command_beats_project_and_builtin_beats_both(
    dirs: AppDirs,
) -> None:
    for folder in (dirs.home / "commands", dirs.root / ".amplifier/commands"):
        write(folder / "ship.md", f"From {folder.parent.parent.name}.")
        write(folder / "undo.md", "Mine.")
    trust(dirs, "commands")
    async with commands(dirs) as (registry, _):
        assert (await make(registry, "ship")).text == "From home."
        assert (await make(registry, "project:ship")).text == "From shop."
        assert registry.find("undo").source == ""
        assert (await make(registry, "user:undo")).text == "Mine."


async def test_module_command_never_replaces_untrusted_project_one(
    dirs: AppDirs,
) -> None:
    write(dirs.root / ".amplifier/commands/review.md", "Theirs.")
    write(dirs.root / ".amplifier/commands/ship.md", "Theirs.")
    write(dirs.home / "commands/ship.md", "Mine.")
    skills: JSONObject = {
        "module": "tool-skills",
        "config": {"skills_dirs": [str(dirs.home / "skills")]},
    }
    write(
        dirs.home / "skills/review/SKILL.md",
        "---\nname: review\ndescription: d\n---\nMine.\n",
    )
    async with open_session(
        composed({**PLAN, "tools": [skills]}, dirs.working_dir)
    ) as opened:
        registry, _ = await make_registry(Talk.of(opened))
        await refuses(registry, "review", ".amplifier/commands/review.md")
        assert "Mine." in (await make(registry, "skill:person:review")).text
        assert (await make(registry, "ship")).text == "Mine."
        assert "not trusted" in registry.listed["review"].description


async def test_what_cannot_be_read_is_told_and_left_out(dirs: AppDirs) -> None:
    write(dirs.home / "commands/bad name.md", "x")
    write(dirs.home / "commands/good.md", "x")
    (dirs.home / "commands/latin.md").write_bytes(b"\xff\xfe\xfa")
    write(dirs.root / ".amplifier/commands/x.md", "")
    (dirs.root / ".amplifier/commands/latin.md").write_bytes(b"\xff")
    trust(dirs, "commands")
    async with commands(dirs) as (registry, problems):
        assert "good" in registry.names
    assert len(problems) == 3
    assert any("'bad name'" in problem for problem in problems)
    assert any("not UTF-8" in problem for problem in problems)


@pytest.mark.process
async def test_program_runs_once_it_is_allowed_and_output_is_marked(
    dirs: AppDirs,
) -> None:
    write(dirs.home / "commands/log.md", "The log: !`echo one; exit 3`")
    person = Asked("Allow once")
    async with commands(dirs, person) as (registry, _):
        text = (await make(registry, "log")).text
    assert "/log wants to run this command:\necho one; exit 3" in person.questions[0]
    assert "one\n[exit code 3]\n</untrusted-content" in text
    assert text.startswith("The log: <untrusted-content")


@pytest.mark.parametrize(
    "person", [Asked("Deny"), None], ids=["denied", "nobody to ask"]
)
async def test_a_program_that_is_not_allowed_does_not_run(
    dirs: AppDirs, person: Asked | None
) -> None:
    write(dirs.home / "commands/log.md", "!`touch ran`")
    async with commands(dirs, person) as (registry, _):
        with pytest.raises(
            CommandError, match="/log was not run: it wants to run 'touch ran'"
        ):
            await make(registry, "log")
    assert not (dirs.working_dir / "ran").exists()


async def test_project_s_command_mentions_files_of_project_alone(
    dirs: AppDirs, tmp_path: Path
) -> None:
    outside = write(tmp_path / "outside.md", "secret")
    os.symlink(outside, dirs.root / "link.md")
    write(dirs.root / "notes.md", "fine")
    for name, mention in (
        ("a", "@notes.md"),
        ("b", "@../outside.md"),
        ("c", "@link.md"),
        ("d", "@.env"),
    ):
        write(dirs.root / f".amplifier/commands/{name}.md", f"Read {mention}")
    trust(dirs, "commands")
    async with commands(dirs) as (registry, _):
        made = await make(registry, "a", "of @own.md")
        assert made.text.startswith("Read @notes.md\n<untrusted-content")
        assert "\nfine\n" in made.text
        assert made.written is None
        for name in "bcd":
            with pytest.raises(CommandError, match="cannot be read"):
                await make(registry, name)


@pytest.mark.parametrize(
    "mention", ['@"{path}"', "Read:@{path}", "$1@{path}", "x,@{path}"]
)
async def test_nothing_that_a_project_s_command_says_counts_as_typed(
    dirs: AppDirs, tmp_path: Path, mention: str
) -> None:
    """What it spells so that no file is read here is text, and text of others is not followed."""
    outside = write(tmp_path / "outside.md", "secret")
    write(dirs.root / ".amplifier/commands/a.md", f"Go: {mention.format(path=outside)}")
    trust(dirs, "commands")
    async with commands(dirs) as (registry, _):
        made = await make(registry, "a", "and @mine.md")
    assert made.written is None
    assert "secret" not in made.text


@pytest.mark.parametrize("mention", ["(@{path})", "see @{path}:1-3"])
async def test_mention_of_project_s_command_is_read_here_and_refused(
    dirs: AppDirs, tmp_path: Path, mention: str
) -> None:
    outside = write(tmp_path / "outside.md", "secret")
    write(dirs.root / ".amplifier/commands/a.md", f"Go: {mention.format(path=outside)}")
    trust(dirs, "commands")
    async with commands(dirs) as (registry, _):
        with pytest.raises(CommandError, match="outside"):
            await make(registry, "a", "and @mine.md")


@pytest.mark.process
async def test_program_output_is_not_expanded_in_personal_command(
    dirs: AppDirs,
) -> None:
    write(dirs.home / "commands/log.md", "Look at @notes.md: !`echo @/etc/passwd`")
    async with commands(dirs, Asked("Allow once")) as (registry, _):
        made = await make(registry, "log")

    assert made.written is not None
    assert "@notes.md" in made.written.text
    assert "/etc/passwd" not in made.written.text


@pytest.mark.parametrize(
    ("content", "problem"),
    [(b"x" * 300_000, "larger than"), (b"\xff", "cannot be read")],
    ids=["large", "bytes"],
)
async def test_file_that_project_s_command_cannot_show_is_error(
    dirs: AppDirs, content: bytes, problem: str
) -> None:
    (dirs.root / "data").write_bytes(content)
    (dirs.root / "folder").mkdir()
    write(dirs.root / ".amplifier/commands/a.md", "Read @data")
    write(dirs.root / ".amplifier/commands/b.md", "List @folder")
    trust(dirs, "commands")
    async with commands(dirs) as (registry, _):
        assert (await make(registry, "b")).text == "List @folder"
        with pytest.raises(CommandError, match=problem):
            await make(registry, "a")


async def test_a_collection_brings_commands(dirs: AppDirs) -> None:
    shared = dirs.home / "collections/shop"
    write(shared / "pyproject.toml", '[project]\nname = "shop"\nversion = "1"\n')
    write(shared / "commands/order.md", "Order $1.\n")
    write(shared / "commands/status.md", "Mine.\n")
    async with commands(dirs) as (registry, _):
        assert (await make(registry, "order", "milk")).text == "Order milk."
        listed = registry.listed
        assert listed["order"].source == "collection:shop"
        # the built-in one keeps its name
        assert "collection:shop:status" in listed
