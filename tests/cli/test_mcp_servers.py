"""MCP servers at the command line: added, listed with their states, offered by a folder, removed."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amplifier.app.directories import AppDirs
from amplifier.app.mcp.entries import ServerEntry, add_server, remove_server
from amplifier_kit.files.documents import read_mapping
from amplifier_sdk.jsontypes import JSONObject
from tests.cli.programs import call

CLOCK = (sys.executable, "-m", "mcp_server_time")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory."""
    folder = tmp_path / "shop"
    (folder / ".amplifier").mkdir(parents=True)
    monkeypatch.chdir(folder)
    return folder


def _settings() -> Path:
    return AppDirs.find().home / "settings.yaml"


def _states() -> dict[str, str]:
    listed = json.loads(call("mcp", "list", "--json").stdout)
    return {server["name"]: server["state"] for server in listed}


@pytest.mark.process
def test_an_added_server_connects_and_lists_its_tools() -> None:
    output = call("mcp", "add", "clock", "--", *CLOCK).stderr
    assert "amplifier mcp tools clock" in output
    assert _states() == {"clock": "connected"}

    tools = call("mcp", "tools", "clock").stdout
    assert "mcp__clock__convert_time      unknown  Convert time" in tools
    shown = call("mcp", "show", "clock").stdout
    assert shown.startswith("clock: connected\n  declared by: settings\n")
    asked = ("tool", "invoke", "mcp__clock__get_current_time", "timezone=UTC", "-y")
    assert "datetime" in call(*asked).stdout

    call("mcp", "remove", "clock")
    assert _states() == {}
    assert not read_mapping(_settings())


@pytest.mark.process
def test_a_server_that_fails_says_why_in_one_line() -> None:
    call("mcp", "add", "gone", "--", "no-such-program-anywhere")
    call("mcp", "add", "dark", "http://127.0.0.1:9/mcp")
    listed = call("mcp", "list", "--timeout", "5")
    assert {line.split()[1] for line in listed.stdout.splitlines()[1:]} == {"failed"}
    problems = listed.stderr.splitlines()
    assert [line.split(": ")[0] for line in problems] == ["dark", "gone"]
    assert "no-such-program-anywhere" in problems[1]


@pytest.mark.parametrize(
    "words",
    [
        ("https://shop.example/mcp", "--header", "Authorization: Bearer {}"),
        ("https://shop.example/mcp?key={}",),
        ("https://u:{}@shop.example/mcp",),
        ("--env", "API_KEY={}", "--", "shop"),
        ("--", "shop", "--token={}"),
    ],
)
def test_a_secret_is_never_written_into_settings(words: tuple[str, ...]) -> None:
    secret = "sk-ant-api03-Vb83kLmQ02xZpT7r"  # invented
    given_words = [word.format(secret) for word in words]
    refused = call("mcp", "add", "shop", *given_words, expect=1).output
    assert "amplifier config secret set" in refused
    assert secret not in refused
    assert not _settings().exists()


@pytest.mark.process
def test_a_stored_secret_reaches_the_server(folder: Path) -> None:
    note = folder.parent / "note"
    script = f"import os; open({str(note)!r}, 'w').write(os.environ['SHOP_TOKEN'])"
    added = call(
        "mcp", "add", "shop", "--env", "SHOP_TOKEN", "--", sys.executable, "-Ic", script
    )
    assert "amplifier config secret set SHOP_TOKEN" in added.stderr
    listed = call("mcp", "list")
    assert "SHOP_TOKEN is not set" in listed.stderr
    assert not note.exists()

    call("config", "secret", "set", "SHOP_TOKEN", input="hidden-value\n")
    listed = call("mcp", "list", "--timeout", "5")
    assert note.read_text() == "hidden-value"
    assert "hidden-value" not in listed.output + _settings().read_text()


@pytest.mark.process
def test_what_a_folder_declares_is_offered_and_not_run(folder: Path) -> None:
    servers = {"clock": {"command": CLOCK[0], "args": list(CLOCK[1:])}}
    declared = folder / ".mcp.json"
    declared.write_text(json.dumps({"mcpServers": servers}))
    assert _states() == {"clock": "refused"}
    assert "amplifier mcp add" in call("mcp", "list").stderr

    call("mcp", "add", input="n\n", expect=1)
    assert _states() == {"clock": "refused"}
    offered = call("mcp", "add", input="y\n")
    assert "mcp_server_time" in offered.stdout
    assert "reads or runs .mcp.json" in offered.stderr
    assert _states() == {"clock": "connected"}

    servers["clock"]["args"] = ["-m", "another"]
    declared.write_text(json.dumps({"mcpServers": servers}))
    assert _states() == {"clock": "refused"}


def test_scopes_have_servers_of_their_own(folder: Path) -> None:
    call("mcp", "add", "mine", "--scope", "local", "https://shop.example/mcp")
    local = folder / ".amplifier" / "settings.local.yaml"
    assert "shop.example" in local.read_text()
    refused = call("mcp", "remove", "mine", expect=1).stderr
    assert "--scope local" in refused
    assert (
        "did you mean 'mine'"
        in call("mcp", "remove", "nine", "--scope", "local", expect=1).stderr
    )
    call("mcp", "remove", "mine", "--scope", "local")
    assert not read_mapping(local)


def test_a_name_is_taken_once_unless_it_is_forced() -> None:
    call("mcp", "add", "shop", "https://shop.example/one")
    assert (
        "--force"
        in call("mcp", "add", "shop", "https://shop.example/two", expect=1).stderr
    )
    call("mcp", "add", "shop", "https://shop.example/two", "--force")
    assert "example/one" not in _settings().read_text()
    for name in ("a__b", "../up", "_a", "é", "a" * 41):
        assert "NAME" in call("mcp", "add", name, "x", expect=1).stderr
    assert "URL" in call("mcp", "add", "shop", expect=2).stderr
    assert (
        "no headers"
        in call("mcp", "add", "x", "--header", "A: b", "--", "shop", expect=1).stderr
    )


WORDS = st.text(st.characters(codec="ascii", categories=["L", "N", "P", "S", "Zs"]))


@given(st.lists(WORDS, max_size=4))
def test_a_command_is_stored_as_it_was_typed(
    tmp_path_factory: pytest.TempPathFactory, words: list[str]
) -> None:
    home = tmp_path_factory.mktemp("home")
    dirs = AppDirs(working_dir=home, home=home, root=home)
    config: JSONObject = {"command": "shop", "args": [*words]}
    add_server("shop", config, scope="user", dirs=dirs)
    add_server("other", config, scope="user", dirs=dirs)
    remove_server("other", scope="user", dirs=dirs)

    from amplifier.app.settings.settings import load_settings

    layer = load_settings(dirs).layers[0]
    key = ("modules", "tools", 0, "config", "servers", "shop")
    assert layer.expanded(key, lambda _: None) == config
    remove_server("shop", scope="user", dirs=dirs)
    assert not read_mapping(home / "settings.yaml")


def test_variables_by_name_are_references() -> None:
    entry = ServerEntry(target=("shop",), env=("A_TOKEN", "MODE=fast"))
    assert entry.to_config() == {
        "command": "shop",
        "env": {"A_TOKEN": "${A_TOKEN}", "MODE": "fast"},
    }
