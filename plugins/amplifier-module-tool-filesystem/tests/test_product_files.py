"""No tool reads or writes the product's own files, or writes what other programs execute."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Final

import pytest

from amplifier_module_tool_filesystem import Filesystem
from amplifier_sdk.errors import ToolError
from amplifier_sdk.jsontypes import JSONValue

pytestmark = pytest.mark.anyio

OPEN: Final[Mapping[str, JSONValue]] = {
    "read_before_write": False,
    "denied_read_paths": [],
    "denied_write_paths": [],
}
"""A configuration that lifts every rule that can be lifted."""

OWN: Final = (
    "home/settings.yaml",
    "home/secrets.json",
    "home/trust/projects.json",
    "home/projects/x/sessions/s/transcript.jsonl",
    "home/projects/x/notes.md",
    "work/.amplifier/settings.local.yaml",
    "work/.AMPLIFIER/permissions.yaml",
    "work/sub/.amplifier/settings.yaml",
    "work/link/settings.yaml",
)
CALLS: Final[Mapping[str, Callable[[Filesystem, str, str], Awaitable[object]]]] = {
    "read_file": lambda files, path, _: files.read_file(path),
    "write_file": lambda files, path, _: files.write_file(path, "x"),
    "edit_file": lambda files, path, _: files.edit_file(path, "SECRET", "x"),
    "move": lambda files, path, work: files.move(path, f"{work}/moved"),
    "move over": lambda files, path, work: files.move(
        f"{work}/mine.txt", f"{path}.new"
    ),
    "delete": lambda files, path, _: files.delete(path),
    "delete folder": lambda files, path, _: files.delete(
        str(Path(path).parent), recursive=True
    ),
    "list_directory": lambda files, path, _: files.list_directory(
        str(Path(path).parent)
    ),
    "glob": lambda files, path, _: files.glob("*", str(Path(path).parent)),
    "grep": lambda files, path, _: files.grep("SECRET", path),
}


@pytest.fixture
def places(tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make the product's folders, one of them reached by a link, and open all of it to the tools."""
    monkeypatch.setenv("AMPLIFIER_HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    (root / "link").symlink_to(tmp_path / "home")
    (root / "mine.txt").write_text("mine")
    for name in OWN:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("SECRET")
    for name in ("home/skills/pdf/SKILL.md", "work/.amplifier/agents/a.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("For models.")
    return tmp_path


@pytest.mark.parametrize("name", OWN)
@pytest.mark.parametrize("call", CALLS)
async def test_no_configuration_opens_the_products_own_files(
    places: Path,
    mount: Callable[[Mapping[str, JSONValue]], Filesystem],
    call: str,
    name: str,
) -> None:
    files = mount(
        {
            **OPEN,
            "allowed_read_paths": [str(places)],
            "allowed_write_paths": [str(places)],
        }
    )

    if (call, name) == ("delete folder", "work/link/settings.yaml"):
        pytest.skip("it is the link that would be deleted")
    with pytest.raises(ToolError, match="the product's own files"):
        await CALLS[call](files, str(places / name), str(places / "work"))
    assert (places / name).read_text() == "SECRET"


@pytest.mark.process
async def test_a_search_from_above_passes_by_the_products_own_files(
    places: Path, mount: Callable[[Mapping[str, JSONValue]], Filesystem]
) -> None:
    files = mount(
        {
            **OPEN,
            "allowed_read_paths": [str(places)],
            "allowed_write_paths": [str(places)],
        }
    )
    found = str(
        [
            await files.grep("SECRET", str(places)),
            await files.grep("SECRET", str(places), glob="**/.amplifier/*"),
            await files.glob("**/*", str(places)),
            await files.glob("**/.amplifier/*", str(places)),
            await files.list_directory(str(places), depth=6),
        ]
    )

    assert "transcript" not in found
    assert "settings" not in found
    assert "secret.txt" in found
    for folder in (places, places / "work" / "sub"):
        with pytest.raises(ToolError):
            await files.delete(str(folder), recursive=True)
    with pytest.raises(ToolError):
        await files.move(str(places / "home"), str(places / "work" / "elsewhere"))
    assert all((places / name).read_text() == "SECRET" for name in OWN)


@pytest.mark.parametrize(
    "name", ["home/skills/pdf/SKILL.md", "work/.amplifier/agents/a.md"]
)
async def test_what_people_write_for_models_is_read_and_not_written(
    places: Path, mount: Callable[[Mapping[str, JSONValue]], Filesystem], name: str
) -> None:
    files = mount(
        {
            **OPEN,
            "allowed_read_paths": [str(places)],
            "allowed_write_paths": [str(places)],
        }
    )

    assert "For models." in str(await files.read_file(str(places / name)))
    with pytest.raises(ToolError, match="the product's own files"):
        await files.write_file(str(places / name), "x")


EXECUTED: Final = (
    ".git/config",
    ".git/commondir",
    ".git/hooks/pre-commit",
    ".vscode/tasks.json",
    ".idea/workspace.xml",
    ".envrc",
    ".bashrc",
    "sub/.zshenv",
    ".mcp.json",
    ".cursor/mcp.json",
    ".claude/settings.json",
    ".husky/pre-commit",
    ".pre-commit-config.yaml",
    ".devcontainer/devcontainer.json",
    ".VSCode/Tasks.json",
)


@pytest.mark.parametrize("name", EXECUTED)
async def test_what_other_programs_execute_is_not_written(
    root: Path, files: Filesystem, name: str
) -> None:
    (root / "mine.txt").write_text("mine")

    with pytest.raises(ToolError, match="is protected by the rule"):
        await files.write_file(name, "x")
    with pytest.raises(ToolError, match="is protected by the rule"):
        await files.move("mine.txt", name)
    assert not (root / name).exists()


@pytest.mark.parametrize(
    "name",
    ["Makefile", "package.json", "src/git.py", ".github/workflows/test.yml", "profile"],
)
async def test_what_a_person_builds_and_commits_is_written(
    root: Path, files: Filesystem, name: str
) -> None:
    await files.write_file(name, "x")

    assert (root / name).read_text() == "x"
