"""Confined paths: what is inside can be reached in every way, what is outside in none."""

from __future__ import annotations

import os
import resource
import socket
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from amplifier_kit.files import openat2
from amplifier_kit.files.atomic import write_atomically
from amplifier_kit.files.path_errors import (
    InvalidPathError,
    PathAccessError,
    PathDeniedError,
    PathError,
    PathKindError,
    PathMissingError,
    PathOutsideError,
    SymlinkLoopError,
    UnsupportedPlatformError,
)
from amplifier_kit.files.paths import ConfinedPaths
from amplifier_kit.files.resolved import describe_kind, printable
from amplifier_sdk.errors import ToolError


@pytest.fixture(params=["kernel", "walk"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How directories are opened; all that is said below is true of both ways."""
    if request.param == "walk":
        monkeypatch.setattr(openat2, "kernel_opener", lambda: None)
    elif openat2.kernel_opener() is None:
        pytest.skip("this system has no openat2")
    return str(request.param)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A directory to be confined to, with a neighbour of a similar name and a secret beside it."""
    inside = tmp_path / "root"
    (inside / "sub" / "deep").mkdir(parents=True)
    (inside / "file.txt").write_text("inside")
    (inside / "sub" / "other.txt").write_text("other")
    (tmp_path / "root-evil").mkdir()
    (tmp_path / "root-evil" / "secret").write_text("secret")
    (tmp_path / "secret").write_text("secret")
    return inside


@pytest.fixture
def confined(root: Path) -> ConfinedPaths:
    return ConfinedPaths([root], base=root)


def read(confined: ConfinedPaths, path: str) -> str:
    with confined.locate(path) as resolved_path, resolved_path.open_file() as file:
        return file.read().decode()


@contextmanager
def few_handles() -> Iterator[None]:
    """Let no further file be opened inside the block."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.open("/", os.O_RDONLY)
    os.close(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize(
    "path",
    [
        "file.txt",
        "./file.txt",
        "sub/../file.txt",
        "sub//deep/.././../file.txt",
        "../root/file.txt",
        "sub/../../root/file.txt",
        "{root}/file.txt",
        "{root}/../root/file.txt",
        "/..{root}/sub/../file.txt",
    ],
)
def test_every_way_to_write_an_inside_path_leads_to_it(
    confined: ConfinedPaths, root: Path, path: str
) -> None:
    assert read(confined, path.format(root=root)) == "inside"


@pytest.mark.parametrize(
    "path",
    [
        "../secret",
        "sub/../../secret",
        "{root}/../secret",
        "{root}-evil/secret",
        "../root-evil/secret",
        "/",
        "/etc/passwd",
    ],
)
def test_a_path_that_leaves_the_root_is_refused(
    confined: ConfinedPaths, root: Path, path: str
) -> None:
    with pytest.raises(PathOutsideError, match=r"give a path inside .*root") as caught:
        read(confined, path.format(root=root))

    assert caught.value.roots == (str(root),)


@pytest.mark.parametrize(
    "target",
    ["file.txt", "sub/../file.txt", "{root}/file.txt", "../root/file.txt", "hop"],
)
def test_a_link_to_a_place_inside_is_followed(
    confined: ConfinedPaths, root: Path, target: str
) -> None:
    (root / "hop").symlink_to("sub/back")
    (root / "sub" / "back").symlink_to("../file.txt")
    (root / "link").symlink_to(target.format(root=root))

    with confined.locate("link") as resolved_path:
        assert resolved_path.path == root / "file.txt"
    assert read(confined, "link") == "inside"


@pytest.mark.parametrize(
    "target",
    ["../secret", "{root}/../secret", "/etc/passwd", "sub/../../secret", "hop"],
)
def test_a_link_to_a_place_outside_is_refused(
    confined: ConfinedPaths, root: Path, target: str
) -> None:
    (root / "hop").symlink_to("../secret")
    (root / "link").symlink_to(target.format(root=root))

    with pytest.raises(PathOutsideError):
        read(confined, "link")


def test_a_directory_link_is_walked_like_a_directory(
    confined: ConfinedPaths, root: Path, tmp_path: Path
) -> None:
    (root / "in").symlink_to("sub/deep")
    (root / "out").symlink_to(tmp_path)

    assert read(confined, "in/../other.txt") == "other"
    with pytest.raises(PathOutsideError):
        read(confined, "out/secret")


def test_dots_after_a_link_mean_its_target(confined: ConfinedPaths, root: Path) -> None:
    """`deep/..` is `sub`, although `in/..` looks like the root."""
    (root / "in").symlink_to("sub/deep")
    (root / "other.txt").write_text("not this one")

    assert read(confined, "in/../other.txt") == "other"


def test_a_root_that_is_a_link_is_known_by_both_names(
    root: Path, tmp_path: Path
) -> None:
    alias = tmp_path / "alias"
    alias.symlink_to(root)
    confined = ConfinedPaths([alias], base=alias)

    assert read(confined, "file.txt") == "inside"
    assert read(confined, f"{alias}/file.txt") == "inside"
    assert read(confined, f"{root}/file.txt") == "inside"


def test_another_root_can_be_reached_by_dots_and_by_links(
    root: Path, tmp_path: Path
) -> None:
    (root / "link").symlink_to(tmp_path / "root-evil" / "secret")
    confined = ConfinedPaths([root, tmp_path / "root-evil"], base=root)

    assert read(confined, "../root-evil/secret") == "secret"
    assert read(confined, "link") == "secret"


def test_the_whole_file_system_may_be_a_root(root: Path) -> None:
    confined = ConfinedPaths([Path("/")], base=root)

    assert read(confined, "file.txt") == "inside"
    assert read(confined, f"/../..{root}/file.txt") == "inside"
    with confined.locate("/..") as resolved_path:
        assert resolved_path.path == Path("/")


def test_relative_path_starts_at_base_even_when_that_is_outside(
    root: Path,
) -> None:
    confined = ConfinedPaths([root / "sub"], base=root)

    assert read(confined, "sub/other.txt") == "other"
    with pytest.raises(PathOutsideError):
        read(confined, "file.txt")


def test_without_roots_nothing_may_be_used(root: Path) -> None:
    with pytest.raises(PathOutsideError, match="allows no path at all"):
        read(ConfinedPaths([], base=root, purpose="write"), "file.txt")


def test_a_tilde_is_the_home_directory(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(root))
    confined = ConfinedPaths([root], base=root / "sub")

    assert read(confined, "~/file.txt") == "inside"
    with confined.locate("~") as resolved_path:
        assert resolved_path.path == root
    with pytest.raises(InvalidPathError, match="'~user' is not read"):
        read(confined, "~nosuchuser/x")


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("", "empty"),
        ("a\0b", "NUL"),
        ("a\ud800b", "surrogate"),
        ("x" * 300, "too long for the file system"),
        ("sub/" + "x" * 300 + "/y", "too long for the file system"),
        ("x/" * 2500, "at most 4096 characters"),
    ],
)
def test_a_text_that_is_no_path_says_why(
    confined: ConfinedPaths, path: str, reason: str
) -> None:
    with pytest.raises(InvalidPathError, match=reason):
        read(confined, path)


def test_links_in_a_circle_are_an_error(confined: ConfinedPaths, root: Path) -> None:
    (root / "a").symlink_to("b")
    (root / "b").symlink_to("a")
    (root / "self").symlink_to("self")

    for name in ("a", "b/x", "self"):
        with pytest.raises(SymlinkLoopError):
            read(confined, name)


def test_a_walk_is_bounded_whatever_links_make_of_it(
    confined: ConfinedPaths, root: Path
) -> None:
    for level in range(30):
        (root / f"{level}").symlink_to("sub/../" * 200 + f"{level + 1}")
    (root / "30").mkdir()

    with pytest.raises(InvalidPathError, match="steps"):
        read(confined, "0")


def test_a_missing_path_names_the_nearest_one(
    confined: ConfinedPaths, root: Path
) -> None:
    with pytest.raises(PathMissingError, match=r"did you mean 'file\.txt'"):
        read(confined, "flie.txt")
    with pytest.raises(PathMissingError, match="list the directory"):
        read(confined, "zzz/file.txt")
    with pytest.raises(PathMissingError):
        read(confined, "zzz/../file.txt")


def test_missing_path_is_reported_without_candidates(
    confined: ConfinedPaths,
) -> None:
    with (
        confined.locate("flie.txt") as resolved_path,
        few_handles(),
        pytest.raises(PathMissingError, match="list the directory"),
    ):
        resolved_path.existing()


def test_a_file_in_the_place_of_a_directory_is_an_error(
    confined: ConfinedPaths,
) -> None:
    with pytest.raises(PathAccessError, match="one of its directories is not one"):
        read(confined, "file.txt/x")


def test_what_the_system_refuses_is_a_path_error(confined: ConfinedPaths) -> None:
    with (
        few_handles(),
        pytest.raises(PathAccessError, match="too many files are open") as caught,
    ):
        read(confined, "file.txt")

    assert isinstance(caught.value, ToolError)
    assert caught.value.path == "file.txt"


@pytest.mark.timeout(10)
def test_only_regular_files_are_opened_and_a_fifo_never_blocks(root: Path) -> None:
    os.mkfifo(root / "fifo")
    server = socket.socket(socket.AF_UNIX)
    (root / "s").unlink(missing_ok=True)
    previous = Path.cwd()
    os.chdir(root)  # socket names are short
    server.bind("s")
    os.chdir(previous)
    confined = ConfinedPaths([root, Path("/dev")], base=root)

    for path, kind in {
        "fifo": "FIFO",
        "s": "socket",
        "/dev/null": "character device",
        "sub": "directory",
        ".": "directory",
    }.items():
        with pytest.raises(PathKindError, match=f"is a {kind}, not a file"):
            read(confined, path)
    server.close()


def test_kinds_have_names() -> None:
    assert [describe_kind(kind) for kind in (stat.S_IFBLK, stat.S_IFLNK, 0)] == [
        "block device",
        "link",
        "special file",
    ]


@pytest.mark.timeout(10)
def test_fifo_replacing_a_walked_file_does_not_block(
    confined: ConfinedPaths, root: Path
) -> None:
    with confined.locate("file.txt") as resolved_path:
        (root / "file.txt").unlink()
        os.mkfifo(root / "file.txt")

        with pytest.raises(PathKindError, match="FIFO"):
            resolved_path.open_file()


def test_link_that_takes_place_of_file_after_walk_is_refused(
    confined: ConfinedPaths, root: Path, tmp_path: Path
) -> None:
    with confined.locate("file.txt") as resolved_path:
        (root / "file.txt").unlink()
        (root / "file.txt").symlink_to(tmp_path / "secret")

        with pytest.raises(PathAccessError, match="became a link"):
            resolved_path.open_file()


def test_a_file_that_goes_away_after_the_walk_is_missing(
    confined: ConfinedPaths, root: Path
) -> None:
    with confined.locate("file.txt") as resolved_path:
        (root / "file.txt").unlink()

        with pytest.raises(PathMissingError):
            resolved_path.open_file()


def test_a_directory_is_opened_for_listing(confined: ConfinedPaths, root: Path) -> None:
    for path, names in (
        ("sub", {"deep", "other.txt"}),
        (".", {"sub", "file.txt"}),
        ("sub/..", {"sub", "file.txt"}),
    ):
        with confined.locate(path) as resolved_path:
            handle = resolved_path.open_directory()
            try:
                assert set(os.listdir(handle)) == names
            finally:
                os.close(handle)


def test_a_file_is_no_directory(confined: ConfinedPaths) -> None:
    with (
        confined.locate("file.txt") as resolved_path,
        pytest.raises(PathKindError, match="is a file, not a directory"),
    ):
        resolved_path.open_directory()


def test_missing_parents_are_made_where_the_path_leads(
    confined: ConfinedPaths, root: Path
) -> None:
    (root / "link").symlink_to("sub/new")

    with confined.locate("link/a/b.txt") as resolved_path:
        assert not resolved_path.exists
        assert resolved_path.path == root / "sub/new/a/b.txt"
        resolved_path.make_parents()
        write_atomically(resolved_path.name, b"made", dir_fd=resolved_path.directory)

    assert (root / "sub/new/a/b.txt").read_text() == "made"


def test_missing_parents_are_not_made_without_end(
    confined: ConfinedPaths, root: Path
) -> None:
    with (
        confined.locate("new/" * 40 + "b.txt") as resolved_path,
        pytest.raises(
            InvalidPathError,
            match="40 directories above it are missing, at most 32 are made",
        ),
    ):
        resolved_path.make_parents()

    assert not (root / "new").exists()


def test_parents_that_somebody_else_made_are_used(
    confined: ConfinedPaths, root: Path
) -> None:
    with confined.locate("new/b.txt") as resolved_path:
        (root / "new").mkdir()
        resolved_path.make_parents()
        write_atomically(resolved_path.name, b"made", dir_fd=resolved_path.directory)

    assert read(confined, "new/b.txt") == "made"


def test_link_that_takes_place_of_missing_parent_is_refused(
    confined: ConfinedPaths, root: Path, tmp_path: Path
) -> None:
    with confined.locate("new/deep/b.txt") as resolved_path:
        (root / "new").symlink_to(tmp_path / "root-evil")
        with pytest.raises(PathAccessError):
            resolved_path.make_parents()

    assert os.listdir(tmp_path / "root-evil") == ["secret"]


def test_dangling_link_leads_to_place_where_its_target_would_be(
    confined: ConfinedPaths, root: Path
) -> None:
    (root / "link").symlink_to("sub/later.txt")

    with confined.locate("link") as resolved_path:
        assert (resolved_path.path, resolved_path.exists) == (
            root / "sub/later.txt",
            False,
        )


@pytest.mark.parametrize(
    "path",
    [
        ".git",
        ".git/config",
        "sub/.git/hooks/pre-commit",
        ".GIT/config",
        "link/config",
        "new/../.git/x",
    ],
)
def test_a_protected_name_is_denied_at_any_depth_and_by_any_way(
    root: Path, path: str
) -> None:
    (root / ".git").mkdir()
    (root / "new").mkdir()
    (root / "link").symlink_to(".git")
    confined = ConfinedPaths([root], base=root, purpose="write", denied_names=[".git"])

    with (
        pytest.raises(
            PathDeniedError, match=r"protected by the rule '\.git'"
        ) as caught,
        confined.locate(path),
    ):
        pass
    assert caught.value.rule == ".git"


def test_a_protected_name_in_the_root_itself_denies_nothing(tmp_path: Path) -> None:
    root = tmp_path / ".git" / "work"
    root.mkdir(parents=True)
    confined = ConfinedPaths([root], base=root, denied_names=[".git"])

    with confined.locate("file") as resolved_path:
        assert resolved_path.path == root / "file"


def test_a_protected_path_is_denied_with_all_below_it(root: Path) -> None:
    (root / "alias").symlink_to("sub")
    confined = ConfinedPaths(
        [root], base=root, denied_paths=[root / "alias", root / "not-yet"]
    )

    for path in ("sub", "sub/other.txt", "alias/new", "not-yet/x", "NOT-YET"):
        with pytest.raises(PathDeniedError), confined.locate(path):
            pass
    for path in ("sub2", "file.txt"):
        with confined.locate(path) as resolved_path:
            assert resolved_path.name == path


def test_a_platform_without_directory_handles_is_refused(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "supports_dir_fd", set())

    with pytest.raises(UnsupportedPlatformError, match="use Linux or macOS"):
        ConfinedPaths([root], base=root)


def test_names_that_are_no_utf8_are_shown_with_escapes(
    confined: ConfinedPaths, root: Path
) -> None:
    (root / "link").symlink_to(os.fsdecode(b"caf\xe9"))

    with confined.locate("link") as resolved_path:
        assert resolved_path.shown == rf"{root}/caf\udce9"
    assert printable(os.fsdecode(b"caf\xe9")) == r"caf\udce9"
    assert printable("café") == "café"


def test_no_handle_stays_open(confined: ConfinedPaths, root: Path) -> None:
    (root / "loop").symlink_to("loop")
    before = len(os.listdir("/proc/self/fd"))

    for path in ("file.txt", "sub/..", "nothing", "../x", "loop", "file.txt/x", "sub"):
        try:
            read(confined, path)
        except PathError:
            continue

    assert len(os.listdir("/proc/self/fd")) == before


NAMES = st.sampled_from(
    [
        "sub",
        "deep",
        "file.txt",
        "in",
        "out",
        "up",
        "abs",
        "top",
        "loop",
        "hop",
        "..",
        ".",
        "",
        "secret",
    ]
)
WORDS = st.one_of(NAMES, NAMES, NAMES, st.text(max_size=8))


@pytest.fixture
def maze(root: Path, tmp_path: Path) -> Path:
    """The root with links in every direction."""
    for directory in (root, root / "sub", root / "sub" / "deep"):
        (directory / "in").symlink_to(root / "sub")
        (directory / "out").symlink_to(tmp_path)
        (directory / "up").symlink_to("..")
        (directory / "abs").symlink_to(root)
        (directory / "top").symlink_to("/")
        (directory / "loop").symlink_to("loop/x")
        (directory / "hop").symlink_to("up/in/deep")
    return root


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=400)
@given(parts=st.lists(WORDS, min_size=1, max_size=12), absolute=st.booleans())
@example(parts=["hop", "up", "up", "up", "secret"], absolute=False)
@example(parts=["top", "etc", "passwd"], absolute=True)
def test_no_path_leads_outside(maze: Path, parts: list[str], absolute: bool) -> None:
    path = "/".join([str(maze), *parts] if absolute else parts)
    try:
        with ConfinedPaths([maze], base=maze).locate(path) as resolved_path:
            reached, status, directory = (
                resolved_path.path,
                resolved_path.status,
                os.fstat(resolved_path.directory),
            )
    except PathError:
        return

    assert reached == maze or maze in reached.parents
    assert os.path.realpath(reached) == str(reached)
    if status is not None:
        assert os.path.samestat(os.lstat(reached), status)
        assert any(
            os.path.samestat(os.stat(place), directory)
            for place in (reached, reached.parent)
        )


@pytest.mark.timeout(30)
def test_no_write_lands_outside_while_dir_is_swapped_for_link(
    root: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "root-evil"
    (root / "bait").symlink_to(outside)
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            os.rename(root / "sub", root / "aside")
            os.rename(root / "bait", root / "sub")
            os.rename(root / "sub", root / "bait")
            os.rename(root / "aside", root / "sub")

    swapper = threading.Thread(target=swap)
    swapper.start()
    number = written = 0
    confined = ConfinedPaths([root], base=root, purpose="write")
    try:
        # on a busy machine a thousand times may all meet the link
        while number < 1000 or not written:
            number += 1
            try:
                with confined.locate(f"sub/{number}.txt") as resolved_path:
                    if not resolved_path.parents:
                        write_atomically(
                            resolved_path.name, b"", dir_fd=resolved_path.directory
                        )
                        written += 1
            except (PathError, OSError):
                continue
    finally:
        stop.set()
        swapper.join()

    assert os.listdir(outside) == ["secret"]


@pytest.mark.parametrize(
    ("there", "written", "is_denied"),
    [
        (("HEAD", "objects/x", "refs/x"), "config", True),
        (("HEAD", "objects/x", "refs/x"), "hooks/post-checkout", True),
        (("config", "objects/x", "refs/x"), "HEAD", True),
        (("config", "objects/x", "refs/x"), "head", True),
        (("HEAD", "config", "refs/x"), "objects/pack/x", True),
        (("HEAD", "config", "objects/x"), "refs", True),
        (("HEAD", "objects/x"), "config", False),
        (("HEAD",), "objects/x", False),
        ((), "HEAD", False),
    ],
)
def test_no_folder_becomes_what_git_takes_for_a_repository(
    tmp_path: Path, there: tuple[str, ...], written: str, is_denied: bool
) -> None:
    """Git runs what the `config` of such a folder says, whatever the folder is called."""
    for name in there:
        (tmp_path / "any" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "any" / name).touch()
    read = ConfinedPaths([tmp_path], base=tmp_path)
    write = ConfinedPaths([tmp_path], base=tmp_path, purpose="write")

    with read.locate(f"any/{written}"):
        pass
    if is_denied:
        with (
            pytest.raises(
                PathDeniedError, match="a git repository without a work tree"
            ),
            write.locate(f"any/{written}"),
        ):
            pass
    else:
        with write.locate(f"any/{written}"):
            pass


def test_a_path_without_links_is_checked_by_its_text(
    root: Path, confined: ConfinedPaths
) -> None:
    real = root.resolve()
    confined.check("file", real / "file.txt")
    with pytest.raises(PathOutsideError):
        confined.check("beside", real.parent / "root-evil")
    guarded = ConfinedPaths([root], base=root, denied_names=["file.txt"])
    with pytest.raises(PathDeniedError):
        guarded.check("file", real / "file.txt")
    with confined.locate("none") as missing, confined.locate("sub") as found:
        assert (missing.kind, found.kind) == ("nothing", "directory")
