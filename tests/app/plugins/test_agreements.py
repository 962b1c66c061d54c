"""What a person agreed to is what is used: whoever changes it afterwards, and wherever a program was killed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from amplifier.app.directories import AppDirs
from amplifier.app.fetched.lock import FetchedLock
from amplifier.app.fetched.swap import FetchedFolders
from amplifier.app.plugins.installation import PluginChange, PluginInstaller
from amplifier_kit.claude_plugins import evaluate_trust, lost_plugins, own_plugins
from amplifier_kit.trust import TrustStore
from amplifier_sdk.errors import AmplifierError, ConfigError
from amplifier_sdk.jsontypes import JSONValue
from tests.app.projects import write

GUARD = json.dumps({"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]})


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    """A plugin on this machine, with a hook."""
    write(tmp_path / "careful/hooks/hooks.json", GUARD)
    return tmp_path / "careful"


@pytest.fixture
def installer(dirs: AppDirs) -> PluginInstaller:
    """The one of the person's own folder."""
    return PluginInstaller.of(dirs)


@pytest.fixture
def place(dirs: AppDirs) -> Path:
    """Where the plugin is once it was added."""
    return dirs.home / "plugins/careful"


def yes(_: Sequence[PluginChange]) -> bool:
    return True


def server(installer: PluginInstaller, folder: Path, entry: JSONValue) -> str:
    """What is shown of a plugin's server."""
    write(folder / ".mcp.json", json.dumps({"clock": entry}))
    with installer.look(str(folder)) as (change,):
        (shown,) = [each for each in change.staged.abilities if each.kind == "server"]
    return shown.detail


def test_a_link_in_the_place_of_a_plugin_is_refused(
    installer: PluginInstaller, plugin: Path, place: Path, tmp_path: Path
) -> None:
    installer.add(str(plugin), (), yes)
    place.rename(tmp_path / "taken")
    write(tmp_path / "other/hooks/hooks.json", GUARD)
    place.symlink_to(tmp_path / "other")

    assert "a link stands in its place" in evaluate_trust(place).refusal
    place.unlink()
    place.symlink_to(tmp_path / "nowhere")
    assert lost_plugins() == ["careful"]


def test_a_part_that_is_gone_is_a_change(
    installer: PluginInstaller, plugin: Path, place: Path
) -> None:
    write(plugin / "commands/a.md", "Do it.")
    installer.add(str(plugin), (), yes)
    shutil.rmtree(place / "hooks")
    assert "hooks/hooks.json" in evaluate_trust(place).refusal

    shutil.rmtree(plugin / "hooks")
    installer.update((), yes)
    assert evaluate_trust(place).refusal == ""


def test_a_person_s_own_link_is_theirs(place: Path, plugin: Path) -> None:
    place.parent.mkdir(parents=True)
    place.symlink_to(plugin)
    assert [own.refusal for own in own_plugins()] == [""]


@pytest.mark.parametrize(
    ("owner", "step"),
    [
        (TrustStore, "grant"),
        (FetchedFolders, "put"),
        (FetchedLock, "change"),
        (FetchedFolders, "_beside"),
    ],
)
def test_a_killed_addition_is_refused_or_as_it_was_agreed_to(
    installer: PluginInstaller,
    plugin: Path,
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    owner: type,
    step: str,
) -> None:
    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(owner, step, killed)
        with pytest.raises(KeyboardInterrupt):
            installer.add(str(plugin), (), yes)

    # Theirs without an agreement it would be whatever became of it.
    assert all(own.refusal or own.contents for own in own_plugins())
    installer.add(str(plugin), (), yes, force=True)
    assert evaluate_trust(place).contents
    assert lost_plugins() == []


def test_an_update_that_fails_leaves_what_was_agreed_to(
    installer: PluginInstaller,
    plugin: Path,
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full(*_: object) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(FetchedFolders, "put", full)
    with pytest.raises(OSError, match="full"):
        installer.add(str(plugin), (), yes)
    assert TrustStore.in_home().list() == ()

    monkeypatch.undo()
    installer.add(str(plugin), (), yes)
    write(plugin / "more.sh", "true")
    monkeypatch.setattr(FetchedFolders, "put", full)
    with pytest.raises(OSError, match="full"):
        installer.update((), yes)
    assert evaluate_trust(place).refusal == ""


def test_all_that_a_server_is_started_with_is_shown(
    installer: PluginInstaller, plugin: Path
) -> None:
    entry: Mapping[str, JSONValue] = {
        "command": "node",
        "args": ["a b", "${TOKEN}"],
        "cwd": "./sub",
        "env": {"NODE_OPTIONS": "--require ./x.js"},
    }
    assert server(installer, plugin, dict(entry)) == (
        "starts: node 'a b' ${TOKEN}; in the folder: ./sub;"
        " with: 'NODE_OPTIONS=--require ./x.js'; gets your TOKEN"
    )
    assert server(installer, plugin, {"url": "https://h", "headers": {"A": "b"}}) == (
        "connects to: https://h; sends: A=b"
    )


def test_words_that_are_parted_otherwise_are_another_command(
    installer: PluginInstaller, plugin: Path
) -> None:
    one = server(installer, plugin, {"command": "sh", "args": ["-c", "a b"]})
    other = server(installer, plugin, {"command": "sh", "args": ["-c", "a", "b"]})
    assert one != other


@pytest.mark.parametrize("named", ["\0", "\ud800", "x" * 5000, "hooks/hooks.json/x"])
def test_a_path_that_can_be_none_is_a_problem(
    installer: PluginInstaller, plugin: Path, named: str
) -> None:
    entry = {"name": "a", "source": named}
    write(plugin / ".claude-plugin/marketplace.json", json.dumps({"plugins": [entry]}))
    with pytest.raises(ConfigError, match="leads out"), installer.look(str(plugin)):
        pass

    (plugin / ".claude-plugin/marketplace.json").unlink()
    manifest = {"name": "a", "commands": named, "mcpServers": named}
    write(plugin / ".claude-plugin/plugin.json", json.dumps(manifest))
    with pytest.raises(ConfigError, match="a path to"), installer.look(str(plugin)):
        pass


def test_a_matcher_that_is_nested_too_deep_is_a_problem(
    installer: PluginInstaller, plugin: Path
) -> None:
    group = {"matcher": "(" * 5000, "hooks": []}
    write(plugin / "hooks/hooks.json", json.dumps({"PreToolUse": [group]}))
    with pytest.raises(AmplifierError, match="nested too deep"):
        installer.add(str(plugin), (), yes)
