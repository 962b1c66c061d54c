"""What ignore files leave out is what git says, and no pattern can hold a search up."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from amplifier_kit.files.gitignore import Rules
from amplifier_module_tool_filesystem import Filesystem
from amplifier_sdk.jsontypes import JSONValue

Mount = Callable[[Mapping[str, JSONValue]], Filesystem]

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is the judge")

TOKENS = [
    "a",
    "b",
    "foo",
    "é",
    "*",
    "**",
    "?",
    "/",
    "/",
    "**/",
    "/**",
    "*.py",
    ".txt",
    "[ab]",
    "[!a]",
    "[^b]",
    "[a-c]",
]
TOKENS += [
    "[]a]",
    "[b-]",
    "[",
    "]",
    "[[:alpha:]]",
    "[[:odd:]]",
    "[c-a]",
    "\\*",
    "\\ ",
    "\\",
    " ",
    "!",
    "#",
    "-",
    "\\[-]",
]
# Two slashes, and a slash within brackets, have no sense of their own in git either: no name has them.
ODD = re.compile(r"//|\[[^\]]*/")
PATTERNS = (
    st.lists(st.sampled_from(TOKENS), max_size=5)
    .map("".join)
    .filter(lambda text: not ODD.search(text))
)
NAMES = st.sampled_from(
    [
        "a",
        "b",
        "foo",
        "foo.txt",
        "bar.py",
        "a b",
        " x",
        "x ",
        "#h",
        "!n",
        "[a]",
        "a*",
        "é",
        "-",
    ]
)
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)


def git(root: Path, *arguments: str, given: str = "") -> set[str]:
    """Run git and return the paths that it writes."""
    done = subprocess.run(
        ["git", "-C", str(root), *arguments],
        input=given.encode(),
        capture_output=True,
        check=False,
        env={
            **os.environ,
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_SYSTEM": os.devnull,
        },
    )
    assert done.returncode in (0, 1), done.stderr
    return {path for path in done.stdout.decode().split("\0") if path}


def is_left_out(rules: Rules, path: str) -> bool:
    parts = path.split("/")
    if any(
        rules.decide(parts[:depth], is_directory=True) for depth in range(1, len(parts))
    ):
        return True
    return rules.decide(parts, is_directory=False) is True


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("repository")
    git(root, "init", "-q")
    return root


@pytest.mark.process
@needs_git
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
@given(
    patterns=st.lists(PATTERNS, min_size=1, max_size=4),
    paths=st.sets(PATHS, min_size=5, max_size=30),
)
@example(patterns=["[c-a]"], paths={"a", "b", "c"})
@example(patterns=["[!c-a]"], paths={"a", "b", "c"})
@example(patterns=["#h", "b", "!a/b"], paths={"#h", "b", "a/b", "a/b/c"})
@example(patterns=["a\\/b", "x\\ "], paths={"a/b", "a/foo", "x ", "x"})
@example(patterns=["x[[:]", "[[:a]b:]", "x[[::]]y"], paths={"x[", "x:", "ab:]", "x:y"})
def test_each_pattern_means_what_it_means_to_git(
    repository: Path, patterns: list[str], paths: set[str]
) -> None:
    content = "\r\n".join(patterns) + "\n"
    (repository / ".gitignore").write_bytes(content.encode())

    expected = git(
        repository,
        "check-ignore",
        "-z",
        "--no-index",
        "--stdin",
        given="\0".join(sorted(paths)),
    )

    rules = Rules(content.encode())
    assert {path for path in paths if is_left_out(rules, path)} == expected


def plant(root: Path, tree: Mapping[str, str]) -> None:
    for path, text in tree.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)


TREE = {
    ".gitignore": "*.log\n/build/\nnode_modules\n!keep.log\n",
    "a.log": "x",
    "keep.log": "x",
    "build/out.txt": "x",
    "src/build/fine.txt": "x",
    "src/.gitignore": "generated/*\n!generated/kept.txt\n*.txt.bak\n",
    "src/generated/a.txt": "x",
    "src/generated/kept.txt": "x",
    "src/deep/b.txt.bak": "x",
    "src/deep/b.txt": "x",
    "src/deep/.gitignore": "!*.log\n",
    "src/deep/c.log": "x",
    "node_modules/lib/index.txt": "x",
    "src/node_modules/lib/index.txt": "x",
}


@pytest.mark.process
@needs_git
async def test_a_tree_is_searched_as_git_lists_it(
    files: Filesystem, root: Path
) -> None:
    plant(root, TREE)
    git(root, "init", "-q")
    listed = git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard")

    found = await files.glob("**/*")
    searched = await files.grep("x")

    expected = sorted(path for path in listed if not path.endswith(".gitignore"))
    assert isinstance(found["matches"], list)
    assert isinstance(searched["matches"], list)
    assert sorted(map(str, found["matches"])) == expected
    assert (
        sorted(
            str(match["file"])
            for match in searched["matches"]
            if isinstance(match, dict)
        )
        == expected
    )
    assert found["ignored"] == searched["ignored"] == 6


@pytest.mark.process
async def test_ignored_files_are_searched_on_demand(
    files: Filesystem, mount: Mount, root: Path
) -> None:
    plant(root, {".gitignore": "*.log\n", "a.log": "x", "b.txt": "x"})
    always = mount({"respect_ignore_files": False})

    assert (await files.glob("*"))["matches"] == ["b.txt"]
    assert (await files.grep("x"))["files_searched"] == 1
    for found in (await files.glob("*", include_ignored=True), await always.glob("*")):
        assert found["matches"] == ["a.log", "b.txt"]
        assert "ignored" not in found
    for searched in (
        await files.grep("x", include_ignored=True),
        await always.grep("x"),
    ):
        assert searched["files_searched"] == 2


@pytest.mark.process
async def test_outer_rules_hold_below_and_do_not_hide_named_files(
    files: Filesystem, root: Path
) -> None:
    plant(
        root,
        {**TREE, "build/a.log": "x", "build/.gitignore": "*.tmp\n", "build/b.tmp": "x"},
    )

    assert (await files.glob("*.log", "src/deep"))["matches"] == ["src/deep/c.log"]
    assert (await files.glob("**/*", "src/generated"))["matches"] == [
        "src/generated/kept.txt"
    ]
    assert (await files.glob("*", "build"))["matches"] == [
        "build/a.log",
        "build/out.txt",
    ]
    assert (await files.grep("x", "a.log"))["files_searched"] == 1


async def test_outside_of_working_directory_search_has_its_own_rules(
    mount: Mount, root: Path, tmp_path: Path
) -> None:
    plant(root, {".gitignore": "*.txt\n"})
    plant(tmp_path / "lib", {".ignore": "b.*\n", "a.txt": "x", "b.txt": "x"})

    found = await mount({"allowed_read_paths": [str(tmp_path / "lib")]}).glob(
        "*", str(tmp_path / "lib")
    )

    assert found["matches"] == [str(tmp_path / "lib" / "a.txt")]


async def test_rules_above_that_may_not_be_read_do_not_count(
    mount: Mount, root: Path
) -> None:
    plant(root, {".gitignore": "*.txt\n", "src/a.txt": "x"})

    assert (await mount({"allowed_read_paths": ["src"]}).glob("*", "src"))[
        "matches"
    ] == ["src/a.txt"]


async def test_an_ignore_file_counts_more_than_a_gitignore_file(
    files: Filesystem, root: Path
) -> None:
    plant(
        root,
        {
            ".gitignore": "*.txt",
            ".ignore": "!a.txt\nc.md\n",
            "a.txt": "",
            "b.txt": "",
            "c.md": "",
            "d.md": "",
        },
    )

    assert (await files.glob("*"))["matches"] == ["a.txt", "d.md"]


@pytest.mark.timeout(10)
async def test_an_ignore_file_that_is_none_says_nothing(
    files: Filesystem, root: Path, tmp_path: Path
) -> None:
    plant(root, {"a.txt": "x", "sub/b.txt": "x", "dir/c.txt": "x"})
    (tmp_path / "rules").write_text("*.txt")
    (root / ".gitignore").symlink_to(tmp_path / "rules")
    os.mkfifo(root / "sub" / ".gitignore")
    (root / "dir" / ".ignore").mkdir()

    assert (await files.glob("**/*.txt"))["matches"] == [
        "a.txt",
        "dir/c.txt",
        "sub/b.txt",
    ]


async def test_listing_shows_what_is_ignored(files: Filesystem, root: Path) -> None:
    plant(root, {".gitignore": "*", "a.txt": "x"})

    assert len(str((await files.list_directory())["entries"]).split("name")) == 3


@pytest.mark.figures
@pytest.mark.parametrize(
    "pattern", ["*a" * 100, "**/" * 100 + "x", "*?" * 50 + "b", "[a" * 100, "a" * 5000]
)
def test_no_pattern_takes_long(pattern: str) -> None:
    rules = Rules(f"{pattern}\n".encode() * 20)

    def seconds() -> float:
        began = time.thread_time()
        rules.decide(["a" * 250 + "c"] * 60, is_directory=False)
        return time.thread_time() - began

    # another program can only make it longer
    assert any(seconds() < 2 for _ in range(5))
