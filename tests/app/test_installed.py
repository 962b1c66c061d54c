"""What is installed, listed without importing it."""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from amplifier.app.modules.own import list_modules
from amplifier.app.versions import GROUP, read_versions
from amplifier.kernel.modules import sources
from tests.app.conftest import InstallModule


def test_a_module_is_listed_with_all_that_is_known_of_it(
    tmp_path: Path, install_module: InstallModule
) -> None:
    install_module("my-dist", "tool-mine", "no_such_package:thing")

    (found,) = [module for module in list_modules() if module.id == "tool-mine"]

    assert (found.type, found.distribution, found.version) == ("tool", "my-dist", "1.5")
    assert found.target == "no_such_package:thing"
    assert Path(found.location or "") == tmp_path / "site" / "my_dist-1.5.dist-info"
    assert "no_such_package" not in sys.modules


def test_modules_are_sorted_and_may_be_of_one_type(
    install_module: InstallModule,
) -> None:
    install_module("dist-b", "tool-b", "b")
    install_module("dist-a", "tool-a", "a")
    install_module("dist-c", "context-c", "c")

    ids = [module.id for module in list_modules()]
    tools = [module.id for module in list_modules("tool")]

    assert ids == sorted(ids)
    assert {"tool-a", "tool-b"} <= set(tools)
    assert "context-c" not in tools


@pytest.mark.parametrize(
    ("folder", "distribution", "version"),
    [
        ("my_dist-2.0rc1.dist-info", "my-dist", "2.0rc1"),
        ("my_dist-1.5-py3.11.egg-info", "my-dist", "1.5"),
        ("my_dist.egg-info", "my-dist", None),
    ],
)
def test_the_version_is_that_of_the_metadata_folder(
    tmp_path: Path,
    install_module: InstallModule,
    folder: str,
    distribution: str,
    version: str | None,
) -> None:
    install_module("my-dist", "tool-mine", "x")
    site = tmp_path / "site"
    (site / "my_dist-1.5.dist-info").rename(site / folder)

    (found,) = [module for module in list_modules() if module.id == "tool-mine"]

    assert (found.distribution, found.version) == (distribution, version)


@pytest.mark.process  # the name of the platform comes from uname
def test_versions_name_the_distributions_that_have_modules(
    install_module: InstallModule,
) -> None:
    install_module("my-dist", "tool-mine", "x")

    versions = read_versions()

    assert versions.modules["my-dist"] == "1.5"
    assert list(versions.modules) == sorted(versions.modules)
    assert versions.python == ".".join(map(str, sys.version_info[:3]))


def test_a_tree_that_is_not_installed_has_no_version_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def version(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("amplifier.app.versions.version", version)

    assert read_versions().amplifier == "unknown (not installed)"


def test_the_group_of_modules_is_the_kernels() -> None:
    assert sources.GROUP == GROUP
