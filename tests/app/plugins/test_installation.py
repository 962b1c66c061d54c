"""Plugins are used as a person agreed to them: what they may do is shown first, and asked about when it changes."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs
import pytest

from amplifier.app.directories import AppDirs
from amplifier.app.fetched.lock import FetchedLock
from amplifier.app.fetched.swap import FetchedFolders
from amplifier.app.plugins.details import list_plugins, show_plugin
from amplifier.app.plugins.installation import PluginChange, PluginInstaller
from amplifier.app.plugins.marketplaces import read_marketplace
from amplifier_kit.claude_plugins import own_plugins
from amplifier_kit.files.documents import read_mapping
from amplifier_kit.trust import TrustStore
from amplifier_sdk.errors import AmplifierError, ConfigError
from amplifier_sdk.jsontypes import JSONValue
from tests.app.projects import write
from tests.app.repositories import commit

DENY = "sh ${CLAUDE_PLUGIN_ROOT}/deny.sh"
SKILL = "---\nname: tides\ndescription: Knows the tides.\n---\nAsk the moon.\n"


def hooks(command: str = DENY) -> str:
    hook: JSONValue = {"type": "command", "command": command}
    return json.dumps({"PreToolUse": [{"matcher": "Bash", "hooks": [hook]}]})


FILES = {
    ".claude-plugin/plugin.json": '{"name": "careful", "version": "1.0"}',
    "hooks/hooks.json": hooks(),
    "deny.sh": "exit 2\n",
    "commands/fix.md": "---\nallowed-tools: Bash(git:*)\n---\n!`git diff`\n",
    "agents/critic.md": "---\nname: critic\ndescription: d\ntools: Read\n---\nYou read.",
    "skills/tides/SKILL.md": SKILL,
    ".mcp.json": '{"clock": {"command": "uvx", "args": ["${TOKEN}"]}}',
}


@attrs.define
class Person:
    """Answers, and remembers what was shown."""

    says: bool = True
    seen: list[PluginChange] = attrs.field(factory=list)

    def __call__(self, changes: Sequence[PluginChange]) -> bool:
        self.seen += changes
        return self.says


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    """A plugin on this machine."""
    return make(tmp_path / "careful", FILES)


@pytest.fixture
def installer(dirs: AppDirs) -> PluginInstaller:
    """The one of the person's own folder."""
    return PluginInstaller.of(dirs)


def make(folder: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        write(folder / name, text)
    return folder


def market(folder: Path, *entries: JSONValue) -> Path:
    listed = json.dumps({"name": "m", "plugins": list(entries)})
    return write(folder / ".claude-plugin/marketplace.json", listed).parent.parent


def refusals() -> dict[str, str]:
    return {own.folder.name: own.refusal for own in own_plugins()}


def test_a_plugin_is_added_with_what_a_person_agreed_to(
    installer: PluginInstaller, plugin: Path, dirs: AppDirs
) -> None:
    person = Person()
    installer.add(str(plugin), (), person)

    reported = [(each.kind, each.name, each.detail) for each in person.seen[0].gained]
    assert reported == [
        ("agent", "critic", "tools: read_file"),
        ("command", "/fix", "runs: git diff; unasked: Bash(git:*)"),
        ("hook", "PreToolUse Bash", f"runs: {DENY}"),
        ("server", "clock", "starts: uvx ${TOKEN}; gets your TOKEN"),
        ("skill", "tides", "Knows the tides."),
    ]
    (shown,) = list_plugins(dirs)
    assert (shown.name, shown.level, shown.state) == ("careful", "added", "used")
    assert shown.source == str(plugin)
    modules = read_mapping(dirs.home / "settings.yaml")["modules"]
    assert modules == {
        "hooks": [{"module": "hooks-shell"}],
        "tools": [{"module": "tool-skills"}, {"module": "tool-mcp"}],
    }


def test_without_a_yes_nothing_is_there(
    installer: PluginInstaller, plugin: Path, dirs: AppDirs
) -> None:
    with pytest.raises(AmplifierError, match="Nobody agreed"):
        installer.add(str(plugin), (), Person(says=False))

    assert list_plugins(dirs) == []
    assert TrustStore.in_home().list() == ()
    assert not (dirs.home / "settings.yaml").exists()
    assert not (dirs.home / "plugins/careful").exists()


@pytest.mark.parametrize(
    ("name", "text"),
    [("deny.sh", "exit 0\n"), ("hooks/more.sh", "rm x\n"), ("new.md", "x")],
)
def test_a_plugin_that_changed_since_is_refused(
    installer: PluginInstaller, plugin: Path, dirs: AppDirs, name: str, text: str
) -> None:
    installer.add(str(plugin), (), Person())
    assert refusals() == {"careful": ""}

    write(dirs.home / "plugins/careful" / name, text)
    assert f"'{name}'" in refusals()["careful"]
    assert show_plugin("careful", dirs).state == "refused"

    person = Person()
    installer.update((), person)
    assert [change.name for change in person.seen] == ["careful"]
    assert refusals() == {"careful": ""}


def test_an_update_shows_what_a_plugin_may_do_besides(
    installer: PluginInstaller, plugin: Path
) -> None:
    installer.add(str(plugin), (), Person())
    assert [change.is_changed for change in installer.update((), Person())] == [False]

    write(plugin / "hooks/hooks.json", hooks("curl https://evil.example"))
    person = Person(says=False)
    with pytest.raises(AmplifierError, match="Nobody agreed"):
        installer.update(("careful",), person)

    (change,) = person.seen
    assert [each.detail for each in change.gained] == [
        "runs: curl https://evil.example"
    ]
    assert [each.detail for each in change.lost] == [f"runs: {DENY}"]
    assert change.changed == ("hooks/hooks.json",)
    assert "evil" not in _installed_hooks(installer)
    assert refusals() == {"careful": ""}

    installer.update((), Person())
    assert "evil" in _installed_hooks(installer)
    assert refusals() == {"careful": ""}


def _installed_hooks(installer: PluginInstaller) -> str:
    folder = FetchedFolders(installer.lock).folder
    return (folder / "careful/hooks/hooks.json").read_text()


def test_a_script_that_changed_is_shown_by_its_name(
    installer: PluginInstaller, plugin: Path
) -> None:
    installer.add(str(plugin), (), Person())
    write(plugin / "deny.sh", "exit 0\n")

    (change,) = installer.update((), Person(), dry_run=True)
    assert (change.gained, change.lost, change.changed) == ((), (), ("deny.sh",))


def test_no_list_of_texts_hides_a_script_that_changed(
    installer: PluginInstaller, plugin: Path
) -> None:
    installer.add(str(plugin), (), Person())
    for number in range(30):
        write(plugin / f"a{number}.md", "x")
    write(plugin / "zz.sh", "evil\n")

    (change,) = installer.update((), Person(), dry_run=True)
    assert change.changed[0] == "zz.sh"


def test_a_removed_plugin_leaves_nothing(
    installer: PluginInstaller, plugin: Path, dirs: AppDirs
) -> None:
    installer.add(str(plugin), (), Person())
    installer.remove("careful")

    assert list_plugins(dirs) == []
    assert TrustStore.in_home().list() == ()
    with pytest.raises(ConfigError, match="no such plugin is installed"):
        installer.remove("careful")


def test_what_was_agreed_to_can_be_forgotten_without_files(
    installer: PluginInstaller, plugin: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installer.add(str(plugin), (), Person())
    with monkeypatch.context() as patched:
        patched.setattr(TrustStore, "revoke", _killed)
        with pytest.raises(KeyboardInterrupt):
            installer.remove("careful")
    installer.remove("careful")
    assert TrustStore.in_home().list() == ()


def _killed(*_: object) -> bool:
    raise KeyboardInterrupt


def test_an_update_that_was_killed_is_asked_about_anew(
    installer: PluginInstaller, plugin: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installer.add(str(plugin), (), Person())
    write(plugin / "deny.sh", "exit 0\n")
    with monkeypatch.context() as patched:
        patched.setattr(FetchedFolders, "put", _killed)
        with pytest.raises(KeyboardInterrupt):
            installer.update((), Person())
    assert refusals()["careful"]

    person = Person()
    installer.update((), person)
    assert len(person.seen) == 1
    assert refusals() == {"careful": ""}


def test_a_name_is_taken_once(
    installer: PluginInstaller, plugin: Path, tmp_path: Path, dirs: AppDirs
) -> None:
    installer.add(str(plugin), (), Person())
    other = make(tmp_path / "other", {**FILES, "deny.sh": "exit 0\n"})
    with pytest.raises(ConfigError, match="amplifier plugin update careful"):
        installer.add(str(other), (), Person())

    write(dirs.home / "plugins/mine/commands/a.md", "Mine.")
    make(tmp_path / "mine", {"commands/a.md": "Not mine."})
    with pytest.raises(ConfigError, match="it is there already"):
        installer.add(str(tmp_path / "mine"), (), Person())
    assert (dirs.home / "plugins/mine/commands/a.md").read_text() == "Mine."


@pytest.mark.process
def test_a_repository_is_noted_with_its_commit(
    installer: PluginInstaller, tmp_path: Path, dirs: AppDirs
) -> None:
    first = commit(tmp_path / "repo", FILES)
    installer.add(f"git+file://{tmp_path}/repo", (), Person())
    assert show_plugin("careful", dirs).commit == first

    second = commit(tmp_path / "repo", {"deny.sh": "exit 1\n"})
    installer.update((), Person())
    assert show_plugin("careful", dirs).commit == second


def test_a_marketplace_offers_plugins_by_name(
    installer: PluginInstaller, tmp_path: Path, dirs: AppDirs
) -> None:
    root = market(
        tmp_path / "market",
        {"name": "careful", "source": "./plugins/careful"},
        {"name": "tide_table", "source": "./plugins/tides", "version": "2"},
    )
    make(root / "plugins/careful", FILES)
    make(root / "plugins/tides", {"skills/tides/SKILL.md": SKILL})
    with pytest.raises(ConfigError, match=r"2 plugins.*: careful, tide-table"):
        installer.add(str(root), (), Person())
    with pytest.raises(ConfigError, match=r"no such plugin.*'careful'"):
        installer.add(str(root), ("carefull",), Person())

    installer.add(str(root), ("tide_table",), Person())
    shown = show_plugin("tide-table", dirs)
    assert (shown.version, [each.name for each in shown.abilities]) == ("2", ["tides"])
    assert [change.is_changed for change in installer.update((), Person())] == [False]


@pytest.mark.process
def test_a_published_marketplace_s_entries_need_not_all_work(
    installer: PluginInstaller, tmp_path: Path, dirs: AppDirs
) -> None:
    lua: JSONValue = {"name": "lua", "strict": False, "lspServers": {"lua": {}}}
    root = market(
        tmp_path / "market",
        {"name": "Explanatory Output Style", "source": "./plugins/careful"},
        {"name": "npm", "source": {"source": "npm", "package": "x"}},
        {"name": "///", "source": "./"},
        lua,
    )
    make(root / "plugins/careful", FILES)

    installer.add(str(root), ("Explanatory Output Style",), Person())
    assert show_plugin("explanatory-output-style", dirs).state == "used"
    with pytest.raises(ConfigError, match="its source is none of a folder"):
        installer.add(str(root), ("npm",), Person())
    with pytest.raises(ConfigError, match="nothing that works here, only lspServers"):
        installer.add(str(root), ("lua",), Person())


def test_a_large_marketplace_is_listed_apart(
    installer: PluginInstaller, tmp_path: Path
) -> None:
    entries = [{"name": f"p{number}", "source": "./x"} for number in range(300)]
    root = market(tmp_path / "market", *entries)
    with pytest.raises(ConfigError, match=r"300 plugins.*--dry-run' lists them"):
        installer.add(str(root), (), Person())


@pytest.mark.process
def test_a_marketplace_may_name_a_repository_of_its_own(
    installer: PluginInstaller, tmp_path: Path, dirs: AppDirs
) -> None:
    own = commit(tmp_path / "repo", FILES)
    source: JSONValue = {"source": "url", "url": f"file://{tmp_path}/repo", "sha": own}
    root = market(tmp_path / "market", {"name": "careful", "source": source})

    installer.add(str(root), (), Person())
    assert show_plugin("careful", dirs).commit == own


@pytest.mark.process
def test_a_marketplace_s_repository_is_shown(
    installer: PluginInstaller, tmp_path: Path
) -> None:
    commit(tmp_path / "repo", FILES)
    address = f"file://{tmp_path}/repo"
    source: JSONValue = {"source": "url", "url": address}
    root = market(tmp_path / "market", {"name": "careful", "source": source})

    with installer.look(str(root)) as (change,):
        assert change.staged.repository == f"git+{address}"
        assert change.staged.source == str(root)


def test_an_entry_that_is_all_of_a_plugin_leaves_the_rest_out(
    installer: PluginInstaller, tmp_path: Path, dirs: AppDirs
) -> None:
    root = market(
        make(tmp_path / "market", {**FILES, "skills/x/SKILL.md": SKILL}),
        {"name": "x", "source": "./", "strict": False, "skills": ["./skills/x"]},
    )
    installer.add(str(root), (), Person())
    kinds = [each.kind for each in show_plugin("x", dirs).abilities]
    assert kinds == ["skill"]
    assert not (dirs.home / "plugins/x/hooks/hooks.json").exists()


@pytest.mark.parametrize("files", [{"SKILL.md": SKILL}, {"tides/SKILL.md": SKILL}])
def test_a_folder_of_skills_is_a_plugin(
    installer: PluginInstaller, tmp_path: Path, dirs: AppDirs, files: dict[str, str]
) -> None:
    installer.add(str(make(tmp_path / "sea", files)), (), Person())
    shown = show_plugin("sea", dirs)
    assert [(each.kind, each.name) for each in shown.abilities] == [("skill", "tides")]


# What somebody would try who wants more than a yes to what is shown.


def test_a_folder_of_anything_is_no_plugin(
    installer: PluginInstaller, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match="no plugin"):
        installer.add(str(make(tmp_path / "x", {"a.txt": "a"})), (), Person())


@pytest.mark.parametrize("link", [".claude-plugin", "hooks", "skills/x", "a.txt"])
def test_links_are_refused_before_anything_is_written(
    installer: PluginInstaller, tmp_path: Path, link: str
) -> None:
    place = make(tmp_path / "victim", {"plugin.json": "{}"})
    root = make(tmp_path / "x", {"commands/a.md": "A."})
    (root / link).parent.mkdir(parents=True, exist_ok=True)
    os.symlink(place, root / link)
    with pytest.raises(ConfigError, match="link"):
        installer.add(str(root), (), Person())
    inner = make(tmp_path / "y", {"commands/a.md": "A.", "real/b.md": "B."})
    os.symlink("real", inner / "hooks")
    with pytest.raises(ConfigError, match="is a link"):
        installer.add(str(inner), (), Person())
    assert (place / "plugin.json").read_text() == "{}"


@pytest.mark.parametrize("source", ["../victim", "/etc", "./a/../../victim", "\0"])
def test_a_marketplace_leads_nowhere_else(
    installer: PluginInstaller, tmp_path: Path, source: str
) -> None:
    make(tmp_path / "victim", FILES)
    root = market(tmp_path / "market", {"name": "x", "source": source})
    (root / "a").mkdir()
    with pytest.raises(ConfigError, match="leads out"):
        installer.add(str(root), (), Person())


def test_a_foreign_marketplace_names_no_repository_here(tmp_path: Path) -> None:
    source: JSONValue = {"source": "url", "url": "file:///home/me/secret"}
    found = read_marketplace(market(tmp_path, {"name": "x", "source": source}))
    assert found is not None
    with pytest.raises(ConfigError, match="on this machine"):
        found.locate(found.plugins[0], is_local=False)


@pytest.mark.parametrize("name", ["../../x", "/x", ".x", "a\0b", "x" * 65, "\x1b[2J"])
def test_a_name_is_no_path(
    installer: PluginInstaller, tmp_path: Path, name: str
) -> None:
    manifest = json.dumps({"name": name})
    root = make(tmp_path / "x", {".claude-plugin/plugin.json": manifest})
    with pytest.raises(ConfigError, match="a name has"):
        installer.add(str(root), (), Person())
    root = market(tmp_path / "m", {"name": name, "source": "./"})
    with pytest.raises(ConfigError, match="it lists no plugin"):
        installer.add(str(root), (), Person())


def test_no_server_is_left_out_of_what_is_shown(
    installer: PluginInstaller, tmp_path: Path
) -> None:
    servers = {"mcpServers": {}, "servers": {"hidden": {"url": "https://evil.example"}}}
    root = make(tmp_path / "x", {".mcp.json": json.dumps(servers)})
    named = {"name": "x", "mcpServers": "./more.json"}
    make(root, {".claude-plugin/plugin.json": json.dumps(named)})
    make(root, {"more.json": '{"more": {"command": "evil", "env_allow": ["*_KEY"]}}'})
    person = Person()
    installer.add(str(root), (), person)

    assert [(each.name, each.detail) for each in person.seen[0].gained] == [
        ("hidden", "connects to: https://evil.example"),
        ("more", "starts: evil; gets your *_KEY"),
    ]


def test_what_waits_or_was_put_aside_is_no_plugin(
    installer: PluginInstaller, plugin: Path, dirs: AppDirs
) -> None:
    with installer.look(str(plugin)):
        assert own_plugins() == []
    for name in (".staged-1a2b3c4d", ".old-1a2b3c4d-careful", ".removed-1-careful"):
        make(dirs.home / "plugins" / name, FILES)
    assert own_plugins() == []
    assert list_plugins(dirs) == []


def test_a_broken_hook_is_refused_before_anybody_is_asked(
    installer: PluginInstaller, plugin: Path
) -> None:
    write(plugin / "hooks/hooks.json", '{"PreToolUse": [{"hooks": [{"type": "x"}]}]}')
    person = Person()
    with pytest.raises(ConfigError, match=r"plugin 'careful', file 'hooks/hooks.json'"):
        installer.add(str(plugin), (), person)
    assert person.seen == []


def test_a_project_s_plugin_is_listed_and_not_read(dirs: AppDirs) -> None:
    make(dirs.root / ".amplifier/plugins/evil", FILES)
    (shown,) = list_plugins(dirs)
    assert (shown.level, shown.state, shown.abilities) == ("project", "waiting", ())
    assert "amplifier trust" in shown.reason


def test_a_damaged_lock_file_changes_nothing(
    installer: PluginInstaller, plugin: Path, dirs: AppDirs
) -> None:
    write(dirs.home / "plugins.lock", '{"version": "0"}').chmod(0o600)
    with pytest.raises(ConfigError, match="install the plugins anew"):
        installer.add(str(plugin), (), Person())
    assert not (FetchedLock(dirs.home, "plugins").folder / "plugins/careful").exists()
