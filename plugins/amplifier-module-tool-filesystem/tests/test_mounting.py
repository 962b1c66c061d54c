"""What the module's configuration means, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import attrs
import pytest

from amplifier.kernel.coordinator import ModuleCoordinator
from amplifier_module_tool_filesystem import Filesystem, FilesystemConfig
from amplifier_sdk.contracts import ToolWithSchema
from amplifier_sdk.errors import ConfigError, ToolError
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.tools import tools_of

Mount = Callable[[Mapping[str, JSONValue]], Filesystem]


async def shown_path(files: Filesystem, path: str) -> JSONValue:
    """Read a file and return the path that the result names."""
    page = await files.read_file(path)
    assert isinstance(page, dict)
    return page["file_path"]


LIMITS = [
    name
    for name in attrs.fields_dict(FilesystemConfig)
    if name.startswith("max_") or name == "search_timeout"
]


def test_the_module_is_eight_tools_with_described_arguments(files: Filesystem) -> None:
    tools = tools_of(files)

    assert [tool.name for tool in tools] == [
        "read_file",
        "write_file",
        "edit_file",
        "move",
        "delete",
        "list_directory",
        "glob",
        "grep",
    ]
    for tool in tools:
        assert isinstance(tool, ToolWithSchema)
        assert tool.read_only is (
            tool.name not in {"write_file", "edit_file", "move", "delete"}
        )
        properties = tool.input_schema["properties"]
        assert isinstance(properties, Mapping)
        assert all(
            isinstance(entry, Mapping) and entry["description"]
            for entry in properties.values()
        )


def test_an_unknown_key_is_an_error_that_names_the_nearest(mount: Mount) -> None:
    with pytest.raises(ConfigError, match=r"allowed_write_path.*allowed_write_paths"):
        mount({"allowed_write_path": ["."]})


@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.parametrize("value", [0, -1, True, "10"])
def test_every_limit_is_a_number_above_zero(
    mount: Mount, name: str, value: JSONValue
) -> None:
    with pytest.raises(ConfigError, match=name):
        mount({name: value})


def test_an_endless_search_cannot_be_configured() -> None:
    with pytest.raises(
        ValueError, match="search_timeout is a number of seconds above 0"
    ):
        FilesystemConfig(search_timeout=float("inf"))
    with pytest.raises(ValueError, match="max_results is a whole number above 0"):
        FilesystemConfig(max_results=0)


def test_directories_that_do_not_exist_are_all_named(mount: Mount, root: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        mount(
            {
                "allowed_read_paths": [".", "nowhere"],
                "allowed_write_paths": ["~nosuchuser/x"],
            }
        )
    assert [problem.path for problem in caught.value.problems] == [
        "allowed_read_paths[1]",
        "allowed_write_paths[0]",
    ]

    with pytest.raises(ConfigError, match=r"working_dir: .*nowhere is no directory"):
        mount({"working_dir": "nowhere"})


async def test_relative_paths_start_at_the_sessions_directory(
    files: Filesystem, root: Path
) -> None:
    (root / "a.txt").write_text("here\n")

    assert await shown_path(files, "a.txt") == str(root / "a.txt")


async def test_without_capability_they_start_at_process_directory(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root)
    (root / "a.txt").write_text("here\n")

    files = Filesystem(FilesystemConfig(), ModuleCoordinator())

    assert await shown_path(files, "a.txt") == str(root / "a.txt")


async def test_the_configured_directory_starts_at_the_sessions(
    mount: Mount, root: Path
) -> None:
    (root / "sub").mkdir()
    (root / "sub" / "a.txt").write_text("here\n")
    (root / "b.txt").write_text("not here\n")

    files = mount({"working_dir": "sub"})

    assert await shown_path(files, "a.txt") == str(root / "sub" / "a.txt")
    with pytest.raises(ToolError, match="leads outside"):
        await files.read_file("../b.txt")


async def test_what_may_be_read_and_what_may_be_written_are_set_apart(
    mount: Mount, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(root / "home"))
    for name in ("home/notes", "out"):
        (root / name).mkdir(parents=True)
        (root / name / "a.txt").write_text("here\n")

    files = mount({"allowed_read_paths": ["~/notes"], "allowed_write_paths": ["out"]})

    await files.read_file("~/notes/a.txt")
    await files.write_file("out/b.txt", "new")
    with pytest.raises(
        ToolError, match=r"used to read; give a path inside .*/home/notes"
    ):
        await files.read_file("out/a.txt")
    with pytest.raises(ToolError, match=r"used to write; give a path inside .*/out"):
        await files.write_file("home/notes/b.txt", "new")


async def test_protected_paths_are_those_configured(mount: Mount, root: Path) -> None:
    files = mount({"denied_write_paths": ["vendor", "./docs/fixed"]})

    for path in ("vendor/a", "lib/vendor/a", "docs/fixed/a", "docs/fixed"):
        with pytest.raises(ToolError, match="is protected by the rule"):
            await files.write_file(path, "new")
    for path in ("lib/docs/fixed/a", "docs/a", ".git/config"):
        await files.write_file(path, "new")
