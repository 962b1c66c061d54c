"""All distributions have one version, and wheels are installed behind what they require."""

from __future__ import annotations

from pathlib import Path
from zipfile import ZipFile

import pytest

from scripts.release import (
    VersionMismatchError,
    common_version,
    install_order,
    main,
    write_version,
)
from tests.architecture.source_tree import PLUGINS, ROOT, requirements_of


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """Return a workspace of three distributions of one version."""
    for folder in (".", "plugins/one", "plugins/two"):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / folder / "pyproject.toml").write_text(
            '[project]\nname = "x"\nversion = "0.1.0"\n\n[tool]\nversion = "9"\n'
        )
    return tmp_path


def test_all_distributions_have_the_version_of_the_root() -> None:
    assert common_version(ROOT)


def test_every_plugin_says_from_which_version_it_works() -> None:
    requirements = {plugin.name: requirements_of(plugin) for plugin in PLUGINS}
    bounds = {
        name: str(one.specifier)
        for name, some in requirements.items()
        for one in some
        if one.name == "amplifier"
    }

    assert set(bounds.values()) == {">=0.1"}


def test_a_distribution_of_another_version_is_named(workspace: Path) -> None:
    project = workspace / "plugins" / "two" / "pyproject.toml"
    project.write_text('[project]\nname = "x"\nversion = "0.2.0"\n')

    with pytest.raises(
        VersionMismatchError, match=r"0\.1\.0, that of two \(0\.2\.0\) is not"
    ):
        common_version(workspace)


def test_a_new_version_is_written_to_all_and_to_nothing_else(workspace: Path) -> None:
    write_version("1.0.0", workspace)

    assert common_version(workspace) == "1.0.0"
    assert (
        'version = "9"'
        in (workspace / "plugins" / "one" / "pyproject.toml").read_text()
    )


def test_a_version_is_changed_only_when_asked(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match=r"The version is 0\.1\.0, not 0\.2\.0"):
        main(["version", "0.2.0"], workspace)
    main(["version", "0.2.0", "--write"], workspace)

    assert capsys.readouterr().out == "0.2.0\n"
    assert common_version(workspace) == "0.2.0"


@pytest.mark.parametrize("text", ["new", "1.0;rm", "1.0/.."])
def test_what_is_no_version_is_refused(text: str, workspace: Path) -> None:
    with pytest.raises(SystemExit):
        main(["version", text, "--write"], workspace)

    assert common_version(workspace) == "0.1.0"


def _wheel(folder: Path, name: str, *required: str) -> Path:
    path = folder / f"{name}-1.0-py3-none-any.whl"
    headers = [
        f"Name: {name}",
        "Version: 1.0",
        *(f"Requires-Dist: {one}" for one in required),
    ]
    with ZipFile(path, "w") as archive:
        archive.writestr(f"{name}-1.0.dist-info/METADATA", "\n".join(headers) + "\n")
    return path


def test_a_wheel_comes_behind_those_that_it_requires(tmp_path: Path) -> None:
    first = _wheel(tmp_path, "a_last", "B-Middle[x]>=1", "anyio")
    middle = _wheel(tmp_path, "b_middle", "z_first", 'a-last; extra == "all"')
    last = _wheel(tmp_path, "z_first")

    assert list(install_order(tmp_path)) == [last, middle, first]
