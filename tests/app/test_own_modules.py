"""What is said of a module that is not installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from amplifier.app.modules.own import OWN_MODULES, how_to_add
from amplifier_kit.installation import install_command

PLUGINS = Path(__file__).parents[2] / "plugins"
TYPES = ("context-", "hooks-", "loop-", "provider-", "tool-")


def test_own_modules_are_those_of_the_repository() -> None:
    ids = [
        folder.name.removeprefix("amplifier-module-") for folder in PLUGINS.iterdir()
    ]

    assert {*OWN_MODULES} == {id for id in ids if id.startswith(TYPES)}


def test_a_module_of_amplifier_is_installed_by_its_distribution() -> None:
    reported = how_to_add("tool-web", ())

    assert (
        reported == f"install it with: {install_command('amplifier-module-tool-web')}"
    )


@pytest.mark.parametrize("module", ["tool-bsh", "tool-hammer", "acme", "loop-", ""])
def test_no_package_that_anybody_may_publish_is_suggested(module: str) -> None:
    assert "pip" not in how_to_add(module, ["tool-own"])


@pytest.mark.parametrize(
    ("module", "meant"),
    [
        ("tool-bsh", "tool-bash"),
        ("provider-antropic", "provider-anthropic"),
        ("tool-owm", "tool-own"),
    ],
)
def test_the_nearest_of_the_same_type_is_named(module: str, meant: str) -> None:
    assert how_to_add(module, ["tool-own"]).startswith(f"did you mean {meant!r}? ")


@pytest.mark.parametrize("module", ["tool-xyz", "tool-hammer", "provider-x"])
def test_a_prefix_makes_no_two_ids_alike(module: str) -> None:
    assert "did you mean" not in how_to_add(module, ["tool-own"])
