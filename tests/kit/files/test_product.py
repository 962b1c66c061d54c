"""The product's own files, wherever its folder stands and however a path is spelt."""

from __future__ import annotations

from pathlib import Path

import pytest

from amplifier_kit.files.path_rules import path_parts
from amplifier_kit.files.product import ProductFiles

OWN = (
    "{home}",
    "{home}/settings.yaml",
    "{home}/SECRETS.json",
    "{home}/unknown",
    "{home}/projects/shop-12/sessions/s/transcript.jsonl",
    "{home}/projects/shop-12/notes.md",
    "{home}/trust/projects.json",
    "/srv/shop/.amplifier",
    "/srv/shop/.amplifier/settings.local.yaml",
    "/srv/shop/.Amplifier/Permissions.yaml",
    "/srv/shop/.amplifier/sessions/s/notes.md",
)
CONTENT = (
    "{home}/notes.md",
    "{home}/mine/plan.txt",
    "{home}/skills/pdf/scripts/run.py",
    "{home}/context/AGENTS.md",
    "/srv/shop/.amplifier/agents/reviewer.md",
)
OTHERS = (
    "/srv/shop/amplifier/settings.yaml",
    "/srv/shop/x.amplifier",
    "{home}-else/settings.yaml",
    "/",
)


@pytest.fixture(params=["real", "linked"])
def files(tmp_path: Path, request: pytest.FixtureRequest) -> tuple[ProductFiles, Path]:
    """Return the list and the real path of the person's own folder, which may be reached by a link."""
    real = tmp_path / "own"
    real.mkdir()
    if request.param == "real":
        return ProductFiles(real), real
    (tmp_path / "link").symlink_to(real)
    return ProductFiles(tmp_path / "link"), real


@pytest.mark.parametrize("path", OWN)
def test_state_and_guards_are_neither_read_nor_written(
    files: tuple[ProductFiles, Path], path: str
) -> None:
    listed, home = files
    assert listed.may_not_read(Path(path.format(home=home)))
    assert listed.refuses("write")(path_parts(path.format(home=home)))


@pytest.mark.parametrize("path", CONTENT)
def test_what_people_write_for_models_is_read_and_not_written(
    files: tuple[ProductFiles, Path], path: str
) -> None:
    listed, home = files
    assert not listed.may_not_read(Path(path.format(home=home)))
    assert listed.refuses("write")(path_parts(path.format(home=home)))


@pytest.mark.parametrize("path", OTHERS)
def test_other_files_are_not_the_products(
    files: tuple[ProductFiles, Path], path: str
) -> None:
    listed, home = files
    assert not listed.may_not_read(Path(path.format(home=home)))
    assert not listed.refuses("write")(path_parts(path.format(home=home)))


def test_the_persons_own_folder_is_where_the_environment_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AMPLIFIER_HOME", str(tmp_path))
    assert ProductFiles().may_not_read(tmp_path / "settings.yaml")
    assert str(tmp_path / "skills") in ProductFiles().content


def test_what_was_fetched_for_models_is_read(tmp_path: Path) -> None:
    listed = ProductFiles(tmp_path)
    real = tmp_path.resolve()
    assert not listed.may_not_read(real / "cache/sources/x/agent.py")
    assert listed.may_not_read(real / "cache/other")
