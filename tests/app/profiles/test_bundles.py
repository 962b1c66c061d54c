"""Bundles: what they include, what they come to, what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from amplifier.app.collections.installation import CollectionInstaller
from amplifier.app.directories import AppDirs
from amplifier.app.mentions.dedup import ContentDeduplicator
from amplifier.app.mentions.loader import MentionLoader
from amplifier.app.mentions.resolver import MentionResolver, Writer
from amplifier.app.plans.base_plans import PlanOptions
from amplifier.app.profiles.added_bundles import (
    add_bundle,
    refresh_bundles,
    remove_bundle,
)
from amplifier.app.profiles.chain import MAX_FILES
from amplifier.app.profiles.library import ProfileLibrary
from amplifier.app.sessions.composition import Composition, compose
from amplifier.app.settings.schema import MentionSettings
from amplifier.app.sources.cache import SourceCache
from amplifier.app.sources.locations import GitLocation
from amplifier.app.sources.parser import read_location
from amplifier_sdk.errors import AmplifierError, ConfigError
from tests.app.projects import trust, write
from tests.app.repositories import commit

INSTALLED = ("context-simple", "loop-basic", "provider-local", "tool-filesystem")
ROOT = """\
---
bundle: {name: acme, version: "2", description: All of Acme.}
includes:
  - bundle: acme:behaviors/notes
  - ./behaviors/quiet.yaml
session: {orchestrator: loop-basic, context: context-simple}
providers: [provider-acme]
tools: [{module: tool-notes, source: ./notes, config: {folder: there}}]
agents:
  include: [acme:helper]
  inline: {tiny: {description: Small., tools: [{module: tool-x, source: ./x}]}}
context: {include: [acme:context/house rules.md]}
spawn: {exclude_tools: [tool-bash], hooks: []}
---
You work for Acme.
"""
NOTES = """\
---
bundle: {name: notes}
tools: [{module: tool-notes, config: {folder: here, size: 3}}]
context: {include: ["./rules.md"]}
---
You take notes. See @./rules.md
"""
QUIET = "bundle: {name: quiet}\nhooks: [hooks-quiet]\nui: {show_usage: false}\n"


def acme(folder: Path, root: str = ROOT) -> Path:
    """Write a bundle with behaviours, an agent and files that it shows."""
    write(folder / "bundle.md", root)
    write(folder / "behaviors/notes.md", NOTES)
    write(folder / "behaviors/rules.md", "Write small.")
    write(folder / "behaviors/quiet.yaml", QUIET)
    write(folder / "context/house rules.md", "House rules.")
    write(
        folder / "agents/helper.md",
        "---\nmeta: {name: helper, description: Helps.}\n---\nYou help.\n",
    )
    return folder


def made(dirs: AppDirs, name: str | None, **chosen: str) -> Composition:
    profile = None if name is None else f"bundle:{name}"
    return compose(PlanOptions(profile=profile, **chosen), dirs, installed=INSTALLED)  # type: ignore[arg-type]


def shown(composition: Composition) -> str:
    """Return what the agent is shown before its instruction."""
    assert composition.profile is not None
    loader = MentionLoader(
        MentionResolver(composition.dirs, composition.collections), MentionSettings()
    )
    writer = Writer(composition.profile.folder)
    batch = loader.load(composition.instruction or "", writer, ContentDeduplicator())
    return "\n".join(
        str(message.content if hasattr(message, "content") else message)
        for message in batch.messages
    )


def test_a_bundle_is_merged_over_what_it_includes(
    dirs: AppDirs, tmp_path: Path
) -> None:
    composition = made(dirs, str(acme(tmp_path / "lib")))
    plan = composition.plan
    agents = plan.pop("agents")  # type: ignore[attr-defined]  # a plan of its own
    assert plan == {
        "session": {
            "orchestrator": {"module": "loop-basic"},
            "context": {"module": "context-simple"},
            "ask_before_changes": True,
        },
        "providers": [{"module": "provider-acme"}],
        "tools": [
            {
                "module": "tool-notes",
                "source": str(tmp_path / "lib/notes"),
                "config": {"folder": "there", "size": 3},
            },
            {
                "module": "tool-task",
                "config": {"exclude_tools": ["tool-bash"], "inherit_hooks": []},
            },
        ],
        "hooks": [{"module": "hooks-quiet"}],
    }
    assert agents == {
        "helper": {"description": "Helps.", "system": {"instruction": "You help."}},
        "tiny": {
            "description": "Small.",
            "tools": [{"module": "tool-x", "source": str(tmp_path / "lib/x")}],
        },
    }
    assert not composition.display.show_usage
    profile = composition.profile
    assert profile is not None
    assert [file.name for file in profile.chain][:2] == ["bundle:notes", "bundle:quiet"]
    assert profile.origins["tools[tool-notes].config.folder"].profile == "bundle:acme"
    assert profile.origins["tools[tool-notes].config.folder"].replaced == "here"
    assert profile.origins["hooks[hooks-quiet].module"].profile == "bundle:quiet"


def test_agent_is_shown_files_of_all_and_told_last_body(
    dirs: AppDirs, tmp_path: Path
) -> None:
    folder = acme(tmp_path / "lib")
    composition = made(dirs, str(folder))
    assert (composition.instruction or "").endswith("\n\nYou work for Acme.")
    text = shown(composition)
    assert "House rules." in text
    assert "Write small." in text
    write(folder / "bundle.md", ROOT.replace("You work for Acme.\n", ""))
    inherited = made(dirs, str(folder))
    assert (inherited.instruction or "").endswith("You take notes. See @./rules.md")
    assert "Write small." in shown(inherited)


def test_two_bundles_may_include_the_same(dirs: AppDirs) -> None:
    write(
        dirs.home / "bundles/base.yaml",
        "tools: [tool-a]\ncontext: {include: [base.txt]}\n",
    )
    write(dirs.home / "bundles/base.txt", "Base.")
    write(dirs.home / "bundles/one.yaml", "includes: [base]\n")
    write(dirs.home / "bundles/two.md", "---\nincludes: [base, one]\n---\nTwo.")
    composition = made(dirs, "two")
    assert composition.profile is not None
    assert [file.name for file in composition.profile.chain] == [
        "bundle:base",
        "bundle:one",
        "bundle:two",
    ]
    assert (composition.instruction or "").count("base.txt") == 1


def test_bundles_of_one_name_keep_their_own_files(dirs: AppDirs) -> None:
    for name in ("a", "b"):
        write(
            dirs.home / f"bundles/{name}/bundle.yaml",
            "bundle: {name: same}\ncontext: {include: [own.md]}\n",
        )
        write(dirs.home / f"bundles/{name}/own.md", f"Of {name}.")
    write(dirs.home / "bundles/both.yaml", "includes: [a, b]\n")
    text = shown(made(dirs, "both"))
    assert "Of a." in text
    assert "Of b." in text


def test_bundle_that_includes_own_name_means_next_weaker_one(
    dirs: AppDirs,
) -> None:
    own = write(dirs.home / "bundles/dev.yaml", "includes: [dev]\ntools: [tool-own]\n")
    with pytest.raises(ConfigError, match="names itself, and there is no weaker one"):
        made(dirs, "dev")
    added = write(dirs.home / "lib/base.yaml", "tools: [tool-base]\n")
    write(dirs.home / "settings.yaml", f"bundle: {{added: {{dev: {added}}}}}\n")
    tools = [{"module": "tool-base"}, {"module": "tool-own"}]
    assert made(dirs, "dev").plan["tools"] == tools
    own.unlink()
    assert made(dirs, "dev").plan["tools"] == tools[:1]


def test_excluded_is_taken_out_of_what_is_included(dirs: AppDirs) -> None:
    write(dirs.home / "bundles/base.yaml", "tools: [tool-a, tool-b]\n")
    write(
        dirs.home / "bundles/dev.yaml",
        "includes: [base]\nexclude: {tools: [tool-a]}\n",
    )
    assert made(dirs, "dev").plan["tools"] == [{"module": "tool-b"}]


# -- which one is used


def test_stronger_scope_decides_between_bundle_and_profile(
    dirs: AppDirs,
) -> None:
    write(dirs.home / "bundles/crate.md", "Of the bundle.")
    write(
        dirs.home / "profiles/dev.md",
        "---\nprofile: {name: dev}\n---\nOf the profile.",
    )
    write(
        dirs.home / "settings.yaml",
        "bundle: {active: crate}\nprofile: {active: dev, default: dev}\n",
    )
    assert made(dirs, None).instruction == "Of the bundle."
    assert dirs.project is not None
    write(dirs.project / "settings.yaml", "profile: {active: dev}\n")
    trust(dirs, "settings")
    assert made(dirs, None).instruction == "Of the profile."
    assert (
        compose(PlanOptions(profile="dev"), dirs, installed=INSTALLED).instruction
        == "Of the profile."
    )


def test_every_session_gets_a_bundle_below_its_profile(dirs: AppDirs) -> None:
    write(
        dirs.home / "bundles/house.md",
        "---\ntools: [{module: tool-a, config: {x: 1}}]\n---\nKeep it short.",
    )
    write(dirs.home / "settings.yaml", "bundle: {app: [house]}\n")
    plain = made(dirs, None)
    assert plain.plan["tools"] == [
        {"module": "tool-a", "config": {"x": 1}},
        {"module": "tool-filesystem"},
    ]
    assert plain.plan["providers"] == [{"module": "provider-local"}]
    assert plain.instruction == "Keep it short."
    text = "---\nsession: {orchestrator: loop-basic, context: context-simple}\nagents: none\n"
    write(
        dirs.home / "profiles/dev.md",
        text + "tools: [{module: tool-a, config: {x: 2}}]\n---\nDevelop.",
    )
    profiled = compose(PlanOptions(profile="dev"), dirs, installed=INSTALLED)
    assert profiled.plan["tools"] == [{"module": "tool-a", "config": {"x": 2}}]
    assert profiled.instruction == "Keep it short.\n\nDevelop."
    assert "agents" not in profiled.plan
    write(dirs.home / "bundles/dev.md", "Of the bundle.")
    assert made(dirs, "dev").plan["tools"] == [{"module": "tool-a", "config": {"x": 1}}]


@pytest.mark.parametrize(
    ("choice", "expected"),
    [("[other]", {"other", "helper"}), ("none", set()), ("all", {"other", "helper"})],
    ids=["named", "none", "all"],
)
def test_agents_of_bundle_join_those_that_profile_chooses(
    dirs: AppDirs, choice: str, expected: set[str]
) -> None:
    write(dirs.home / "agents/other.md", "Other.")
    text = "agents: {include: [other], inline: {helper: {description: x}}}\n"
    write(dirs.home / "bundles/house.yaml", text)
    write(dirs.home / "settings.yaml", "bundle: {app: [house]}\n")
    write(dirs.home / "profiles/dev.md", f"---\nagents: {choice}\n---\n")
    agents = (
        compose(PlanOptions(profile="dev"), dirs, installed=INSTALLED).plan.get(
            "agents"
        )
        or {}
    )
    assert isinstance(agents, dict)
    assert expected == (set(agents) & {"other", "helper"})


def test_a_bundle_is_added_from_a_path_with_dollar_signs(
    dirs: AppDirs, tmp_path: Path
) -> None:
    write(tmp_path / "a$$b${HOME}/bundle.yaml", "bundle: {name: odd}\n")
    add_bundle(dirs, str(tmp_path / "a$$b${HOME}"))
    assert (
        ProfileLibrary.of(dirs).find("odd", "bundle").path.parent.name == "a$$b${HOME}"
    )


# -- mistakes


def test_a_circle_through_a_link_is_a_circle(dirs: AppDirs, tmp_path: Path) -> None:
    folder = write(tmp_path / "lib/a.yaml", "includes: [./self/a.yaml]\n").parent
    (folder / "self").symlink_to(".")
    with pytest.raises(
        ConfigError, match="a -> a: bundles include each other in a cycle"
    ):
        made(dirs, str(folder / "a.yaml"))


@pytest.mark.parametrize(
    ("old", "new", "reported"),
    [
        ("spawn:", "spwan:", "line 13, spwan: unknown; did you mean 'spawn'?"),
        ("version:", "versoin:", "line 2, bundle.versoin: unknown"),
        (
            "house rules.md",
            "none.md",
            r"line 12, context.include\[0\]: there is no 'acme:context/none.md'",
        ),
        ("acme:context/house rules.md", "../../etc/x", r"context.include\[0\]"),
        (
            "acme:context/house rules.md",
            "nobody:x.md",
            r"context.include\[0\]: there is no 'nobody:x.md'",
        ),
        (
            "[acme:helper]",
            "[acme:helpr]",
            r"line 10, agents.include\[0\]: there is no agent",
        ),
        (
            "[acme:helper]",
            "[acme:../../x]",
            r"line 10, agents.include\[0\]: there is no agent",
        ),
        ("[acme:helper]", "[nobody]", "nobody: no such agent"),
        ("acme:behaviors/notes", "acme:behaviors/nots", r"line 4, includes\[0\]"),
        ("acme:behaviors/notes", "acme:../lib2/notes", "leads out of"),
        ("acme:behaviors/notes", "nowhere:x", "no such collection"),
        ("acme:behaviors/notes", "https://example.org/x.zip", "cannot|none of"),
        (
            "acme:behaviors/notes",
            "git+https://example.org/x",
            "was never fetched; 'amplifier bundle add'",
        ),
        (
            "acme:behaviors/notes",
            "./bundle.md",
            "acme -> acme: bundles include each other in a cycle",
        ),
        ("providers: [provider-acme]", "providers: 5", "line 7, providers"),
        (
            "house rules.md]",
            f"x.md{', x' * 200}]",
            r"line 12, context.include: has at most 200 entries; got 201",
        ),
        ("providers: [provider-acme]", "providers: [", "line 9"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(
    dirs: AppDirs, tmp_path: Path, old: str, new: str, reported: str
) -> None:
    folder = acme(tmp_path / "lib", ROOT.replace(old, new))
    with pytest.raises(ConfigError, match=reported) as raised:
        made(dirs, str(folder))
    assert raised.value.problems


@pytest.mark.parametrize(
    ("name", "text", "reported"),
    [
        ("a.md", b"\xff", "not UTF-8"),
        ("a.yaml", b"- a", "a mapping; got list"),
        ("a.md", b"---\na: 1", "does not end"),
    ],
    ids=["encoding", "list", "front matter"],
)
def test_an_unreadable_file_is_told(
    dirs: AppDirs, tmp_path: Path, name: str, text: bytes, reported: str
) -> None:
    (tmp_path / name).write_bytes(text)
    with pytest.raises(ConfigError, match=reported):
        made(dirs, str(tmp_path / name))


def test_an_unknown_name_is_told_with_the_nearest(dirs: AppDirs) -> None:
    write(dirs.home / "bundles/crate.md", "x")
    with pytest.raises(ConfigError, match="did you mean 'crate'"):
        made(dirs, "crat")
    with pytest.raises(ConfigError, match="there is no bundle: a file that ends in"):
        made(dirs, "./nowhere")
    with pytest.raises(
        ConfigError, match="a bundle is a file, a folder, or a repository"
    ):
        ProfileLibrary.of(dirs).open("some-package", "bundle", dirs.working_dir)


@pytest.mark.parametrize(
    "name",
    [
        "foundation:\ud83d",
        "./\ud83d",
        "foundation:a\0b",
        "./a\0b",
        "\ud83d",
        "~/\ud83d",
    ],
    ids=ascii,
)
def test_a_name_that_no_file_can_have_is_told(dirs: AppDirs, name: str) -> None:
    with pytest.raises(ConfigError):
        made(dirs, name)


def test_too_long_a_chain_is_refused(
    dirs: AppDirs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(MAX_FILES, "bundle", 3)
    for number in range(4):
        write(
            dirs.home / f"bundles/b{number}.yaml",
            f"includes: [b{number + 1}]\n" if number < 3 else "",
        )
    with pytest.raises(ConfigError, match="more than 3 bundles"):
        made(dirs, "b0")


# -- a project's bundles


def test_a_projects_bundle_counts_once_it_is_trusted(dirs: AppDirs) -> None:
    assert dirs.project is not None
    acme(dirs.project / "bundles/acme")
    write(dirs.project / "bundles/README.md", "No bundle.")
    with pytest.raises(ConfigError, match="run 'amplifier trust'"):
        made(dirs, "acme")
    with pytest.raises(ConfigError, match="nobody trusted"):
        made(dirs, str(dirs.project / "bundles/acme"))
    (untrusted,) = ProfileLibrary.of(dirs).found("bundle")
    assert (untrusted.name, untrusted.refusal is None) == ("acme", False)
    trust(dirs, "profiles")
    composition = made(dirs, "acme")
    assert "helper" in (composition.plan["agents"] or {})  # type: ignore[operator]  # a mapping
    assert "House rules." in shown(composition)
    (trusted,) = ProfileLibrary.of(dirs).found("bundle")
    assert (trusted.name, trusted.refusal) == ("acme", None)
    write(dirs.project / "bundles/acme/agents/helper.md", "Changed.")
    with pytest.raises(ConfigError, match="changed since it was trusted"):
        made(dirs, "acme")


def test_project_bundle_includes_nothing_untrusted(
    dirs: AppDirs,
) -> None:
    assert dirs.project is not None
    write(dirs.root / "evil.yaml", "hooks: [hooks-evil]\n")
    write(dirs.project / "bundles/dev.yaml", "includes: [../../evil.yaml]\n")
    trust(dirs, "profiles")
    with pytest.raises(
        ConfigError, match=r"must stand in its folder \.amplifier to be trusted"
    ):
        made(dirs, "dev")
    write(
        dirs.project / "settings.yaml",
        "bundle: {added: {evil: ./evil.yaml}, active: evil}\n",
    )
    trust(dirs, "settings")
    with pytest.raises(
        ConfigError, match=r"must stand in its folder \.amplifier to be trusted"
    ):
        made(dirs, None)


@pytest.mark.parametrize(
    "written", ["../../evil.yaml", "{}", "file:{}"], ids=["relative", "absolute", "URL"]
)
def test_no_spelling_lets_project_bundle_reach_untrusted_files(
    dirs: AppDirs, written: str
) -> None:
    assert dirs.project is not None
    evil = write(dirs.root / "evil.yaml", "hooks: [hooks-evil]\n")
    address = written.format(evil.as_uri() if written == "{}" else evil)
    write(dirs.project / "bundles/dev.yaml", f"includes: ['{address}']\n")
    trust(dirs, "profiles")
    with pytest.raises(ConfigError, match=r"must stand in its folder \.amplifier"):
        made(dirs, "dev")


@pytest.mark.parametrize("installed", [True, False], ids=["installed", "own"])
def test_a_collections_bundle_includes_what_came_with_it_alone(
    dirs: AppDirs, tmp_path: Path, installed: bool
) -> None:
    collection = dirs.home / "collections/acme" if not installed else tmp_path / "acme"
    write(collection / "pyproject.toml", '[project]\nname = "acme"\n')
    write(collection / "bundles/dev.yaml", "includes: [../parts/base.yaml]\n")
    write(collection / "bundles/out.yaml", f"includes: ['{tmp_path}/own.yaml']\n")
    write(collection / "parts/base.yaml", "hooks: [hooks-base]\n")
    write(tmp_path / "own.yaml", "hooks: [hooks-own]\n")
    if installed:
        CollectionInstaller.of(dirs).install(str(collection))
    assert "hooks-base" in str(made(dirs, "acme:bundles/dev").plan["hooks"])
    assert "hooks-base" in str(made(dirs, "dev").plan["hooks"])
    with pytest.raises(ConfigError, match="leads out of what came with the bundle"):
        made(dirs, "out")


def test_added_name_may_be_relative_and_use_environment(
    dirs: AppDirs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BUNDLES", str(acme(tmp_path / "lib")))
    write(dirs.home / "near.yaml", "tools: [tool-near]\n")
    write(
        dirs.home / "settings.yaml",
        "bundle: {added: {far: '${BUNDLES}', near: ./near.yaml}}\n",
    )
    assert made(dirs, "near").plan["tools"] == [{"module": "tool-near"}]
    assert "hooks-quiet" in str(made(dirs, "far").plan["hooks"])


# -- adding


def repository(folder: Path) -> str:
    """Make a repository of what is in a folder, and return its address."""
    commit(folder, {})
    return f"git+file://{folder}@main"


def test_a_bundle_is_added_used_and_removed(dirs: AppDirs, tmp_path: Path) -> None:
    name, path = add_bundle(dirs, str(acme(tmp_path / "lib")), every_session=True)
    assert (name, path) == ("acme", dirs.home / "settings.yaml")
    assert path.read_text().count(str(tmp_path / "lib")) == 1
    library = ProfileLibrary.of(dirs)
    added = {"acme": str(tmp_path / "lib")}
    assert (library.added, library.found("bundle")) == (added, [])
    assert "hooks-quiet" in str(made(dirs, None).plan["hooks"])
    add_bundle(dirs, str(tmp_path / "lib"), every_session=True)
    assert ProfileLibrary.of(dirs).settings.read().bundle.app == ("acme",)
    path.write_text(path.read_text() + "  active: acme\n")
    assert remove_bundle(dirs, "acme") == path
    assert ProfileLibrary.of(dirs).added == {}
    assert made(dirs, None).profile is None
    assert remove_bundle(dirs, "acme") is None


@pytest.mark.parametrize("name", ["a:b", ".a", "/a"])
def test_a_name_that_would_mean_something_else_is_refused(
    dirs: AppDirs, tmp_path: Path, name: str
) -> None:
    with pytest.raises(ConfigError, match="give another one with --name"):
        add_bundle(dirs, str(acme(tmp_path / "lib")), name=name)


@pytest.mark.process
def test_a_repository_is_fetched_when_it_is_added_and_pinned(
    dirs: AppDirs, tmp_path: Path
) -> None:
    address = repository(acme(tmp_path / "lib"))
    with pytest.raises(ConfigError, match="was never fetched"):
        made(dirs, address)
    assert add_bundle(dirs, address, name="crate")[0] == "crate"
    composition = made(dirs, "crate")
    assert "House rules." in shown(composition)
    assert "helper" in (composition.plan["agents"] or {})  # type: ignore[operator]  # a mapping
    write(tmp_path / "lib/behaviors/quiet.yaml", "hooks: [hooks-loud]\n")
    assert "hooks-quiet" in str(made(dirs, "crate").plan["hooks"])


@pytest.mark.process
@pytest.mark.parametrize("form", ["{path}", "file:{path}", "{uri}", "git+{folder}"])
def test_what_was_fetched_includes_only_what_came_with_it(
    dirs: AppDirs, tmp_path: Path, form: str
) -> None:
    own = write(tmp_path / "own/bundle.yaml", "hooks: [hooks-own]\n")
    commit(own.parent, {})
    address = form.format(path=own, uri=own.as_uri(), folder=own.parent.as_uri())
    source = repository(
        acme(tmp_path / "lib", ROOT.replace("./behaviors/quiet.yaml", f'"{address}"'))
    )
    with pytest.raises(AmplifierError, match="leads out of what came with the bundle"):
        add_bundle(dirs, source)
    assert not (dirs.home / "settings.yaml").exists()
    assert SourceCache.of(dirs).pins.all() == []


@pytest.mark.process
def test_what_was_fetched_shows_no_file_of_persons_own_bundles(
    dirs: AppDirs, tmp_path: Path
) -> None:
    text = "bundle: {name: lib}\ncontext: {include: ['house:private.md']}\n"
    write(tmp_path / "lib/bundle.yaml", text)
    address = repository(tmp_path / "lib")
    write(dirs.home / "bundles/house/private.md", "Private.")
    write(
        dirs.home / "bundles/house/bundle.yaml",
        f"includes: ['{address}']\ncontext: {{include: [private.md]}}\n",
    )
    SourceCache.of(dirs).open(read_repository(address))
    with pytest.raises(
        ConfigError, match=r"context.include\[0\]: there is no 'house:private.md'"
    ):
        made(dirs, "house")


# -- bringing up to date


def read_repository(address: str) -> GitLocation:
    location = read_location(address, Path("/"))
    assert isinstance(location, GitLocation)
    return location


@pytest.mark.process
def test_bundle_is_brought_up_to_date_with_all_that_it_includes(
    dirs: AppDirs, tmp_path: Path
) -> None:
    part = repository(acme(tmp_path / "part"))
    write(dirs.home / "bundles/own.yaml", f"includes: ['{part}']\n")
    add_bundle(dirs, part, name="part")
    commit(tmp_path / "part", {"behaviors/quiet.yaml": "hooks: [hooks-loud]\n"})
    assert refresh_bundles(dirs, ["own"]).changes[0].is_changed
    assert "hooks-quiet" in str(made(dirs, "own").plan["hooks"])

    (change,) = refresh_bundles(dirs).pin()
    assert (change.source, change.is_changed) == (part, True)
    assert "hooks-loud" in str(made(dirs, "own").plan["hooks"])
    assert not refresh_bundles(dirs, ["part"]).changes[0].is_changed


@pytest.mark.process
def test_a_bundle_that_is_not_sound_any_more_changes_nothing(
    dirs: AppDirs, tmp_path: Path
) -> None:
    address = repository(acme(tmp_path / "lib"))
    add_bundle(dirs, address, name="crate")
    commit(tmp_path / "lib", {"behaviors/quiet.yaml": "hoks: []\n"})
    with pytest.raises(ConfigError, match="did you mean 'hooks'"):
        refresh_bundles(dirs)
    assert "hooks-quiet" in str(made(dirs, "crate").plan["hooks"])


@pytest.mark.process
def test_adding_a_bundle_again_leaves_its_commit_pinned(
    dirs: AppDirs, tmp_path: Path
) -> None:
    address = repository(acme(tmp_path / "lib"))
    add_bundle(dirs, address)
    commit(tmp_path / "lib", {"behaviors/quiet.yaml": "hooks: [hooks-loud]\n"})
    add_bundle(dirs, address, name="again")
    assert "hooks-quiet" in str(made(dirs, "again").plan["hooks"])
