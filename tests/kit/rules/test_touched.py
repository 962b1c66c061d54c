"""Which paths a call touches, whatever its arguments are called."""

from __future__ import annotations

from pathlib import Path

import pytest

from amplifier_kit.rules import RuledCall, RuleSet, touched_paths
from amplifier_sdk.effects import Effect
from amplifier_sdk.jsontypes import JSONObject, JSONValue

READ: tuple[Effect, ...] = ("read",)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A folder with something to protect."""
    (tmp_path / "secrets").mkdir()
    (tmp_path / "src").mkdir()
    (tmp_path / "secrets/key").touch()
    return tmp_path


def decision(
    work: Path,
    tool: str,
    arguments: JSONObject,
    effects: tuple[Effect, ...] | None,
    paths: str,
) -> str:
    rules = RuleSet.load(
        [{"decision": "deny", "paths": [paths]}], directory=work, otherwise="allow"
    )
    known = None if effects is None else frozenset(effects)
    return rules.evaluate(
        RuledCall(tool_name=tool, arguments=arguments, directory=work, effects=known)
    ).decision


NESTED: JSONValue = {"filePath": "secrets/key"}
for _ in range(50):
    NESTED = [NESTED]


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        *(
            ("mcp_fs_read", {name: "secrets/key"})
            for name in (
                "path", "filePath", "file_path", "FilePath", "FILE_PATH", "target_file", "targetFile", "target-file",
                "absolutePath", "relative_workspace_path", "notebookPath", "fileName", "file_name", "dirName", "path2",
                "files", "sourceFilePath", "cwd", "workDir", "workingDirectory", "save_to_file", "destination", "src",
            )
        ),
        ("mcp_fs_read", {"paths": ["src/a", "secrets/key"]}),
        ("mcp_fs_read", {"operations": [{"filePath": "secrets/key"}]}),
        ("mcp_fs_read", {"files": [{"filePath": "./src/../secrets/key"}]}),
        ("mcp_fs_read", {"files": "src/a,secrets/key"}),
        ("mcp_fs_read", {"files": '["src/a", "secrets/key"]'}),
        ("mcp_fs_read", {"filePath": "file:{work}/secrets/key"}),
        ("mcp_fs_read", {"uri": "file://{work}/secrets/key"}),
        ("mcp_fs_read", {"path": "file://{work}/secrets%2Fkey"}),
        ("mcp_fs_read_files", {"paths": ["s*/key"]}),
        ("mcp_fs_read_files", {"paths": ["{{secrets,src}}/key"]}),
        ("grep", {"pattern": "x"}),
        ("grep", {"pattern": "x", "path": None}),
        ("grep", {"pattern": "x", "path": "."}),
        ("grep", {"pattern": "x", "path": "{work}"}),
        ("grep", {"pattern": "x", "glob": "secrets/*"}),
        ("grep", {"pattern": "x", "path": "secrets"}),
        ("glob", {"pattern": "**/*"}),
        ("list_directory", {"depth": 2}),
        ("mcp_fs_search_files", {"query": "x"}),
        ("mcp_fs_directory_tree", {"path": "."}),
        ("codebaseSearch", {"query": "x"}),
        ("mcp_fs_search_code", {"include": ["*.py"]}),
    ],
)  # fmt: skip
def test_a_denied_path_is_seen_in_every_spelling(
    work: Path, tool: str, arguments: JSONObject
) -> None:
    def placed(value: JSONValue) -> JSONValue:
        if isinstance(value, dict):
            return {key: placed(item) for key, item in value.items()}
        if isinstance(value, list):
            return [placed(item) for item in value]
        return value.format(work=work) if isinstance(value, str) else value

    arguments = {key: placed(value) for key, value in arguments.items()}

    assert decision(work, tool, arguments, READ, "secrets/**") == "deny"


@pytest.mark.parametrize(
    ("tool", "arguments", "effects"),
    [
        ("grep", {"pattern": "secrets/key", "path": "src"}, READ),
        ("glob", {"pattern": "*.py", "path": "src"}, READ),
        ("list_directory", {}, READ),
        ("list_directory", {"path": ".", "depth": 1}, READ),
        ("read_file", {"file_path": "src/[id],{a}*.py"}, READ),
        ("mcp_gh_list_issues", {"query": "secrets/key"}, READ),
        ("web_search", {"query": "secrets/key"}, READ),
        (
            "mcp_x_get",
            {"uri": "https://example.com/secrets/key", "file_content": "secrets/key"},
            READ,
        ),
        ("mcp_x_get", {"path": True, "file": {}, "": "secrets/key"}, READ),
    ],
)
def test_what_a_call_does_not_touch_is_not_denied(
    work: Path, tool: str, arguments: JSONObject, effects: tuple[Effect, ...]
) -> None:
    assert decision(work, tool, arguments, effects, "secrets/**") == "allow"


def test_what_stands_too_deep_and_what_is_no_path_asked_about(work: Path) -> None:
    assert decision(work, "mcp_x_get", {"deep": NESTED}, READ, "secrets/**") == "ask"
    assert decision(work, "mcp_x_get", {"filePath": 7}, READ, "secrets/**") == "ask"


@pytest.mark.parametrize(
    ("denied", "path", "expected"),
    [
        ("**/*.env", "src", "deny"),
        ("**/*.env", "src/a/b", "deny"),
        ("*/a/*.env", "src", "deny"),
        ("*/a/*.env", "src/a", "deny"),
        ("*/b/*.env", "src/a", "allow"),
        ("*/*.env", "src/a", "allow"),
        ("src/*", "src/a/b", "allow"),
        ("**/*.env", "src/file.py", "allow"),
    ],
)
def test_search_is_denied_where_something_in_its_folder_may_fit(
    work: Path, denied: str, path: str, expected: str
) -> None:
    (work / "src/a/b").mkdir(parents=True)
    (work / "src/file.py").touch()

    assert (
        decision(work, "grep", {"pattern": "x", "path": path}, READ, denied) == expected
    )
    changing = {"deny": "ask"}.get(expected, expected)
    assert decision(work, "delete", {"path": path}, ("write",), denied) == changing


def test_an_allowed_search_stays_in_what_is_allowed(work: Path) -> None:
    rules = RuleSet.load(
        [{"decision": "allow", "paths": ["src/**"]}], directory=work, otherwise="ask"
    )

    def evaluated(arguments: JSONObject) -> str:
        return rules.evaluate(
            RuledCall(tool_name="grep", arguments=arguments, directory=work)
        ).decision

    assert evaluated({"pattern": "x", "path": "src"}) == "allow"
    assert evaluated({"pattern": "x"}) == "ask"
    assert evaluated({"pattern": "x", "path": "src,secrets"}) == "ask"


def test_a_call_tells_how_it_touches_its_paths(work: Path) -> None:
    call = RuledCall(
        tool_name="move", arguments={"source": "a", "destination": "b"}, directory=work
    )

    assert [(path.value, path.is_searched) for path in touched_paths(call)] == [
        ("a", False),
        ("b", False),
    ]


@pytest.mark.parametrize(
    "arguments",
    [
        {"baseUrl": "https://x.example/"},
        {"Base-URL": "https://x.example/"},
        {"a": [{"URL": "https://x.example"}]},
    ],
)
def test_addresses_are_seen_in_every_spelling_too(
    work: Path, arguments: JSONObject
) -> None:
    rules = RuleSet.load(
        [{"decision": "deny", "hosts": ["x.example"]}],
        directory=work,
        otherwise="allow",
    )

    def evaluated(given: JSONObject) -> str:
        return rules.evaluate(
            RuledCall(tool_name="mcp_x_get", arguments=given, directory=work)
        ).decision

    assert evaluated(arguments) == "deny"
    assert evaluated({"deep": NESTED}) == "ask"


SHELL: tuple[Effect, ...] = ("exec",)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("cat secrets/key", "deny"),
        ("cat Secrets/KEY", "deny"),
        ("echo x > secrets/new", "deny"),
        ("mv secrets/key src/", "deny"),
        ("cat s*/key", "deny"),
        ("ls && mv s*/key src", "deny"),
        ("cat {secrets,src}/key", "deny"),
        ("cd secrets && cat key", "deny"),
        ("ls; cd secrets; cat key", "deny"),
        ("grep -r x .", "deny"),
        ("tar c .", "deny"),
        ("cp -r . /tmp", "deny"),
        ("find . -exec cat {} +", "deny"),
        ("bash -c 'cat secrets/key'", "deny"),
        ("git add -A", "ask"),
        ("git diff", "ask"),
        ("cat $x", "ask"),
        ("mv . /elsewhere", "ask"),
        ("pytest", "ask"),
        ("unheard-of", "ask"),
        ("cat '", "ask"),
        ("cat src/a", "allow"),
        ("grep -rn secrets/key src", "allow"),
        ("echo secrets/key", "allow"),
        ("ls -la", "allow"),
        ("git status", "allow"),
        ("mkdir -p src/new && cp src/a src/new/b", "allow"),
    ],
)
def test_a_shell_text_touches_what_its_words_lead_to(
    work: Path, command: str, expected: str
) -> None:
    (work / "src/a").touch()

    assert decision(work, "bash", {"command": command}, SHELL, "secrets/**") == expected
    as_argument = decision(
        work, "mcp_shell_run", {"nested": [{"cmd": command}]}, None, "secrets/**"
    )
    assert as_argument == expected


def test_a_shell_text_starts_where_the_shell_is(work: Path) -> None:
    rules = RuleSet.load(
        [{"decision": "deny", "paths": ["secrets/**"]}],
        directory=work,
        otherwise="allow",
    )

    def evaluated(command: JSONValue, folder: Path | None) -> str:
        call = RuledCall(
            tool_name="bash",
            arguments={"command": command},
            directory=work,
            shell_directory=folder,
        )
        return rules.evaluate(call).decision

    assert evaluated("cat key", work / "secrets") == "deny"
    assert evaluated("cat ../secrets/key", work / "src") == "deny"
    assert evaluated("cat key", None) == "allow"
    assert evaluated(7, None) == "ask"


def test_a_path_allows_no_command(work: Path) -> None:
    rules = RuleSet.load(
        [{"decision": "allow", "paths": ["src/**"]}], directory=work, otherwise="ask"
    )

    def evaluated(arguments: JSONObject) -> str:
        return rules.evaluate(
            RuledCall(tool_name="mcp_shell_run", arguments=arguments, directory=work)
        ).decision

    assert evaluated({"command": "cat src/a"}) == "ask"
    assert evaluated({"command": "unheard-of", "cwd": "src"}) == "ask"
    assert evaluated({"cwd": "src"}) == "allow"


def test_without_the_grammar_a_shell_text_may_touch_anything(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("amplifier_kit.rules.calls.find_spec", lambda name: None)

    assert decision(work, "bash", {"command": "ls"}, SHELL, "secrets/**") == "ask"
