"""`list_directory` and `glob`: sorted, bounded, and honest about what was left out."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from amplifier_module_tool_filesystem import Filesystem
from amplifier_sdk.errors import ToolError
from amplifier_sdk.jsontypes import JSONValue

Mount = Callable[[Mapping[str, JSONValue]], Filesystem]


@pytest.fixture
def tree(root: Path) -> Path:
    for path in ("b/deep/x.py", "b/y.py", "a.py", "c.txt", ".hidden/z.py", "b/.env"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("12345")
    (root / "link").symlink_to("b")
    return root


async def test_a_directory_is_listed_in_order_with_types_and_sizes(
    files: Filesystem, tree: Path
) -> None:
    result = await files.list_directory.execute({})

    assert result.output == {
        "path": ".",
        "entries": [
            {"name": ".hidden", "type": "directory"},
            {"name": "a.py", "type": "file", "size": 5},
            {"name": "b", "type": "directory"},
            {"name": "c.txt", "type": "file", "size": 5},
            {"name": "link", "type": "link"},
        ],
        "omitted": 0,
    }


async def test_depth_lists_what_is_below_too_and_follows_no_links(
    files: Filesystem, tree: Path
) -> None:
    listed = await files.list_directory("b", depth=2)

    assert listed["path"] == "b"
    assert listed["entries"] == [
        {"name": ".env", "type": "file", "size": 5},
        {"name": "deep", "type": "directory"},
        {"name": "deep/x.py", "type": "file", "size": 5},
        {"name": "y.py", "type": "file", "size": 5},
    ]
    assert {"name": "link/y.py", "type": "file", "size": 5} not in listed["entries"]


async def test_a_depth_below_one_is_refused(files: Filesystem) -> None:
    with pytest.raises(ToolError, match="depth is at least 1; got 0"):
        await files.list_directory(depth=0)


async def test_a_list_has_a_largest_length_and_counts_the_rest(
    mount: Mount, tree: Path
) -> None:
    files = mount({"max_results": 2})

    assert (await files.list_directory())["omitted"] == 3
    assert (await files.glob("**/*.py"))["matches"] == ["a.py", "b/deep/x.py"]
    assert (await files.glob("**/*.py"))["omitted"] == 1


async def test_a_walk_looks_at_a_bounded_number_of_entries(
    mount: Mount, tree: Path
) -> None:
    files = mount({"max_visited": 6})

    listed = await files.list_directory(depth=9)

    assert (
        listed["incomplete"]
        == "the limit of 6 directory entries was reached; narrow the path or the pattern"
    )


async def test_a_walk_takes_a_bounded_time(mount: Mount, tree: Path) -> None:
    files = mount({"search_timeout": 1e-9})

    found = await files.glob("**/*.py")

    assert (
        found["incomplete"]
        == "the time limit of 1e-09 s was reached; narrow the path or the pattern"
    )


async def test_a_walk_goes_down_a_bounded_depth(files: Filesystem, root: Path) -> None:
    (root / ("d/" * 100)).mkdir(parents=True)

    listed = await files.list_directory(depth=1000)

    assert (
        listed["incomplete"]
        == "the limit of 64 nested directories was reached; narrow the path or the pattern"
    )


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("**/*.py", ".", ["a.py", "b/deep/x.py", "b/y.py"]),
        ("*.py", ".", ["a.py"]),
        ("*.{py,txt}", ".", ["a.py", "c.txt"]),
        ("b/**", ".", ["b/deep/x.py", "b/y.py"]),
        ("*.py", "b", ["b/y.py"]),
        ("**/.env", ".", ["b/.env"]),
        (".hidden/*", ".", [".hidden/z.py"]),
        ("l*", ".", ["link"]),
        ("link/*", ".", []),
        ("*.py", "link", ["b/y.py"]),
        ("[ab]*", ".", ["a.py"]),
    ],
)
async def test_a_pattern_finds_files(
    files: Filesystem, tree: Path, pattern: str, path: str, matches: list[JSONValue]
) -> None:
    assert (await files.glob(pattern, path))["matches"] == matches


async def test_paths_outside_the_working_directory_are_absolute(
    mount: Mount, tree: Path, tmp_path: Path
) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "m.py").touch()
    files = mount({"allowed_read_paths": [".", "../lib"]})

    found = await files.glob("*.py", "../lib")

    assert found["matches"] == [str(tmp_path / "lib" / "m.py")]
    assert (await files.glob("*", str(tmp_path / "lib")))["matches"] == found["matches"]


async def test_a_file_cannot_be_listed(files: Filesystem, tree: Path) -> None:
    with pytest.raises(ToolError, match="is a file, not a directory"):
        await files.list_directory("a.py")
    with pytest.raises(ToolError, match="is a file, not a directory"):
        await files.glob("*", "a.py")


async def test_names_that_are_no_utf8_are_shown_with_escapes(
    files: Filesystem, root: Path
) -> None:
    with open(os.fsencode(root) + b"/caf\xe9", "wb"):
        pass

    assert (await files.glob("*"))["matches"] == [r"caf\udce9"]
