"""Providers at the command line: listed, chosen, asked, tested, and the first set-up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest
import yaml

from amplifier.app.providers.local_servers import LocalServer
from amplifier.app.sources.installers import Installer
from tests.app.installing import ACME, install, install_ours
from tests.cli.programs import call

TRIALS: Final = "site/cli_trials-1.0.dist-info/entry_points.txt"


@pytest.fixture(autouse=True)
def own(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The person's own folder; the working directory is an empty project."""
    install_ours(site, "loop-basic", "context-simple", "provider-local")
    points = {
        "provider-acme": "acme_modules:mount",
        "provider-lost": "acme_modules:mount_lost",
    }
    install(site, "acme-modules", points, ACME)
    project = tmp_path / "shop"
    (project / ".git").mkdir(parents=True)
    monkeypatch.chdir(project)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")
    monkeypatch.delenv("ACME_KEY", raising=False)
    # each look at all of them would wait for the one that never mounts
    trials = tmp_path / TRIALS
    trials.write_text(trials.read_text().replace("provider-forever", "tool-forever"))
    # what runs on the machine of the tests is no part of them
    monkeypatch.setattr("amplifier.app.providers.local_servers.KNOWN", ())
    return tmp_path / "own"


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let what is typed come from a terminal."""

    class Terminal:
        def __init__(self, stream: object) -> None:
            self._stream = stream

        def isatty(self) -> bool:
            return True

        def __getattr__(self, name: str) -> object:
            return getattr(self._stream, name)

    class Sys:
        def __getattr__(self, name: str) -> object:
            import sys

            return Terminal(sys.stdin) if name == "stdin" else getattr(sys, name)

    monkeypatch.setattr("amplifier.cli.init.sys", Sys())


def settings(own: Path) -> dict[str, object]:
    read: dict[str, object] = yaml.safe_load((own / "settings.yaml").read_text())
    return read


# -- provider


def test_providers_are_listed_with_whether_their_keys_are_there(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trials = tmp_path / TRIALS
    without = trials.read_text()
    trials.write_text(without.replace("tool-forever", "provider-forever"))
    result = call("provider", "list", "--timeout", "2")
    trials.write_text(without)
    rows = {line[3:].split()[0]: line for line in result.stdout.splitlines()[1:]}
    assert "missing" in rows["provider-acme"]
    assert rows["provider-local"].startswith("*  ")
    assert "the disk is gone" in rows["provider-lost"]
    assert "not mounted within 2 s" in rows["provider-forever"]
    assert "mounting acme" not in result.stdout
    monkeypatch.setenv("ACME_KEY", "s3cret")
    result = call("provider", "list", "--timeout", "2", "--json")
    listed = {state["name"]: state for state in json.loads(result.stdout)}
    assert listed["provider-acme"] == {
        "name": "provider-acme",
        "module": "provider-acme",
        "used": False,
        "asked": False,
        "display_name": "Acme",
        "model": "acme-1",
        "keys": [{"variable": "ACME_KEY", "source": "environment"}],
        "needs_key": False,
        "problem": None,
    }
    assert "s3cret" not in result.output


def test_a_provider_is_chosen_and_asked(
    own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert call("provider", "current").stdout == "provider-local\n"
    output = call(
        "provider", "use", "acme", "--model", "acme-2", "--config", "priority=3"
    ).stderr
    assert "New sessions ask provider-acme for acme-2" in output
    assert "amplifier config secret set ACME_KEY" in output
    assert settings(own)["config"] == {
        "providers": [
            {
                "module": "provider-acme",
                "config": {"priority": 3, "default_model": "acme-2"},
            }
        ],
        "active": "provider-acme",
    }
    assert (
        json.loads(call("provider", "current", "--json").stdout)["module"]
        == "provider-acme"
    )
    assert "api_key: missing" in call("provider", "test", expect=1).stderr
    monkeypatch.setenv("ACME_KEY", "k")
    tested = call("provider", "test")
    assert tested.stdout == "OK from acme-2\n"
    assert "7 tokens in, 2 out, 0.25 USD" in tested.stderr
    data = json.loads(
        call("provider", "test", "acme", "--model", "acme-3", "--json").stdout
    )
    assert (data["text"], data["cost_usd"], data["input_tokens"]) == (
        "OK from acme-3",
        "0.25",
        7,
    )
    assert call("provider", "models").stdout.splitlines()[1].split() == [
        "acme-2",
        "1000",
        "100",
    ]
    assert json.loads(call("provider", "models", "--json").stdout)[0]["id"] == "acme-2"


@pytest.mark.parametrize("option", ["priority", "=3", "priority=["])
def test_an_option_that_cannot_be_read_is_wrong_usage(option: str) -> None:
    call("provider", "use", "acme", "--config", option, expect=2)


def test_a_mistake_in_the_choice_changes_nothing(own: Path) -> None:
    assert "did you mean 'acme'" in call("provider", "use", "acmee", expect=1).stderr
    assert (
        "colour: unknown"
        in call("provider", "use", "acme", "--config", "colour=red", expect=1).stderr
    )
    assert not (own / "settings.yaml").exists()


def test_unusable_setup_is_reported_and_choosing_still_works(
    own: Path,
) -> None:
    own.mkdir()
    (own / "settings.yaml").write_text("profile: {active: nowhere}\n")
    assert "no such profile" in call("provider", "list", "--timeout", "2").stderr
    assert "no such profile" in call("provider", "current", expect=1).stderr
    assert "no such profile" in call("provider", "use", "acme").stderr


# -- init


def test_without_a_terminal_nothing_is_asked(own: Path) -> None:
    assert "give --provider ID, or --yes" in call("init", expect=2).stderr
    assert (
        "would set provider: provider-local"
        in call("init", "--yes", "--dry-run").stdout
    )
    assert not (own / "settings.yaml").exists()
    call("init", "--yes", "--provider", "local", "--scope", "user")
    assert settings(own)["config"] == {"active": "provider-local"}


def test_key_from_pipe_or_variable_is_kept_and_never_shown(
    own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = call(
        "init",
        "--provider",
        "acme",
        "--key-stdin",
        "--model",
        "acme-5",
        "--test",
        input="s3cret\nmore\n",
    )
    assert "s3cret" not in result.output
    assert "OK from acme-5" in result.stderr
    assert "It cost 0.25 USD" in result.stderr
    assert json.loads((own / "secrets.json").read_text()) == {
        "ACME_KEY": {"value": "s3cret"}
    }
    monkeypatch.setenv("MY_KEY", "0ther")
    result = call("init", "--provider", "acme", "--key-from-env", "MY_KEY")
    assert "0ther" not in result.output
    assert json.loads((own / "secrets.json").read_text()) == {
        "ACME_KEY": {"value": "0ther"}
    }


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        (("--key-stdin", "--key-from-env", "X"), "use one of them"),
        (("--provider", "local", "--dry-run", "--test"), "use one of them"),
        (("--provider", "acme", "--key-from-env", "NOT_SET"), "NOT_SET is empty"),
        (
            ("--provider", "acme", "--key-stdin"),
            "the first line of standard input is empty",
        ),
        (
            ("--provider", "local", "--key-from-env", "HOME"),
            "reads no key from a variable",
        ),
    ],
)
def test_what_cannot_be_set_up_is_wrong_usage(
    arguments: tuple[str, ...], reported: str
) -> None:
    assert reported in call("init", *arguments, expect=2).stderr


def test_a_provider_that_cannot_be_used_is_told() -> None:
    assert "the disk is gone" in call("init", "--provider", "lost", expect=1).stderr


def test_without_a_key_the_remedy_is_told() -> None:
    assert (
        "amplifier config secret set ACME_KEY"
        in call("init", "--provider", "acme").stderr
    )


@pytest.mark.usefixtures("terminal")
def test_at_a_terminal_what_is_not_given_is_asked(own: Path) -> None:
    (own / "profiles").mkdir(parents=True)
    (own / "profiles/dev.md").write_text(
        "---\nsession: {orchestrator: loop-basic, context: context-simple}\n---\n"
    )
    call("provider", "use", "acme")
    asked = call("init", "--provider", "acme", input="s3cret\nacme-7\n2\ny\n")
    assert "Key (ACME_KEY; Enter leaves it for later)" in asked.stderr
    assert "s3cret" not in asked.stdout
    assert "OK from acme-7" in asked.stderr
    assert settings(own)["profile"] == {"active": "dev"}
    asked = call("init", "--provider", "acme", input="\n\n1\nn\n")
    assert "Enter keeps the one that is there" in asked.stderr
    assert json.loads((own / "secrets.json").read_text()) == {
        "ACME_KEY": {"value": "s3cret"}
    }


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize(
    ("typed", "environment", "options"),
    [
        ("https://a.test\n2\nb\n2\n", {}, ("https://a.test", "eu", "b", True)),
        ("\n3\n3\n", {}, (None, "us", None, False)),
        ("\n\n\n", {}, (None, None, None, None)),
        ("\n2\nb\n", {"ACME_FAST": "1"}, (None, "eu", "b", None)),
    ],
    ids=["all", "others", "none", "of the environment"],
)
def test_at_a_terminal_the_provider_s_own_fields_are_asked(
    own: Path,
    monkeypatch: pytest.MonkeyPatch,
    typed: str,
    environment: dict[str, str],
    options: tuple[object, ...],
) -> None:
    for name, value in {"ACME_FIELDS": "1", "ACME_KEY": "k", **environment}.items():
        monkeypatch.setenv(name, value)

    call("init", "--provider", "acme", input=f"\nacme-7\n{typed}\nn\n")

    text = (own / "settings.yaml").read_text()
    found = yaml.safe_load(text)["config"]["providers"][0]["config"]
    names = ("base_url", "region", "zone", "is_fast")
    assert tuple(found.get(name) for name in names) == options
    assert found["default_model"] == "acme-7"
    assert "api_key" not in found


@pytest.mark.usefixtures("terminal")
def test_at_a_terminal_the_provider_is_one_of_a_list(
    own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACME_KEY", "k")
    asked = call("init", "--dry-run", input="\n\n\n\n")
    lines = [
        line
        for line in asked.stderr.splitlines()
        if "provider-acme (key: environment)" in line
    ]
    assert len(lines) == 1
    assert "would set provider: provider-acme, model acme-1" in asked.stdout


@pytest.fixture
def installer(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tool that installs packages: it notes what it is given, and nothing is fetched; return its notes."""
    notes = tmp_path / "installed.txt"

    def install_own(
        self: Installer, requirement: str
    ) -> None:  # the signature is the method's
        notes.write_text(requirement)
        points = {"provider-away": "acme_modules:mount"}
        install(site, requirement, points, ACME)

    known = {"provider-absent": None, "provider-away": "AWAY_KEY"}
    monkeypatch.setattr("amplifier.app.providers.installable._KEYS", known)
    monkeypatch.setattr(Installer, "install_own", install_own)
    return notes


@pytest.mark.usefixtures("terminal")
def test_what_is_not_installed_is_installed_after_a_yes(
    own: Path, installer: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWAY_KEY", "k")
    # The one whose key is there is suggested; a no leads back to the list.
    asked = call("init", input="\nn\n\ny\n1\n\n\n\n\nn\n")

    assert "provider-away (not installed; AWAY_KEY is set)" in asked.stderr
    assert "provider-absent (not installed)" in asked.stderr
    assert asked.stderr.count("this installs it: ") == 2
    assert installer.read_text() == "amplifier-module-provider-away"


def test_a_named_provider_is_installed_with_yes_and_else_is_not(
    own: Path, installer: Path
) -> None:
    call("init", "--provider", "away", "--dry-run", "--yes", expect=1)
    assert not installer.exists()
    call("init", "--provider", "away", "--yes")
    assert installer.exists()


def test_a_key_of_what_is_not_installed_is_reported(
    own: Path, installer: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWAY_KEY", "k")
    output = call("init", "--yes").stderr
    assert "AWAY_KEY is set; to use it: " in output
    assert not installer.exists()


def _with_server(monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    """Let a server be found on this machine whose provider is a module."""
    server = LocalServer(
        name="LM Studio",
        port=1234,
        path="/v1/models",
        module=module,
        models=("qwen", "phi"),
    )

    async def found() -> list[LocalServer]:
        return [server]

    monkeypatch.setattr(
        "amplifier.app.providers.local_servers.find_local_servers", found
    )


def test_a_server_on_this_machine_is_taken_before_the_embedded_model(
    own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _with_server(monkeypatch, "provider-acme")

    output = call("init", "--yes", "--dry-run").stdout

    assert "would set provider: provider-acme, model qwen" in output


def test_a_server_whose_provider_is_missing_is_reported(
    own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _with_server(monkeypatch, "provider-away")

    result = call("init", "--yes", "--dry-run")

    assert "LM Studio runs here; to use it, 'amplifier module add" in result.stderr
    assert "provider-away" not in result.stdout


def test_a_server_and_its_model_are_picked_at_a_terminal(
    own: Path, terminal: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    _with_server(monkeypatch, "provider-acme")

    asked = call("init", "--dry-run", input="\n2\n1\n")

    assert "LM Studio on this machine (qwen, phi)" in asked.stderr
    assert "would set provider: provider-acme, model phi" in asked.stdout
