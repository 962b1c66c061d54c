"""Profiles are found by name, build on each other, and every value of the plan can be traced."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amplifier.app.agents.library import AgentLibrary
from amplifier.app.definitions import InvalidFile
from amplifier.app.directories import AppDirs
from amplifier.app.profiles.chain import follow
from amplifier.app.profiles.compiler import CompiledProfile, compile_chain, flatten
from amplifier.app.profiles.documents import ProfileFile, parse_file
from amplifier.app.profiles.library import ProfileLibrary
from amplifier.app.projects.files import ProjectFiles
from amplifier_sdk.errors import ConfigError
from tests.app.projects import trust, write

BASE = """\
---
profile: {name: base, version: "1", description: What others build on., model: acme/small}
session:
  orchestrator: {module: loop-basic, config: {max_iterations: 5}}
  context: {module: context-simple}
tools:
  - tool-web
  - {module: tool-bash, source: ./bash, config: {timeout: 5, shell: sh}}
hooks: [hooks-logging]
agents: [reviewer]
---
You are the base.
"""


def user(dirs: AppDirs, name: str, text: str) -> Path:
    return write(dirs.home / "profiles" / f"{name}.md", text)


def compiled(dirs: AppDirs, name: str) -> CompiledProfile:
    return compile_chain(follow(ProfileLibrary.of(dirs), name))


def problem(dirs: AppDirs, name: str) -> str:
    with pytest.raises(ConfigError) as caught:
        compiled(dirs, name)
    return str(caught.value)


def head(extends: str) -> str:
    return f"---\nprofile: {{extends: {extends}}}\n---\n"


def test_a_profile_becomes_a_plan(dirs: AppDirs) -> None:
    user(dirs, "base", BASE)
    read = compiled(dirs, "base")
    bash = str(dirs.home / "profiles/bash")
    assert read.plan == {
        "session": {
            "orchestrator": {"module": "loop-basic", "config": {"max_iterations": 5}},
            "context": {"module": "context-simple"},
        },
        "tools": [
            {"module": "tool-web"},
            {
                "module": "tool-bash",
                "source": bash,
                "config": {"timeout": 5, "shell": "sh"},
            },
        ],
        "hooks": [{"module": "hooks-logging"}],
    }
    assert read.instruction == "You are the base."
    assert read.model == "acme/small"
    assert read.agents == ("reviewer",)


def test_a_profile_builds_on_another(dirs: AppDirs) -> None:
    user(dirs, "base", BASE)
    user(
        dirs,
        "dev",
        "---\nprofile: {extends: base}\nsession: {orchestrator: {config: {max_iterations: 9}}}\n"
        "tools:\n  - {module: tool-bash, config: {timeout: 60}}\n  - tool-todo\n"
        "exclude: {tools: [tool-web], hooks: all}\n"
        "ui: {show_tool_lines: false}\n---\n",
    )
    read = compiled(dirs, "dev")
    bash = str(dirs.home / "profiles/bash")
    assert [file.name for file in read.chain] == ["base", "dev"]
    assert read.plan["tools"] == [
        {
            "module": "tool-bash",
            "source": bash,
            "config": {"timeout": 60, "shell": "sh"},
        },
        {"module": "tool-todo"},
    ]
    assert "hooks" not in read.plan
    assert read.instruction == ""
    assert read.model == "acme/small"
    assert read.agents == ("reviewer",)
    assert read.ui == {"show_tool_lines": False}


def test_every_value_says_where_it_comes_from(dirs: AppDirs) -> None:
    user(dirs, "base", BASE)
    user(
        dirs,
        "dev",
        "---\nprofile: {extends: base}\ntools: [{module: tool-bash, config: {timeout: 60}}]\n---\n",
    )
    origins = compiled(dirs, "dev").origins
    assert origins["tools[tool-bash].config.timeout"].profile == "dev"
    assert origins["tools[tool-bash].config.timeout"].replaced == 5
    assert origins["tools[tool-bash].config.shell"].profile == "base"
    assert origins["session.context.module"].profile == "base"


def test_what_one_profile_excludes_another_may_bring_back(dirs: AppDirs) -> None:
    user(dirs, "base", BASE)
    user(
        dirs,
        "small",
        "---\nprofile: {extends: base}\nexclude: {tools: all, session: {context: all}}\n---\n",
    )
    user(dirs, "more", "---\nprofile: {extends: small}\ntools: [tool-web]\n---\n")
    assert compiled(dirs, "small").plan.get("tools") is None
    assert compiled(dirs, "more").plan["tools"] == [{"module": "tool-web"}]


def test_a_circle_of_paths_is_shown(dirs: AppDirs) -> None:
    user(dirs, "a", "---\nprofile: {extends: ../profiles/b.md}\n---\n")
    user(dirs, "b", "---\nprofile: {extends: ../profiles/a.md}\n---\n")
    assert (
        "a -> ../profiles/b.md -> ../profiles/a.md: profiles extend each other in a cycle"
        in problem(dirs, "a")
    )


def test_what_is_wrong_is_told_with_its_line(dirs: AppDirs) -> None:
    user(
        dirs,
        "dev",
        "\ufeff---\r\nprofile:\r\n  # mine\r\n  nme: dev\r\nui: {show_usage: 1}\r\n---\r\n",
    )
    assert "line 4, profile.nme: unknown" in problem(dirs, "dev")
    assert "line 5, ui.show_usage" in problem(dirs, "dev")
    write(dirs.home / "agents/a.md", "---\nmeta:\n  nme: a\n---\n")
    with pytest.raises(ConfigError, match=r"a\.md.*line 3, meta\.nme: unknown"):
        AgentLibrary.of(dirs).require("a")


@pytest.mark.parametrize(
    "rule", ["{tools: 5}", "{tools: {tool-bash: all}}", "{session: {orchestrator: 1}}"]
)
def test_what_cannot_be_excluded_is_named(dirs: AppDirs, rule: str) -> None:
    user(dirs, "base", BASE)
    user(dirs, "dev", f"---\nprofile: {{extends: base}}\nexclude: {rule}\n---\n")
    assert "exclude." in problem(dirs, "dev")


@pytest.mark.parametrize("size", [1, 2, 5])
def test_a_circle_is_shown(dirs: AppDirs, size: int) -> None:
    for number in range(size):
        user(dirs, f"p{number}", head(f"p{(number + 1) % size}"))
    trail = " -> ".join([*(f"p{number}" for number in range(size)), "p0"])
    if size == 1:  # a name that is its own means a weaker profile of that name
        assert (
            "no such profile: it names itself, and there is no weaker one"
            in problem(dirs, "p0")
        )
    else:
        assert trail in problem(dirs, "p0")


def test_a_chain_has_an_end(dirs: AppDirs) -> None:
    for number in range(101):
        user(dirs, f"p{number}", head(f"p{number + 1}"))
    user(dirs, "p101", "---\nprofile: {name: root}\n---\n")
    assert "more than 100 profiles" in problem(dirs, "p0")


def test_a_missing_link_shows_the_chain(dirs: AppDirs) -> None:
    user(dirs, "dev", head("bas"))
    user(dirs, "base", BASE)
    assert "dev -> bas: the chain breaks here" in problem(dirs, "dev")
    assert "did you mean 'base'" in problem(dirs, "dev")


def test_projects_profile_wins_and_may_build_on_persons_own(
    dirs: AppDirs,
) -> None:
    user(dirs, "dev", BASE)
    write(dirs.root / ".amplifier/profiles/dev.md", head("dev") + "The project's.")
    trust(dirs, "profiles")
    read = compiled(dirs, "dev")
    assert [file.level for file in read.chain] == ["user", "project"]
    assert read.instruction == "The project's."


def test_a_projects_profile_is_not_used_before_it_is_trusted(dirs: AppDirs) -> None:
    write(dirs.root / ".amplifier/profiles/theirs.md", BASE)
    assert "amplifier trust" in problem(dirs, "theirs")
    user(dirs, "theirs", BASE)
    # the person's own does not stand in for it
    assert "is not trusted" in problem(dirs, "theirs")
    trust(dirs, "profiles")
    assert compiled(dirs, "theirs").profile.level == "project"


def test_project_profile_extends_nothing_untrusted(
    dirs: AppDirs,
) -> None:
    write(dirs.root / "base.md", BASE)
    write(dirs.root / ".amplifier/profiles/dev.md", head("../../base.md"))
    write(dirs.root / ".amplifier/profiles/sound.md", head("./base.md"))
    write(dirs.root / ".amplifier/profiles/base.md", BASE)
    trust(dirs, "profiles")
    assert "must stand in its folder .amplifier to be trusted" in problem(dirs, "dev")
    assert (
        compiled(dirs, "sound").chain[0].path
        == dirs.root / ".amplifier/profiles/base.md"
    )


@pytest.mark.parametrize("base", ["../../../own.md", "~/own.md", "{}/own.md"])
def test_collections_profile_builds_on_what_came_with_it_alone(
    dirs: AppDirs, base: str
) -> None:
    collection = dirs.home / "collections" / "acme"
    write(collection / "parts/base.md", BASE)
    write(collection / "profiles/sound.md", head("../parts/base.md"))
    write(collection / "profiles/dev.md", head(base.format(Path.home())))
    write(Path.home() / "own.md", BASE)
    write(dirs.home / "own.md", BASE)
    assert compiled(dirs, "acme:sound").model == "acme/small"
    reported = problem(dirs, "acme:dev")
    assert "leads out of what came with the profile" in reported
    assert "line 2, profile.extends: acme:dev -> " in reported


def test_path_into_projects_own_folder_is_no_way_around_trust(
    dirs: AppDirs,
) -> None:
    write(dirs.root / ".amplifier/profiles/theirs.md", BASE)
    assert "nobody trusted the profiles" in problem(
        dirs, "./.amplifier/profiles/theirs.md"
    )


@pytest.mark.parametrize(
    "name",
    [
        "acme:base",
        "acme:profiles/base.md",
        "base",
        "./base.md",
        "~/.amplifier/x/base.md",
    ],
)
def test_a_profile_has_several_names(dirs: AppDirs, name: str) -> None:
    folder = dirs.home / "collections" / "acme"
    write(folder / "pyproject.toml", '[project]\nname = "Acme"\nversion = "2"\n')
    write(folder / "profiles" / "base.md", BASE)
    write(folder / "profiles" / "README.md", "no profile")
    write(dirs.working_dir / "base.md", BASE)
    write(dirs.home / "x" / "base.md", BASE)
    assert compiled(dirs, name).instruction == "You are the base."
    assert "acme:base" in ProfileLibrary.of(dirs).names()
    assert not any(name.endswith("README") for name in ProfileLibrary.of(dirs).names())


@pytest.mark.parametrize(
    "name", ["acme:../../../secret", "acme:profiles/../../x", "nowhere:base"]
)
def test_a_collections_name_leads_nowhere_else(dirs: AppDirs, name: str) -> None:
    write(dirs.home / "collections" / "acme" / "profiles" / "base.md", BASE)
    write(dirs.home / "secret.md", BASE)
    write(dirs.home / "collections" / "x.md", BASE)
    assert "no such profile" in problem(dirs, name)


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("---\nprofil: {name: x}\n---\n", "did you mean 'profile'"),
        ("---\nprofile: {nam: x}\n---\n", "did you mean 'name'"),
        ("---\ntools: tool-bash\n---\n", "tools"),
        ("---\nagents: some\n---\n", "agents"),
        ("---\nui: {show_tool_line: true}\n---\n", "show_tool_lines"),
        ("---\nprofile: [\n---\n", "line"),
        ("---\nprofile: {name: x}\n", "does not end"),
    ],
)
def test_what_is_wrong_is_named(dirs: AppDirs, text: str, reported: str) -> None:
    path = user(dirs, "dev", text)
    assert reported in problem(dirs, "dev")
    assert str(path) in problem(dirs, "dev")


def test_a_profile_that_is_no_text_is_named(dirs: AppDirs) -> None:
    with pytest.raises(ConfigError, match="not UTF-8 at byte 0"):
        parse_file(b"\xff", kind="profile", path=Path("x.md"), level="user")


@given(
    st.recursive(
        st.integers() | st.text(max_size=5),
        lambda inner: st.dictionaries(
            st.text("abc", min_size=1, max_size=3), inner, min_size=1, max_size=3
        ),
        max_leaves=8,
    )
)
def test_a_plans_values_have_one_path_each(value: object) -> None:
    paths = [path for path, _ in flatten(value)]
    assert len(paths) == len(set(paths))


# -- agents


AGENT = "---\nmeta: {name: reviewer, description: Reads  changes.}\ntools: [tool-filesystem]\n---\nYou review.\n"


def agents(dirs: AppDirs, **environ: str) -> AgentLibrary:
    library = ProfileLibrary.of(dirs)
    return AgentLibrary(dirs, library.project, library.collections, environ)


def test_an_agent_becomes_an_entry_of_the_plan(dirs: AppDirs) -> None:
    write(dirs.home / "agents" / "reviewer.md", AGENT)
    assert agents(dirs).choose("all")["reviewer"] == {
        "description": "Reads changes.",
        "tools": ["tool-filesystem"],
        "system": {"instruction": "You review."},
    }
    assert agents(dirs).choose("none") == {}
    assert list(agents(dirs).choose(["reviewer"])) == ["reviewer"]


def test_an_unknown_agent_is_named_with_the_nearest(dirs: AppDirs) -> None:
    write(dirs.home / "agents" / "reviewer.md", AGENT)
    with pytest.raises(ConfigError, match="did you mean 'reviewer'"):
        agents(dirs).choose(["reviewr"])


def test_the_strongest_agent_of_a_name_wins(dirs: AppDirs, tmp_path: Path) -> None:
    write(dirs.home / "agents" / "reviewer.md", AGENT)
    write(
        dirs.home / "collections" / "acme" / "agents" / "reviewer.md",
        AGENT.replace("You review", "Acme's"),
    )
    write(
        dirs.root / ".amplifier/agents/reviewer.md",
        AGENT.replace("You review", "The project's"),
    )
    untrusted = agents(dirs)
    assert "reviewer" not in untrusted.all()  # no other stands in for it
    assert [file.is_untrusted for file in untrusted.invalid] == [True]
    trust(dirs, "agents")
    assert agents(dirs).all()["reviewer"].level == "project"
    own = write(tmp_path / "mine.md", "Mine.")
    found = agents(dirs, AMPLIFIER_AGENT_REVIEWER=str(own)).all()["reviewer"]
    assert (found.level, found.description) == ("environment", "")
    assert found.plan["system"] == {"instruction": "Mine."}


def test_a_readme_and_what_stands_deeper_are_no_agents(dirs: AppDirs) -> None:
    for folder in (
        dirs.home / "agents",
        dirs.root / ".amplifier/agents",
        dirs.home / "collections/x/agents",
    ):
        write(folder / "README.md", "What these are.")
        write(folder / "parts/more.md", "Not alone.")
    trust(dirs, "agents")
    assert not {"README", "more"} & set(agents(dirs).all())


def test_the_sources_of_an_agent_count_from_its_file(
    dirs: AppDirs, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "---\ntools: [{module: tool-x, source: ./x}]\n---\n"
    write(dirs.home / "agents/own.md", text)
    write(dirs.working_dir / "given.md", text)
    monkeypatch.chdir(dirs.home)
    found = agents(dirs, AMPLIFIER_AGENT_GIVEN="./given.md").all()
    assert found["own"].plan["tools"] == [
        {"module": "tool-x", "source": str(dirs.home / "agents/x")}
    ]
    assert found["given"].plan["tools"] == [
        {"module": "tool-x", "source": str(dirs.working_dir / "x")}
    ]


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("---\nmeta: {nam: x}\n---\n", "did you mean"),
        ("---\nx: 1\n---\n", "unknown"),
        ("---\n", "does not end"),
    ],
)
def test_invalid_agent_named_and_keeps_no_other_from_being_used(
    dirs: AppDirs, text: str, reported: str
) -> None:
    path = write(dirs.home / "agents" / "bad.md", text)
    write(dirs.home / "agents" / "good.md", AGENT)
    library = agents(dirs)

    found = library.all()

    assert "reviewer" in found  # the other file's agent
    assert "bad" not in found
    (invalid,) = library.invalid
    assert (invalid.name, invalid.path, invalid.level) == ("bad", path, "user")
    with pytest.raises(ConfigError, match=reported) as caught:
        library.require("bad")
    assert str(path) in str(caught.value)


def test_invalid_agent_of_environment_hides_one_of_its_name(
    dirs: AppDirs,
) -> None:
    write(dirs.home / "agents" / "reviewer.md", AGENT)
    broken = write(dirs.working_dir / "broken.md", "---\nx: 1\n---\n")
    library = agents(dirs, AMPLIFIER_AGENT_REVIEWER=str(broken))

    assert "reviewer" not in library.all()
    with pytest.raises(ConfigError, match=r"broken\.md"):
        library.choose(["reviewer"])


def test_an_invalid_profile_is_listed_with_its_problem(dirs: AppDirs) -> None:
    user(dirs, "good", "---\nprofile: {description: Good.}\n---\n")
    path = user(dirs, "bad", "---\nprofile: {nme: x}\n---\n")

    found = {file.name: file for file in ProfileLibrary.of(dirs).all()}

    assert isinstance(found["good"], ProfileFile)
    invalid = found["bad"]
    assert isinstance(invalid, InvalidFile)
    assert str(path) in invalid.problem
    assert "did you mean 'name'" in invalid.problem


def test_a_project_without_trust_shows_what_is_withheld(dirs: AppDirs) -> None:
    write(dirs.root / ".amplifier/agents/theirs.md", AGENT)
    project = ProjectFiles(dirs)
    assert project.contents("agents") == {}
    assert [decision.kind for decision in project.withheld] == ["agents"]


def test_an_untrusted_collection_claims_the_names_of_its_agents(dirs: AppDirs) -> None:
    write(dirs.root / ".amplifier/collections/theirs/agents/x.md", AGENT)
    write(dirs.home / "collections/acme/agents/reviewer.md", AGENT)

    with pytest.raises(ConfigError, match="is not trusted"):
        agents(dirs).require("reviewer")
    trust(dirs, "profiles")
    assert agents(dirs).require("reviewer").path.is_relative_to(dirs.root)
