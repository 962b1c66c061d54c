"""Plugin folders: what is found in them, and what of them cannot be read."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from amplifier_kit import claude_plugins
from amplifier_kit.claude_plugins import (
    CommandFile,
    HookEntry,
    is_plugin,
    parse_command,
    read_hooks,
    read_plugin,
)
from amplifier_sdk.errors import ConfigError
from amplifier_sdk.jsontypes import JSONValue

Write = Callable[[dict[str, str]], Path]
HOOK: JSONValue = {"type": "command", "command": "true"}
STOP: JSONValue = {"Stop": [{"hooks": [HOOK]}]}


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write the files of a plugin folder."""

    def write(files: dict[str, str]) -> Path:
        folder = tmp_path / "plugin"
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        return folder

    return write


def manifest(**fields: JSONValue) -> str:
    return json.dumps({"name": "mine", **fields})


def test_a_plugin_brings_what_stands_in_its_folders(write: Write) -> None:
    folder = write(
        {
            ".claude-plugin/plugin.json": manifest(
                version="1.2.0", description="helps", author={"name": "x"}
            ),
            "hooks/hooks.json": json.dumps({"description": "d", "hooks": STOP}),
            "commands/a.md": "Do a.",
            "commands/deep/er/b.md": "Do b.",
            "commands/README.md": "not one",
            "commands/.hidden.md": "not one",
            "commands/notes.txt": "not one",
            "agents/c.md": "---\ndescription: d\n---\nYou help.",
            "skills/s/SKILL.md": "x",
        }
    )
    plugin = read_plugin(folder)

    assert (plugin.name, plugin.version, plugin.description) == (
        "mine",
        "1.2.0",
        "helps",
    )
    assert [(command.name, command.folder) for command in plugin.commands] == [
        ("a", ""),
        ("b", "deep:er"),
    ]
    assert [agent.name for agent in plugin.agents] == ["c"]
    assert [hook.event for hook in plugin.hooks] == ["Stop"]
    assert plugin.skills == (folder.resolve() / "skills",)
    assert plugin.problems == ()
    assert is_plugin(folder)


def test_a_manifest_may_name_other_places(write: Write) -> None:
    folder = write(
        {
            ".claude-plugin/plugin.json": manifest(
                commands=["./more", "./one.md"],
                agents="./people",
                hooks="./config/hooks.json",
                skills=["./know"],
            ),
            "commands/a.md": "a",
            "more/b.md": "b",
            "one.md": "c",
            "people/d.md": "---\ndescription: d\n---\nx",
            "config/hooks.json": json.dumps({"hooks": STOP}),
            "know/s/SKILL.md": "x",
        }
    )
    plugin = read_plugin(folder)

    assert [command.name for command in plugin.commands] == ["a", "b", "one"]
    assert [agent.name for agent in plugin.agents] == ["d"]
    assert len(plugin.hooks) == 1
    assert [path.name for path in plugin.skills] == ["know"]


def test_hooks_may_stand_in_the_manifest(write: Write) -> None:
    plugin = read_plugin(write({".claude-plugin/plugin.json": manifest(hooks=STOP)}))

    assert [hook.event for hook in plugin.hooks] == ["Stop"]


def test_a_claude_folder_has_its_hooks_in_its_settings(write: Write) -> None:
    folder = write(
        {
            "settings.json": json.dumps({"hooks": STOP}),
            "settings.local.json": '{"permissions": {}}',
        }
    )
    plugin = read_plugin(folder, "project")

    assert (plugin.name, len(plugin.hooks)) == ("project", 1)


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        ({".claude-plugin/plugin.json": "[]"}, "a mapping"),
        ({".claude-plugin/plugin.json": "{"}, "plugin.json"),
        ({".claude-plugin/plugin.json": '{"name": "../x"}'}, "name: letters"),
        (
            {".claude-plugin/plugin.json": manifest(commands="../other")},
            "a path to something in the plugin",
        ),
        (
            {".claude-plugin/plugin.json": manifest(agents="/etc")},
            "a path to something in the plugin",
        ),
        (
            {".claude-plugin/plugin.json": manifest(skills=[3])},
            "a path to something in the plugin",
        ),
        (
            {".claude-plugin/plugin.json": manifest(hooks="./none.json")},
            "a path to something in the plugin",
        ),
        ({"hooks/hooks.json": "{"}, "hooks.json"),
        ({"hooks/hooks.json": '{"hooks": []}'}, "hooks: events with their hooks"),
    ],
    ids=[
        "list",
        "broken",
        "name",
        "outside",
        "absolute",
        "number",
        "missing",
        "broken hooks",
        "hooks list",
    ],
)
def test_a_plugin_that_cannot_be_read_says_where(
    write: Write, files: dict[str, str], problem: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        read_plugin(write(files))

    assert problem in str(caught.value)


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    assert not is_plugin(tmp_path / "none")
    with pytest.raises(ConfigError, match="there is no such folder"):
        read_plugin(tmp_path / "none")


def test_what_cannot_be_read_does_not_stop_the_others(write: Write) -> None:
    folder = write(
        {
            "commands/good.md": "x",
            "commands/bad name.md": "x",
            "commands/open.md": "---\nx: y\n",
            "agents/good.md": "---\nname: good\ndescription: d\n---\nx",
            "agents/Bad_Name.md": "---\ndescription: d\n---\nx",
            "agents/silent.md": "---\nname: silent\n---\n",
            "agents/open.md": "---\nname: x\n",
        }
    )
    (folder / "agents/bytes.md").write_bytes(b"\xff")
    plugin = read_plugin(folder)

    assert [command.name for command in plugin.commands] == ["good"]
    assert [agent.name for agent in plugin.agents] == ["good"]
    text = "\n".join(plugin.problems)
    for part in (
        "bad name",
        "open.md",
        "Bad_Name",
        "description: a text",
        "the prompt below",
        "bytes.md",
    ):
        assert part in text


def test_a_folder_of_very_many_commands_is_read_in_part(write: Write) -> None:
    plugin = read_plugin(
        write({f"commands/c{number}.md": "x" for number in range(1_003)})
    )

    assert len(plugin.commands) == 1_000
    assert "of more than 1000 files the rest is left out" in plugin.problems[0]


def test_links_to_folders_and_very_deep_ones_are_passed_over(
    write: Write, tmp_path: Path
) -> None:
    folder = write(
        {"commands/a.md": "x", "/".join(["commands", *("d" * 10), "deep.md"]): "x"}
    )
    (folder / "commands/loop").symlink_to(folder / "commands")

    assert [command.name for command in read_plugin(folder).commands] == ["a"]


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ([], "events with their hooks, as an object"),
        ({"Stop": {}}, "Stop: a list of matchers"),
        ({"Stop": [[]]}, "Stop[0]: an object with a text 'matcher'"),
        ({"Stop": [{"hooks": {}}]}, "Stop[0]: an object with a text 'matcher'"),
        (
            {"Stop": [{"matcher": 3, "hooks": []}]},
            "Stop[0]: an object with a text 'matcher'",
        ),
        (
            {"PreToolUse": [{"matcher": "(", "hooks": []}]},
            "PreToolUse[0].matcher: a name or a regular expression",
        ),
        (
            {"Stop": [{"hooks": [{}]}]},
            "Stop[0].hooks[0].type: 'command' or 'prompt'; got None",
        ),
        ({"Stop": [{"hooks": ["x"]}]}, "Stop[0].hooks[0].type"),
        (
            {"Stop": [{"hooks": [{"type": "command"}]}]},
            "Stop[0].hooks[0].command: a text",
        ),
        (
            {"Stop": [{"hooks": [{"type": "prompt", "prompt": " "}]}]},
            "Stop[0].hooks[0].prompt: a text",
        ),
        (
            {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "a\0"}]}]}},
            "hooks.Stop[0].hooks[0].command",
        ),
        (
            {"Stop": [{"hooks": [{"type": "command", "command": "a", "timeout": 0}]}]},
            "hooks[0].timeout: seconds",
        ),
        (
            {
                "Stop": [
                    {"hooks": [{"type": "command", "command": "a", "timeout": True}]}
                ]
            },
            "hooks[0].timeout: seconds",
        ),
        (
            {
                "Stop": [
                    {"hooks": [{"type": "command", "command": "a", "timeout": 1e9}]}
                ]
            },
            "hooks[0].timeout: seconds",
        ),
    ],
)
def test_hook_that_cannot_be_read_is_error_that_names_its_place(
    document: JSONValue, problem: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        read_hooks(document, "file x")

    assert problem in str(caught.value)


def test_hooks_read_with_and_without_what_plugins_wrap_them_in() -> None:
    asked: JSONValue = {
        "type": "prompt",
        "prompt": "Well?",
        "timeout": 5,
        "model": "haiku",
    }
    beside: JSONValue = {"type": "command", "command": "true", "async": True}
    document: JSONValue = {"Stop": [{"matcher": "*", "hooks": [HOOK, asked, beside]}]}
    (direct, unknown), (wrapped, _) = (
        read_hooks(document, "x"),
        read_hooks({"hooks": document}, "x"),
    )

    assert direct == wrapped
    assert unknown == ()
    assert direct[0] == HookEntry(
        event="Stop", kind="command", text="true", timeout=60.0
    )
    assert direct[1] == HookEntry(
        event="Stop", kind="prompt", text="Well?", timeout=5.0, model="haiku"
    )
    assert direct[2].observes


def test_events_that_are_not_known_are_told_of() -> None:
    hooks, unknown = read_hooks(
        {"description": "x", "Stop": [], "SubagentStart": []}, "file x"
    )

    assert hooks == ()
    assert unknown == (
        "file x: there is no event 'SubagentStart' here; its hooks do not run",
    )


@pytest.mark.parametrize(
    ("matcher", "name", "fits"),
    [
        ("Write", "Write", True),
        ("Write", "WriteMore", False),
        ("write", "Write", False),
        ("Read|Write|Edit", "Edit", True),
        ("Read | Write", "Write", True),
        ("mcp__.*__delete.*", "mcp__asana__delete_task", True),
        ("mcp__.*", "Write", False),
        ("^Notebook", "NotebookEdit", True),
        (None, "Write", True),
    ],
)
def test_a_matcher_is_a_name_several_or_an_expression(
    matcher: str | None, name: str, fits: bool
) -> None:
    hook = HookEntry(event="PreToolUse", kind="command", text="x", matcher=matcher)

    assert hook.matches((name,)) is fits


def test_events_that_are_about_nothing_have_no_matchers() -> None:
    assert HookEntry(
        event="Stop", kind="command", text="x", matcher="anything"
    ).matches(())


@pytest.mark.parametrize(
    ("allowed", "programs"),
    [
        (None, ()),
        (("Read", "Bash"), ()),
        (("Bash(*)", "Bash(:*)", "Bash( )"), ()),
        (("Bash(git:*)", "Bash(git status:*)"), ("git", "git status")),
        (("Bash(npm run test)", "Bash(ls *)"), ("npm run test $", "ls")),
        (("Bash(g*t:*)", "Bash(a|b:*)", "Bash($X:*)"), ()),
    ],
    ids=["none", "no filter", "any", "beginnings", "whole", "patterns"],
)
def test_programs_that_command_may_run_are_those_that_it_names(
    allowed: tuple[str, ...] | None, programs: tuple[str, ...]
) -> None:
    assert (
        CommandFile(name="x", body="y", allowed_tools=allowed).allowed_programs()
        == programs
    )


@pytest.mark.parametrize(
    ("arguments", "prompt"),
    [
        ("", "Move  to  as ."),
        ("a", "Move a to  as ."),
        ("a b c d", "Move a to b as c d."),
    ],
)
def test_a_place_without_its_word_stays_empty(arguments: str, prompt: str) -> None:
    command = parse_command("Move $1 to $2 as $3.", Path("move.md"))

    assert "".join(part.text for part in command.parts(arguments)) == prompt


def test_the_package_lists_what_it_has() -> None:
    assert dir(claude_plugins) == sorted(claude_plugins.__all__)


def test_permissions_of_settings_have_no_effect_and_noted(
    tmp_path: Path,
) -> None:
    (tmp_path / "settings.json").write_text('{"permissions": {"deny": ["Read"]}}')
    (tmp_path / "settings.local.json").write_text('{"hooks": {}, "permissions": {}}')

    (problem,) = read_plugin(tmp_path, "p").problems

    assert "settings.json" in problem
    assert "'permissions' have no effect here" in problem
