"""The folders of a session: what an application says, and else the usual ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from amplifier import ModuleCoordinator
from amplifier_kit.files.session_folders import session_folder, working_directory


@pytest.fixture
def coordinator(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleCoordinator:
    """The coordinator of a session in a process that works in `tmp_path`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AMPLIFIER_HOME", str(tmp_path / "home"))
    return ModuleCoordinator(session_id="S 1")


@pytest.mark.parametrize(
    ("offered", "relative"),
    [("work", "work"), (Path("work"), "work"), (None, "."), (7, ".")],
)
def test_the_working_directory_is_absolute(
    coordinator: ModuleCoordinator, tmp_path: Path, offered: object, relative: str
) -> None:
    coordinator.register_capability("session.working_dir", offered)

    assert working_directory(coordinator) == tmp_path / relative


@pytest.mark.parametrize(
    ("offered", "root"), [("/state", "/state"), (Path("/state"), "/state"), (7, None)]
)
def test_a_session_has_a_folder_of_its_own(
    coordinator: ModuleCoordinator, tmp_path: Path, offered: object, root: str | None
) -> None:
    coordinator.register_capability("session.dir", offered)
    folder = session_folder(coordinator)

    assert folder.parent == Path(root or tmp_path / "home") / "sessions"
    # what the id has of unsafe characters is in no name of a folder
    assert folder.name.startswith("=s-1-")
