"""Plugin folders of a project: nothing of them runs before they are trusted, and then what was trusted runs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import cast

import pytest

from amplifier import AmplifierSession
from amplifier.testing import MockDisplaySystem, MockTool
from amplifier_kit.claude_plugins import evaluate_plugin
from amplifier_kit.commands import CommandError, SessionCommand
from amplifier_kit.trust import PROJECT_FILES, TrustDecision, TrustStore
from amplifier_sdk import ToolResult
from amplifier_sdk.errors import ModuleLoadError
from amplifier_sdk.jsontypes import JSONValue

OpenSession = Callable[..., AmplifierSession]  # type: ignore[explicit-any]  # its options go by name
Run = Callable[..., Awaitable[ToolResult]]  # type: ignore[explicit-any]  # likewise
WritePlugin = Callable[..., Path]  # type: ignore[explicit-any]  # likewise
DENYING: JSONValue = {
    "PreToolUse": [
        {"hooks": [{"type": "command", "command": "${CLAUDE_PLUGIN_ROOT}/deny.sh"}]}
    ]
}
FILES = {
    "deny.sh": '#!/bin/sh\ntouch "$CLAUDE_PROJECT_DIR/ran"\necho no >&2\nexit 2\n',
    "commands/fix.md": "Fix it.",
    "agents/reviewer.md": "---\nname: reviewer\ndescription: reviews\n---\nYou review.",
    "skills/look/SKILL.md": "---\nname: look\ndescription: looks\n---\nLook.",
}


async def pending_of(session: AmplifierSession) -> list[TrustDecision]:
    found = await session.coordinator.collect_contributions("trust.pending")
    return [decision for part in found if isinstance(part, list) for decision in part]


async def output_of(session: AmplifierSession, run: Run) -> str:
    return (await run(session, "bash", command="ls")).get_serialized_output()


@pytest.fixture
def project(work: Path, write_plugin: WritePlugin) -> Path:
    """A project with a plugin."""
    write_plugin(DENYING, FILES, at=work / ".amplifier/plugins/guard")
    return work


async def test_nothing_of_a_project_is_used_before_it_is_trusted(
    project: Path, open_session: OpenSession, run: Run
) -> None:
    shown = MockDisplaySystem()
    async with open_session(
        {}, "hello", tools=[MockTool("bash", "done")], display_system=shown
    ) as session:
        await session.execute("hi")

        assert await output_of(session, run) == "done"
        for channel in ("agents", "skills.folders"):
            assert await session.coordinator.collect_contributions(channel) == []
        contributed = await session.coordinator.collect_contributions("cli.commands")
        ((command,),) = cast("list[list[SessionCommand]]", contributed)
        assert (command.name, command.source) == ("fix", "plugin:guard")
        with pytest.raises(
            CommandError,
            match=r"guard/commands/fix.md .* is not trusted .* run 'amplifier trust'",
        ):
            await command.make("")
        assert [decision.trusted for decision in await pending_of(session)] == [False]
    assert not (project / "ran").exists()
    assert "nobody trusted the plugins of this folder yet" in shown.messages[0].message


@pytest.mark.process
async def test_what_was_trusted_is_used_and_changed_content_is_not(
    project: Path, open_session: OpenSession, run: Run
) -> None:
    async with open_session({}) as session:
        (decision,) = await pending_of(session)
    TrustStore.in_home().grant(decision)

    async with open_session({}, tools=[MockTool("bash", "done")]) as session:
        (project / ".amplifier/plugins/guard/deny.sh").write_text(
            "#!/bin/sh\ntouch $CLAUDE_PROJECT_DIR/evil\n"
        )
        assert "plugin guard: no" in await output_of(session, run)
        assert len(await session.coordinator.collect_contributions("agents")) == 1
        (folders,) = await session.coordinator.collect_contributions("skills.folders")
        assert isinstance(folders, list)
        assert Path(folders[0]["path"], "look/SKILL.md").read_text().endswith("Look.")
        assert not Path(folders[0]["path"]).is_relative_to(project)

    with pytest.raises(
        ModuleLoadError,
        match=r"it changed since it was trusted.*'amplifier trust revoke plugins'",
    ):
        await refused(open_session({}, tools=[MockTool("bash", "done")]))
    assert not (project / "evil").exists()


async def test_without_hooks_that_were_trusted_no_session_begins(
    work: Path, open_session: OpenSession
) -> None:
    write_guard(work, "sh tools/check.sh")
    async with open_session({}) as session:
        TrustStore.in_home().grant((await pending_of(session))[0])
    (work / ".claude/settings.json").unlink()

    with pytest.raises(
        ModuleLoadError, match=r"it was trusted, and is gone: '\.claude/settings\.json'"
    ):
        await refused(open_session({}))


async def test_what_was_trusted_kind_by_kind_is_used_kind_by_kind(
    project: Path, open_session: OpenSession
) -> None:
    for kind in ("commands", "agents"):
        (project / ".claude" / kind).mkdir(parents=True)
        (project / ".claude" / kind / "mine.md").write_text(
            "---\ndescription: d\n---\nGo."
        )
    store = TrustStore.in_home()
    async with open_session({}) as session:
        assert sorted(decision.kind for decision in await pending_of(session)) == [
            "agents",
            "commands",
            "plugins",
        ]

    for kind, names in (("commands", ["mine"]), ("plugins", ["fix", "mine"])):
        store.grant(store.require(project, kind, PROJECT_FILES[kind]))
        async with open_session({}) as session:
            (commands,) = await session.coordinator.collect_contributions(
                "cli.commands"
            )
            assert isinstance(commands, list)
            used = [
                command.name
                for command in commands
                if "not trusted" not in command.description
            ]
            assert sorted(used) == names
            assert "agents" in [decision.kind for decision in await pending_of(session)]


async def test_the_copy_is_gone_with_the_session(
    project: Path, tmp_path: Path, open_session: OpenSession
) -> None:
    async with open_session({}) as session:
        TrustStore.in_home().grant((await pending_of(session))[0])
    async with open_session({}):
        assert list(tmp_path.glob("amplifier-hooks-*/project"))

    assert not list(tmp_path.glob("amplifier-hooks-*"))


@pytest.mark.process
@pytest.mark.parametrize(
    "quoted", ['"$CLAUDE_PROJECT_DIR"/', "${CLAUDE_PROJECT_DIR}/", "./", ""]
)
async def test_files_named_by_project_settings_run_as_trusted(
    work: Path, open_session: OpenSession, run: Run, quoted: str
) -> None:
    (work / "tools").mkdir()
    script = work / "tools/check.sh"
    script.write_text("echo trusted words >&2; exit 2\n")
    hooks: JSONValue = {
        "PreToolUse": [
            {"hooks": [{"type": "command", "command": f"sh {quoted}tools/check.sh"}]}
        ]
    }
    (work / ".claude").mkdir()
    (work / ".claude/settings.json").write_text(
        json.dumps({"permissions": {}, "hooks": hooks})
    )
    async with open_session({}) as session:
        (decision,) = await pending_of(session)
    assert "tools/check.sh" in decision.items
    TrustStore.in_home().grant(decision)

    async with open_session({}, tools=[MockTool("bash", "done")]) as session:
        script.write_text("exit 0\n")
        assert "trusted words" in await output_of(session, run)


SPELLINGS = (
    'sh "$(git rev-parse --show-toplevel 2>/dev/null || pwd)/tools/check.sh"',
    'sh "${NOWHERE:-.}/tools/check.sh"',
    "cd tools && sh ./check.sh",
    "'tools/my check.sh'",
    "sh tools/outer.sh",
    "python3 tools/outer.py",
)


async def refused(opening: AmplifierSession) -> None:
    """Open a session that is refused."""
    async with opening:
        pass


def write_guard(work: Path, command: str) -> None:
    """Write a project's settings with a hook that guards, and its scripts."""
    (work / "tools").mkdir()
    texts = {
        "check.sh": "echo trusted words >&2; exit 2\n",
        "my check.sh": "#!/bin/sh\n. ./tools/check.sh\n",
        "outer.sh": '. "$(dirname "$0")/check.sh"\n',
        "outer.py": "import os, sys\nsys.exit(os.system('sh tools/check.sh') >> 8)\n",
    }
    for name, text in texts.items():
        (work / "tools" / name).write_text(text)
        (work / "tools" / name).chmod(0o755)
    hooks: JSONValue = {
        "PreToolUse": [{"hooks": [{"type": "command", "command": command}]}]
    }
    (work / ".claude").mkdir()
    (work / ".claude/settings.json").write_text(json.dumps({"hooks": hooks}))


@pytest.mark.process
@pytest.mark.parametrize("command", SPELLINGS)
async def test_changed_script_runs_in_no_session(
    work: Path, open_session: OpenSession, run: Run, command: str
) -> None:
    write_guard(work, command)
    async with open_session({}) as session:
        (decision,) = await pending_of(session)
    TrustStore.in_home().grant(decision)

    async with open_session({}, tools=[MockTool("bash", "done")]) as session:
        assert "trusted words" in await output_of(session, run)
        (work / "tools/check.sh").write_text('touch "$CLAUDE_PROJECT_DIR/evil"\n')
        assert "done" not in await output_of(session, run)
        assert not (work / "evil").exists()

    with pytest.raises(ModuleLoadError, match="it changed since it was trusted"):
        await refused(open_session({}, tools=[MockTool("bash", "done")]))
    assert not (work / "evil").exists()


@pytest.mark.process
async def test_configured_hook_runs_no_script_changed_since_trust(
    work: Path, open_session: OpenSession, run: Run
) -> None:
    write_guard(work, "cd tools && ./check.sh")
    async with open_session({}) as session:
        TrustStore.in_home().grant((await pending_of(session))[0])
    config: JSONValue = {
        "hooks": [{"event": "tool:pre", "command": ["sh", "tools/check.sh"]}],
        "claude_folder": False,
    }

    async with open_session(config, tools=[MockTool("bash", "done")]) as session:
        assert "trusted words" in await output_of(session, run)
        (work / "tools/check.sh").write_text("exit 0\n")
        assert "changed since it was trusted" in await output_of(session, run)


async def test_hook_with_undeterminable_script_does_not_run(
    work: Path, open_session: OpenSession, run: Run
) -> None:
    write_guard(work, 'sh "$SCRIPT"')
    async with open_session({}, tools=[MockTool("bash", "done")]) as session:
        (decision,) = await pending_of(session)

    assert not decision.can_be_trusted
    assert "put together" in decision.reason


@pytest.mark.process
async def test_a_store_of_trust_that_cannot_be_read_lets_no_hook_run(
    home: Path, work: Path, open_session: OpenSession, run: Run
) -> None:
    config: JSONValue = {"hooks": [{"event": "tool:pre", "command": "true"}]}
    async with open_session(config, tools=[MockTool("bash", "done")]) as session:
        assert await output_of(session, run) == "done"
        (home / "trust").mkdir(mode=0o700, parents=True, exist_ok=True)
        (home / "trust/projects.json").write_text("{")
        assert "what was trusted cannot be read" in await output_of(session, run)


async def test_projects_claude_folder_is_left_alone_where_wanted(
    work: Path, open_session: OpenSession
) -> None:
    (work / ".claude/commands").mkdir(parents=True)
    (work / ".claude/commands/go.md").write_text("Go.")
    async with open_session({"claude_folder": False}) as session:
        assert await pending_of(session) == []
    async with open_session({}) as session:
        assert len(await pending_of(session)) == 1


async def test_a_link_in_a_project_does_not_make_a_plugin_the_persons(
    work: Path,
    tmp_path: Path,
    write_plugin: WritePlugin,
    open_session: OpenSession,
    run: Run,
) -> None:
    write_plugin(DENYING, FILES, at=tmp_path / "elsewhere" / "guard")
    (work / ".amplifier").mkdir()
    (work / ".amplifier/plugins").symlink_to(tmp_path / "elsewhere")
    async with open_session(
        {"plugins": [".amplifier/plugins/guard"]}, tools=[MockTool("bash", "done")]
    ) as session:
        assert await output_of(session, run) == "done"
        assert not (await pending_of(session))[0].can_be_trusted
    assert not (work / "ran").exists()


@pytest.mark.process
async def test_the_persons_own_plugins_need_no_trust(
    home: Path,
    work: Path,
    write_plugin: WritePlugin,
    open_session: OpenSession,
    run: Run,
) -> None:
    write_plugin(DENYING, FILES, at=home / "plugins" / "guard")
    async with open_session({}, tools=[MockTool("bash", "done")]) as session:
        assert "plugin guard: no" in await output_of(session, run)
        (commands,) = await session.coordinator.collect_contributions("cli.commands")

    assert isinstance(commands, list)
    assert [
        command.name for command in commands if isinstance(command, SessionCommand)
    ] == ["fix"]


async def test_other_folders_of_plugins_looked_into_where_they_named(
    home: Path, tmp_path: Path, write_plugin: WritePlugin, open_session: OpenSession
) -> None:
    write_plugin(None, FILES, at=home / "plugins" / "guard")
    write_plugin(
        None, {"commands/other.md": "x"}, name="other", at=tmp_path / "mine" / "other"
    )
    async with open_session({"plugin_dirs": [str(tmp_path / "mine")]}) as session:
        (commands,) = await session.coordinator.collect_contributions("cli.commands")

    assert isinstance(commands, list)
    assert [command.name for command in commands] == ["other"]


@pytest.mark.process
async def test_what_a_projects_plugin_says_is_marked(
    work: Path, write_plugin: WritePlugin, open_session: OpenSession
) -> None:
    hooks: JSONValue = {
        "SessionStart": [{"hooks": [{"type": "command", "command": "echo obey me"}]}]
    }
    write_plugin(hooks, at=work / ".amplifier/plugins/guard")
    async with open_session({}) as session:
        TrustStore.in_home().grant((await pending_of(session))[0])
    async with open_session({}, "hello") as session:
        await session.execute("hi")
        first = (await session.coordinator.context.get_messages())[0]

    assert str(first["content"]).startswith("<untrusted-content")
    assert "obey me" in str(first["content"])


@pytest.mark.parametrize("files", [{}, {"notes.txt": "x"}], ids=["empty", "other"])
async def test_a_folder_that_is_named_and_is_no_plugin_ends_the_start(
    tmp_path: Path, open_session: OpenSession, files: dict[str, str]
) -> None:
    folder = tmp_path / "none"
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    session = open_session({"plugins": [str(folder)]})
    with pytest.raises(Exception, match="is no plugin folder"):
        await session.initialize()
    await session.cleanup()


async def test_unreadable_hook_stops_start_and_bad_command_does_not(
    write_plugin: WritePlugin, open_session: OpenSession
) -> None:
    shown = MockDisplaySystem()
    broken = write_plugin(
        None, {"commands/ok.md": "x", "commands/bad name.md": "x"}, name="broken"
    )
    async with open_session(
        {"plugins": [str(broken)]}, "hello", display_system=shown
    ) as session:
        await session.execute("hi")
        (commands,) = await session.coordinator.collect_contributions("cli.commands")
    assert isinstance(commands, list)
    assert [command.name for command in commands] == ["ok"]
    assert "is no name for a command" in shown.messages[0].message

    unguarded = write_plugin(
        {"PreToolUse": [{"hooks": [{"type": "http", "url": "x"}]}]}, name="unguarded"
    )
    session = open_session({"plugins": [str(unguarded)]})
    with pytest.raises(Exception, match="'command' or 'prompt'; got 'http'"):
        await session.initialize()
    await session.cleanup()


@pytest.mark.parametrize("text", ["{", '{"hooks": {"PreToolUse": 5}}'])
async def test_settings_that_cannot_be_read_named_where_they_stand(
    work: Path, open_session: OpenSession, text: str
) -> None:
    settings = work / ".claude/settings.json"
    settings.parent.mkdir()
    settings.write_text(text)
    async with open_session({}) as session:
        TrustStore.in_home().grant((await pending_of(session))[0])

    with pytest.raises(ModuleLoadError) as caught:
        await refused(open_session({}))

    assert str(settings) in str(caught.value)


async def test_what_has_no_effect_here_is_reported_once(
    work: Path, open_session: OpenSession
) -> None:
    settings = work / ".claude/settings.json"
    settings.parent.mkdir()
    settings.write_text('{"permissions": {"allow": ["Bash"]}}')
    shown = MockDisplaySystem()
    async with open_session({}) as session:
        TrustStore.in_home().grant((await pending_of(session))[0])

    async with open_session({}, "hello", display_system=shown) as session:
        await session.execute("go")

    text = "\n".join(str(message) for message in shown.messages)
    assert text.count("'permissions' have no effect here") == 1
    assert str(settings) in text


def agree(folder: Path) -> TrustStore:
    """Agree to a plugin as it is, as `amplifier plugin add` does."""
    store = TrustStore.in_home()
    store.grant(evaluate_plugin(folder, store))
    return store


@pytest.mark.process
async def test_a_plugin_that_was_agreed_to_is_used_as_it_was(
    home: Path, open_session: OpenSession, run: Run, write_plugin: WritePlugin
) -> None:
    folder = write_plugin(DENYING, FILES, at=home / "plugins/guard")
    agree(folder)
    tools = [MockTool("bash", "done")]
    async with open_session({}, "hello", tools=tools) as session:
        assert "no" in await output_of(session, run)

    (folder / "deny.sh").write_text("#!/bin/sh\nexit 0\n")
    for config in ({}, {"plugin_dirs": [], "plugins": [str(folder)]}):
        with pytest.raises(ModuleLoadError, match="amplifier plugin update guard"):
            async with open_session(config, tools=tools):
                pass


@pytest.mark.process
async def test_what_a_hook_leaves_beside_it_is_no_change(
    home: Path, open_session: OpenSession, run: Run, write_plugin: WritePlugin
) -> None:
    files = {
        **FILES,
        "deny.sh": '#!/bin/sh\ntouch "$CLAUDE_PLUGIN_ROOT/state" && echo noted >&2\nexit 2\n',
    }
    folder = write_plugin(DENYING, files, at=home / "plugins/guard")
    agree(folder)
    (folder / "hooks/__pycache__").mkdir()
    (folder / "hooks/__pycache__/a.pyc").write_bytes(b"x")
    (folder / "__pycache__").mkdir()

    for _ in range(2):
        async with open_session({}, "hello", tools=[MockTool("bash", "x")]) as session:
            assert "noted" in await output_of(session, run)
    assert not (folder / "state").exists()


@pytest.mark.parametrize(
    "files",
    [{".mcp.json": "{}"}, {".claude-plugin/plugin.json": '{"mcpServers": {"x": {}}}'}],
)
async def test_servers_of_a_plugin_elsewhere_are_not_started_and_reported(
    home: Path,
    tmp_path: Path,
    open_session: OpenSession,
    write_plugin: WritePlugin,
    files: dict[str, str],
) -> None:
    shown = MockDisplaySystem()
    folder = write_plugin({}, files, at=tmp_path / "elsewhere")
    config = {"plugins": [str(folder)]}
    async with open_session(config, "hello", display_system=shown) as session:
        await session.execute("hi")
    assert "its MCP servers are not started" in shown.messages[0].message

    shown = MockDisplaySystem()
    write_plugin({}, files, at=home / "plugins/here")
    async with open_session({}, "hello", display_system=shown) as session:
        await session.execute("hi")
    assert shown.messages == []


async def test_a_plugin_that_was_agreed_to_and_is_gone_is_missed(
    home: Path, open_session: OpenSession, write_plugin: WritePlugin
) -> None:
    folder = write_plugin(DENYING, FILES, at=home / "plugins/guard")
    agree(folder)
    folder.rename(folder.with_name(".old-1a2b3c4d-guard"))

    with pytest.raises(ModuleLoadError, match="amplifier plugin remove guard"):
        async with open_session({}):
            pass


async def test_what_is_left_of_a_plugin_is_no_plugin_to_pass_over(
    home: Path, open_session: OpenSession, write_plugin: WritePlugin
) -> None:
    folder = write_plugin(DENYING, FILES, at=home / "plugins/guard")
    agree(folder)
    for part in (".claude-plugin", "agents", "commands", "hooks", "skills"):
        shutil.rmtree(folder / part, ignore_errors=True)

    with pytest.raises(ModuleLoadError, match="it is not what you agreed to"):
        async with open_session({}):
            pass


async def test_a_damaged_store_lets_no_plugin_through(
    home: Path, open_session: OpenSession, write_plugin: WritePlugin
) -> None:
    agree(write_plugin(DENYING, FILES, at=home / "plugins/guard"))
    (home / "trust/projects.json").write_text("[]")

    with pytest.raises(ModuleLoadError, match="what you agreed to cannot be read"):
        async with open_session({"claude_folder": False}):
            pass


async def test_folders_with_a_dot_are_no_plugins(
    home: Path, open_session: OpenSession, run: Run, write_plugin: WritePlugin
) -> None:
    for name in (".staged-1a2b3c4d", ".removed-1a2b3c4d-guard"):
        write_plugin(DENYING, FILES, at=home / "plugins" / name)
    tools = [MockTool("bash", "done")]
    async with open_session({}, "hello", tools=tools) as session:
        assert await output_of(session, run) == "done"
