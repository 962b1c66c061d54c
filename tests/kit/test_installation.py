"""What people type to install more of the product."""

from __future__ import annotations

from importlib import metadata

import pytest

from amplifier_kit import installation
from amplifier_kit.installation import clone_arguments, install_command


@pytest.mark.parametrize(
    ("pip", "begins"), [(object(), "pip install "), (None, "uv pip install ")]
)
def test_command_is_of_the_installer_that_is_there(
    pip: object, begins: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installation, "find_spec", lambda _: pip)

    _, _, reported = install_command("amplifier-module-tool-web").rpartition(", ")

    assert reported.startswith(begins)


def test_extras_of_extras_bring_their_plugins_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    requirements = [
        "amplifier[web,cli]; extra == 'all'",
        "amplifier-module-tool-web; extra == 'web'",
        "rich>=14; extra == 'cli'",
    ]
    monkeypatch.setattr(metadata, "requires", lambda _: requirements)

    assert list(clone_arguments("amplifier[all]")) == [
        "-e '.[cli]'",
        "-e plugins/amplifier-module-tool-web",
    ]
