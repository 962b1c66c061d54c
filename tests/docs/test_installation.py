"""Every text that installs Amplifier names a command that works as things are: one switch changes them all."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

from amplifier_kit import installation
from amplifier_kit.installation import (
    clone_arguments,
    clone_folder,
    install_arguments,
    install_command,
)
from amplifier_sdk.errors import AmplifierError
from scripts.installation import COMMANDS, ROOT, found_commands, pages, rewritten


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_a_page_has_the_commands_of_the_switch(name: str) -> None:
    text = (ROOT / name).read_text("utf-8")

    assert rewritten(text, COMMANDS[name]) == text, (
        "run: python -m scripts.installation"
    )
    assert len(found_commands(text)) == len(COMMANDS[name])


def test_no_other_page_installs_anything() -> None:
    found = {
        page.relative_to(ROOT).as_posix()
        for page in pages()
        if found_commands(page.read_text("utf-8"))
    }

    assert found == set(COMMANDS)


def test_no_message_spells_the_command_itself() -> None:
    spelled = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in _sources()
        for line in path.read_text("utf-8").splitlines()
        if "pip install 'amplifier" in line or "pip install amplifier" in line
    ]

    assert spelled == []


def _sources() -> Iterator[Path]:
    yield from (ROOT / "src").rglob("*.py")
    yield from (ROOT / "src").rglob("*.template")
    yield from (ROOT / "plugins").glob("*/src/**/*.py")


def test_each_folder_of_a_command_is_there() -> None:
    for requirement in {each for needed in COMMANDS.values() for each in needed}:
        command = shlex.split(" ".join(clone_arguments(requirement, clone=str(ROOT))))
        folders = [each.partition("[")[0] for each in command if each != "-e"]
        assert folders
        for folder in folders:
            assert Path(folder, "pyproject.toml").is_file(), folder


def test_an_extra_brings_its_modules_along() -> None:
    arguments = " ".join(clone_arguments("amplifier[default]"))

    assert "plugins/amplifier-module-provider-local" in arguments
    assert "plugins/amplifier-module-loop-streaming" in arguments
    assert list(clone_arguments("amplifier[cli]")) == ["-e '.[cli]'"]
    assert list(clone_arguments("amplifier")) == ["-e ."]


def test_the_clone_is_found_by_what_pip_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "my clone"
    (folder / "plugins").mkdir(parents=True)

    class Noted:
        requires: tuple[str, ...] = ()

        def read_text(self, _: str) -> str | None:
            return noted

    monkeypatch.setattr(metadata, "distribution", lambda _: Noted())
    noted: str | None = json.dumps({"url": f"{folder.as_uri()}"})
    assert clone_folder() == folder
    assert shlex.quote(str(folder)) in install_command("amplifier")
    for noted in (None, "{}", "no JSON", '{"url": "https://example.com/x"}'):  # noqa: B007  # read by Noted
        assert clone_folder() is None
        assert install_command("amplifier").startswith("in a clone of Amplifier, ")


def test_an_installer_is_given_the_clone_or_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = "amplifier-module-tool-web"
    monkeypatch.setattr(installation, "clone_folder", lambda: tmp_path / "my clone")
    assert install_arguments(module) == ["-e", f"{tmp_path}/my clone/plugins/{module}"]
    monkeypatch.setattr(installation, "clone_folder", lambda: None)
    with pytest.raises(AmplifierError, match="from no clone; type: in a clone"):
        install_arguments(module)
    monkeypatch.setattr(installation, "PUBLISHED", True)
    assert install_arguments(module) == ["--", module]


def test_the_switch_names_the_index(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation, "PUBLISHED", True)

    assert install_command("amplifier[cli]").endswith("pip install 'amplifier[cli]'")
