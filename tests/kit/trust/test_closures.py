"""All that a project's files would run is known before anything runs, however it is written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from amplifier_kit.files.private import PrivateFile
from amplifier_kit.trust import (
    TrustStore,
    changed_code,
    closure_of,
    covered_paths,
    evaluate_project,
)
from amplifier_sdk.jsontypes import JSONValue

SCRIPTS = (
    "run.sh",
    "tools/check.sh",
    "my dir/a b.sh",
    "hooks.d/one.sh",
    "hooks.d/two.sh",
    "mod/__init__.py",
    "x.py",
)


def settings(command: JSONValue, **beside: JSONValue) -> dict[str, bytes]:
    hooks: JSONValue = {
        "hooks": {
            "Stop": [{"hooks": [{"type": "command", "command": command, **beside}]}]
        }
    }
    return {".claude/settings.json": json.dumps(hooks).encode()}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with scripts."""
    folder = tmp_path / "project"
    for name in SCRIPTS:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    return folder


@pytest.fixture
def store(tmp_path: Path) -> TrustStore:
    """A store of its own."""
    return TrustStore(PrivateFile(tmp_path / "home" / "trust.json"))


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("sh tools/check.sh", ["tools/check.sh"]),
        ("./run.sh && sh ./tools/../tools/check.sh", ["run.sh", "tools/check.sh"]),
        ('"$CLAUDE_PROJECT_DIR"/run.sh', ["run.sh"]),
        ("${CLAUDE_PROJECT_DIR}/run.sh", ["run.sh"]),
        ('"$(git rev-parse --show-toplevel)"/run.sh', ["run.sh"]),
        ('"$(git rev-parse --show-toplevel)/my dir/a b.sh"', ["my dir/a b.sh"]),
        ("`pwd`/run.sh", ["run.sh"]),
        ("${ROOT:-.}/tools/check.sh", ["tools/check.sh"]),
        ("${ROOT:-tools}/check.sh", ["tools/check.sh"]),
        ("cd tools && ./check.sh", ["tools/check.sh"]),
        ("(cd 'tools'; . ./check.sh)", ["tools/check.sh"]),
        ("'my dir/a b.sh'", ["my dir/a b.sh"]),
        ("my\\ dir/a\\ b.sh", ["my dir/a b.sh"]),
        ('"my dir"/"a b".sh --quick', ["my dir/a b.sh"]),
        ("bash -c 'source run.sh'", ["run.sh"]),
        ('env A=1 timeout bash -c "cd tools; bash check.sh"', ["tools/check.sh"]),
        ("eval './run.sh'", ["run.sh"]),
        ("S=./run.sh; $S", ["run.sh"]),
        ("sh < run.sh", ["run.sh"]),
        ("xargs -n1 sh run.sh", ["run.sh"]),
        ("python3 --config=tools/check.sh", ["tools/check.sh"]),
        ("python3 -m mod", ["mod"]),
        ("python3 -c 'import x'", ["x.py"]),
        ('for f in hooks.d/*.sh; do . "$f"; done', ["hooks.d"]),
        ("sh hooks.d/$NAME.sh", ["hooks.d"]),
        ("./later.sh", ["later.sh"]),
        ("sh later", ["later"]),
        ("make check", ["GNUmakefile", "Makefile", "makefile"]),
        ("npm run lint", ["package.json"]),
        ("npm --prefix tools run lint", ["package.json", "tools/package.json"]),
        ("env -S 'sh run.sh'", ["run.sh"]),
        ("env --split-string='sh later'", ["later"]),
        ("timeout 5s sh later", ["later"]),
        ("timeout -k 1 5 ./later.sh", ["later.sh"]),
        ("bash -O extglob -x later", ["later"]),
        ("bash --rcfile run.sh -ic true", ["run.sh"]),
        ("bash -xec ./run.sh", ["run.sh"]),
        ("python3 -Bm x", ["x.py"]),
        ("python3 -mmod", ["mod"]),
        ("python3 -W ignore -X dev -m x", ["x.py"]),
        ("python3 -c'import x'", ["x.py"]),
        ("PYTHONPATH=tools python3 -m check", ["tools/check.sh"]),
        ("perl -Itools -Mcheck -e 1", ["tools/check.sh"]),
        ("perl -pe 'require run' -- x", ["run.sh", "x.py"]),
        ("ruby -rx -e 1", ["x.py"]),
        ("node --eval='require(\"./run\")'", ["run.sh"]),
        ("node -r ./x.py run.sh", ["run.sh", "x.py"]),
        ("deno run later", ["deno.json", "deno.jsonc", "later"]),
        ("uv run -m x", ["x.py"]),
        ("uv run later.py", ["later.py"]),
        ("poetry run python -m x", ["x.py"]),
        ("npx tsx later.ts", ["later.ts"]),
        ("find hooks.d -name '*.sh' -exec sh {} \\;", ["hooks.d"]),
        ("find . -name '*.md' -exec cat {} +", []),
        ("ls hooks.d | xargs -n1 sh", ["hooks.d"]),
        ("go run ./tools", ["tools"]),
        ("go vet ./tools", []),
        ("PATH=tools:$PATH check.sh", ["tools/check.sh"]),
        ('export PATH="$PWD/tools:$PATH"; check.sh', ["tools/check.sh"]),
        ("sh ~+/run.sh", ["run.sh"]),
        ("sh /proc/self/cwd/run.sh", ["run.sh"]),
        ("sh $'run.sh'", ["run.sh"]),
        ("sh hooks.d/{one,two}.sh", ["hooks.d"]),
        ("cd tools && ./later.sh", ["later.sh", "tools/later.sh"]),
        ("jq -r .file >> run.sh", []),
        ('case "$1" in *.py) ruff format "$1";; *.sh) shfmt "$1";; esac', []),
        ("# ./run.sh\ntrue", ["run.sh"]),
        ("ls tools ../outside.sh /etc/hostname", []),
        ("[ -f x ] && test 1 -lt 2", []),
        ("true '", []),
        (["sh", "run.sh"], ["run.sh"]),
        (7, []),
        ([7], []),
    ],
)
def test_what_commands_run_is_found_in_every_spelling(
    project: Path, command: JSONValue, found: list[str]
) -> None:
    (project.parent / "outside.sh").touch()

    closure = closure_of(project, settings(command))

    assert (list(closure.items), closure.problem) == (found, None)


def test_the_arguments_of_a_command_count(project: Path) -> None:
    assert closure_of(project, settings("python3", args=["x.py", 7])).items == ("x.py",)


@pytest.mark.parametrize(
    "command",
    [
        "$(cat name)",
        'sh "$X"',
        "./$X",
        "sh *.sh",
        'eval "$X"',
        'python3 -c "$X"',
        "read c; $c",
        "A=$(cat b); $A",
        "~/$X/a.sh/$Y",
        "sh {a,b}.sh",
        "sh $'x\\x2esh'",
        "find . -exec sh {} +",
        "ls | xargs sh",
    ],
)
def test_what_is_only_named_while_it_runs_cannot_be_trusted(
    project: Path, store: TrustStore, command: str
) -> None:
    (project / ".claude").mkdir()
    (project / ".claude/settings.json").write_bytes(
        settings(command)[".claude/settings.json"]
    )

    decision = evaluate_project(store, project, "hooks")

    assert (decision.trusted, decision.can_be_trusted) == (False, False)
    assert "put together" in decision.reason
    with pytest.raises(ValueError, match="cannot be trusted"):
        store.grant(decision)


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("run.sh", '. "$(dirname "$0")/tools/check.sh"', ["tools/check.sh"]),
        ("run.sh", 'D=$(pwd)\n"$D/x.py" # don\'t\n', ["x.py"]),
        ("tools/check.sh", ". ./lib.sh", ["lib.sh", "tools/lib.sh"]),
        ("tools/check.sh", '"$@"; $1', []),
        ("tools/check.sh", 'sh "$X"', ["tools"]),
        ("hook", "exec ./run.sh", ["run.sh"]),
        (
            "tools/x.mk",
            "include later.mk\nall:\n\t@./run.sh",
            ["later.mk", "run.sh", "tools/later.mk"],
        ),
        ("Makefile", "D = tools\nall:\n\t$(D)/check.sh", ["tools/check.sh"]),
        ("x.py", "#!/usr/bin/python3\nimport mod", ["mod"]),
        ("x.py", "from tools import other", []),
        ("mod/a/b.py", "from mod.c import d", ["mod/c.py"]),
        ("x.py", "from lib.sub import (\n    c,\n)", ["lib/sub/c.py"]),
        ("shadow/x.py", "import re", ["shadow/json.py"]),
        ("mod/x.py", 'import importlib\nimportlib.import_module("c")', ["mod/c.py"]),
        ("mod/x.py", "import importlib\nimportlib.import_module(name)", ["mod"]),
        ("x.py", "sys.path.insert(0, 'mod')\nimport c", ["mod/c.py"]),
        ("x.py", 'subprocess.run(\n    ["sh",\n     "README.md"])', ["README.md"]),
        ("x.py", 'run(os.path.join("mod", "a", "one.sh"))', ["mod/a/one.sh"]),
        ("h.ts", 'import {a} from "./lib/util.js"', ["lib/util.js"]),
        ("h.ts", 'import {a} from "./mod/t.js"', ["mod/t.ts"]),
        ("x.py", 'subprocess.run(["sh", "tools/check.sh"])', ["tools/check.sh"]),
        ("x.py", 'protected = ["README.md"]', []),
        ("x.py", 'exec(open("README.md").read())', ["README.md"]),
        ("h.js", 'require("./lib/util")', ["lib/util.js"]),
        ("tool", "#!/usr/bin/env node\nrequire('./lib/util.js')", ["lib/util.js"]),
        ("binary", "\0run.sh", []),
        ("x.py", "a" * 3000, []),
    ],
)
def test_what_scripts_run_is_found(
    project: Path, name: str, text: str, found: list[str]
) -> None:
    for each in (
        "README.md",
        "lib/util.js",
        "mod/c.py",
        "mod/a/one.sh",
        "mod/t.ts",
        "lib/sub/c.py",
        "shadow/json.py",
    ):
        (project / each).parent.mkdir(exist_ok=True, parents=True)
        (project / each).touch()

    closure = closure_of(project, {name: text.encode()})

    assert (list(closure.items), closure.problem) == (found, None)


def test_place_in_project_may_be_named_from_machines_root(
    project: Path,
) -> None:
    assert closure_of(project, settings(f"sh {project}/run.sh")).items == ("run.sh",)


def test_commands_are_found_however_deep_they_stand(project: Path) -> None:
    deep = b'{"x":' * 900 + b'{"command": "sh run.sh"}' + b"}" * 900

    assert closure_of(project, {"hooks/hooks.json": deep}).items == ("run.sh",)


def test_what_is_looked_at_already_is_left_out(project: Path) -> None:
    contents = {**settings("sh run.sh tools/check.sh"), "run.sh": b""}

    assert closure_of(project, contents).items == ("tools/check.sh",)


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        (
            ".amplifier/settings.yaml",
            "sources: {tool-x: ./mod, tool-y: {path: tools}}",
            ["mod", "tools"],
        ),
        (
            ".amplifier/settings.yaml",
            "modules: {tools: [{module: a, source: mod}, {module: b, source: new}]}",
            ["mod", "new"],
        ),
        (
            ".amplifier/agents/a.md",
            "---\ntools: [{module: a, source: ../../mod}]\n---\nHi",
            ["mod"],
        ),
        (
            ".amplifier/profiles/a.md",
            "---\nsession: {orchestrator_source: ../../mod}\n---\n",
            ["mod"],
        ),
        (
            ".amplifier/settings.yaml",
            "sources: {a: 'git+https://h/r', b: 'https://h/x.zip', c: 7}",
            [],
        ),
        (
            ".amplifier/settings.yaml",
            "sources: {a: 'file://mod', b: ../../elsewhere}",
            ["mod"],
        ),
        (".amplifier/settings.yaml", "hooks: [{command: ./run.sh}]", ["run.sh"]),
        (".amplifier/commands/go.md", "Run: !`./run.sh now`", ["run.sh"]),
        (".amplifier/settings.yaml", "a: [", []),
        ("a.json", "{", []),
        ("b.json", "[" * 100_000, []),
        ("c.json", '["run.sh"]', []),
        (
            "d.json",
            '{"x": {"command": "node", "args": ["s.js"], "cwd": "tools"}, "y": {"cwd": "mod"}}',
            ["s.js", "tools"],
        ),
        (
            "e.json",
            '{"x": {"command": "node", "cwd": "."}, "y": {"command": "node", "cwd": 7}}',
            [],
        ),
        (
            "package.json",
            '{"main": "x.py", "scripts": {"a": "./run.sh"}, "files": ["*"]}',
            ["run.sh"],
        ),
        (
            "tools/package.json",
            '{"scripts": {"a": "sh check.sh", "b": "sh x.py"}}',
            ["tools/check.sh", "x.py"],
        ),
        (
            "Taskfile.yml",
            "tasks: {a: {cmds: [./run.sh, {cmd: ./x.py}]}}",
            ["run.sh", "x.py"],
        ),
        (
            ".pre-commit-config.yaml",
            "repos: [{hooks: [{id: x, entry: ./run.sh}]}]",
            ["run.sh"],
        ),
        ("run.md", "sh run.sh", []),
    ],
)
def test_sources_and_commands_are_found_in_every_document(
    project: Path, name: str, text: str, found: list[str]
) -> None:
    closure = closure_of(project, {name: text.encode()})

    named = [
        item
        for item in (*closure.items, *closure.sources)
        if not item.startswith(".amplifier/")
    ]
    assert (named, closure.problem) == (found, None)


@pytest.mark.parametrize("source", [".", "../project", "..", "/"])
def test_a_source_that_is_the_whole_project_cannot_be_trusted(
    project: Path, source: str
) -> None:
    problem = closure_of(
        project, {"settings.yaml": f"sources: {{tool-x: {source}}}".encode()}
    ).problem

    assert problem is not None
    assert "whole folder" in problem


def test_a_chain_of_scripts_is_trusted_as_a_whole(
    project: Path, store: TrustStore
) -> None:
    (project / ".claude").mkdir()
    (project / ".claude/settings.json").write_bytes(
        settings("cd tools && ./check.sh")[".claude/settings.json"]
    )
    (project / "tools/check.sh").write_text('. "$(dirname "$0")"/../run.sh\n')
    (project / "run.sh").write_text("python3 x.py\n")
    (project / "x.py").write_text("import mod\n")
    decision = evaluate_project(store, project, "hooks")
    assert set(decision.items) >= {
        "tools/check.sh",
        "run.sh",
        "x.py",
        "mod/__init__.py",
    }
    store.grant(decision)
    assert evaluate_project(store, project, "hooks").trusted
    assert changed_code(store, project, "cd tools && ./check.sh") == ()
    assert changed_code(store, project, "ls") == ()

    (project / "mod/other.py").write_text("evil")

    assert evaluate_project(store, project, "hooks").changed == ("mod/other.py",)
    assert changed_code(store, project, "cd tools && ./check.sh") == ("mod/other.py",)
    assert changed_code(store, project, "sh later.sh") == ()


@pytest.mark.parametrize(
    ("command", "text", "new"),
    [
        (
            "cd tools && sh check.sh",
            "[ -x ./extra.sh ] && ./extra.sh",
            "tools/extra.sh",
        ),
        ("cd mod && python3 tool.py", "import urllib.request", "mod/email.py"),
        ("cd mod && python3 tool.py", "import helper", "mod/helper.py"),
        ("python3 -m mod.tool", "", "json.py"),
        ("python3 -m mod.tool", "", "json/__init__.py"),
        (
            "PYTHONPATH=hooks.d python3 -m mod.tool",
            "import helper",
            "hooks.d/helper.py",
        ),
        ("PATH=hooks.d:$PATH sh tools/check.sh", "git status", "hooks.d/git"),
        ("sh tools/check.sh", "python3 -c 'import json'", "decimal.py"),
    ],
)
def test_what_trusted_command_runs_not_there_has_changed(
    project: Path, store: TrustStore, command: str, text: str, new: str
) -> None:
    (project / "tools/check.sh").write_text(text)
    (project / "mod/tool.py").write_text(text)
    (project / ".claude").mkdir()
    (project / ".claude/settings.json").write_bytes(
        settings(command)[".claude/settings.json"]
    )
    store.grant(evaluate_project(store, project, "hooks"))
    assert changed_code(store, project, command) == ()
    assert changed_code(store, project, command, trusted={}) == ()

    (project / "unrelated.py").touch()
    assert changed_code(store, project, command) == ()
    (project / new).parent.mkdir(exist_ok=True)
    (project / new).write_text("evil")

    assert new in [
        *changed_code(store, project, command),
        f"{changed_code(store, project, command)[0]}/__init__.py",
    ]
    assert changed_code(store, project, "ruff check lib") == ()
    assert not evaluate_project(store, project, "hooks").trusted


def test_unreadable_code_counts_as_changed(project: Path, store: TrustStore) -> None:
    (project / ".claude").mkdir()
    (project / ".claude/settings.json").write_bytes(
        settings("./run.sh")[".claude/settings.json"]
    )
    store.grant(evaluate_project(store, project, "hooks"))
    (project / "run.sh").unlink()
    (project / "run.sh").symlink_to("x.py")

    assert changed_code(store, project, "./run.sh") == ("run.sh",)


def test_an_endless_chain_cannot_be_trusted(project: Path, store: TrustStore) -> None:
    (project / ".claude").mkdir()
    (project / ".claude/settings.json").write_bytes(
        settings("./s0.sh")[".claude/settings.json"]
    )
    for number in range(20):
        (project / f"s{number}.sh").write_text(f"./s{number + 1}.sh\n")

    decision = evaluate_project(store, project, "hooks")

    assert not decision.can_be_trusted
    assert "more than 16" in decision.reason


def test_compiled_python_files_are_not_part_of_trusted_code(
    project: Path, store: TrustStore
) -> None:
    module = project / ".amplifier/modules/tool-x"
    (module / "__pycache__").mkdir(parents=True)
    (module / "x.py").touch()
    store.grant(evaluate_project(store, project, "modules"))

    (module / "__pycache__/x.pyc").touch()
    decision = evaluate_project(store, project, "modules")
    assert (decision.trusted, [*decision.contents]) == (
        True,
        [".amplifier/modules/tool-x/x.py"],
    )

    (module / "x.py").write_text("evil")
    assert evaluate_project(store, project, "modules").changed == (
        ".amplifier/modules/tool-x/x.py",
    )


def test_covered_paths_include_folders_and_missing_files(
    project: Path, store: TrustStore
) -> None:
    assert covered_paths(store, project) == ()
    (project / ".claude/hooks").mkdir(parents=True)
    (project / ".claude/hooks/x.sh").touch()
    (project / ".claude/settings.json").write_bytes(
        settings("./later.sh && ./run.sh")[".claude/settings.json"]
    )
    store.grant(evaluate_project(store, project, "hooks"))

    assert set(covered_paths(store, project)) == {
        *(
            ".amplifier/hooks",
            ".claude/hooks",
            ".claude/settings.json",
            ".claude/settings.local.json",
        ),
        *("later.sh", "run.sh"),
    }

    store.file.path.write_text("{")
    assert {".claude/hooks", ".amplifier/settings.yaml"} <= set(
        covered_paths(store, project)
    )


@pytest.mark.parametrize(
    ("kind", "name", "text", "named"),
    [
        ("skills", ".claude/skills/a/SKILL.md", "Run !`sh $X` or !`./run.sh`.", False),
        (
            "agents",
            ".amplifier/agents/a.md",
            "Never run !`sh $X` or !`./run.sh`.",
            False,
        ),
        ("commands", ".claude/commands/a.md", "Go: !`./run.sh`.", True),
        ("profiles", ".amplifier/collections/a/x.sh", "./run.sh", False),
        ("modules", ".amplifier/modules/a/x.sh", "./run.sh", False),
        ("plugins", ".amplifier/plugins/a/x.sh", "./run.sh", True),
        ("settings", ".amplifier/settings.yaml", "sources: {a: ./src}", False),
        (
            "mcp",
            ".mcp.json",
            '{"mcpServers": {"a": {"command": "sh", "args": ["./run.sh", "${X}"]}}}',
            True,
        ),
        (
            "mcp",
            ".mcp.json",
            '{"mcpServers": {"a": {"command": "sh", "args": ["${X}"]}}}',
            False,
        ),
    ],
)
def test_of_each_kind_that_counts_which_runs(
    project: Path, store: TrustStore, kind: str, name: str, text: str, named: bool
) -> None:
    (project / name).parent.mkdir(parents=True, exist_ok=True)
    (project / name).write_text(text)
    (project / "src").mkdir()
    (project / "src/a.sh").write_text("./run.sh")

    decision = evaluate_project(store, project, kind)

    assert decision.can_be_trusted
    assert ("run.sh" in decision.items) is named
