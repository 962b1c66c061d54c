"""Folders and archives of others: their digest, and what may not be in them."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from amplifier.app.sources import archives, trees
from amplifier.app.sources.archives import unpack
from amplifier.app.sources.trees import clean_tree, copy_tree, hash_tree
from amplifier_sdk.errors import ConfigError
from tests.app.projects import write


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "tree"
    write(folder / "a/b.md", "text")
    write(folder / "run.sh", "echo")
    return folder


def rename(tree: Path) -> None:
    (tree / "run.sh").rename(tree / "go.sh")


def change(tree: Path) -> None:
    write(tree / "run.sh", "rm")


def run(tree: Path) -> None:
    (tree / "run.sh").chmod(0o755)


def empty(tree: Path) -> None:
    (tree / "empty").mkdir()


def link(tree: Path) -> None:
    (tree / "link").symlink_to("run.sh")


def link_in_a_circle(tree: Path) -> None:
    (tree / "link").symlink_to("link")


@pytest.mark.parametrize("edit", [rename, change, run, empty, link, link_in_a_circle])
def test_every_change_changes_the_digest(
    tree: Path, edit: Callable[[Path], None]
) -> None:
    before = hash_tree(tree)
    edit(tree)

    assert hash_tree(tree) != before


def test_compiled_python_does_not(tree: Path) -> None:
    before = hash_tree(tree)
    write(tree / "a/__pycache__/b.pyc", "x")

    assert hash_tree(tree) == before
    clean_tree(tree)
    assert not (tree / "a/__pycache__").exists()


def test_a_copy_has_the_same_digest_and_leaves_what_tools_keep(
    tree: Path, tmp_path: Path
) -> None:
    run(tree)
    link(tree)
    before = hash_tree(tree)
    write(tree / ".git/config", "x")
    write(tree / ".venv/x", "x")
    copy_tree(tree, tmp_path / "copy")

    assert hash_tree(tmp_path / "copy") == before
    assert not (tmp_path / "copy/.git").exists()


def link_out(tree: Path) -> None:
    (tree / "link").symlink_to("../../secret")


def link_absolutely(tree: Path) -> None:
    (tree / "link").symlink_to(tree / "run.sh")


def link_through(tree: Path) -> None:
    (tree / "up").symlink_to("a")
    (tree / "a/out").symlink_to("../..")


def pipe(tree: Path) -> None:
    os.mkfifo(tree / "pipe")


def deep(tree: Path) -> None:
    tree.joinpath(*["d"] * 50).mkdir(parents=True)


def test_what_is_too_deep_to_walk_refused_before_it_cleaned(tree: Path) -> None:
    deep(tree)
    with pytest.raises(ConfigError, match="more than 40 folders deep"):
        clean_tree(tree)


@pytest.mark.parametrize("edit", [link_out, link_absolutely, link_through, pipe, deep])
def test_what_leads_out_or_is_no_file_is_refused(
    tree: Path, tmp_path: Path, edit: Callable[[Path], None]
) -> None:
    edit(tree)

    with pytest.raises(ConfigError):
        hash_tree(tree)
    with pytest.raises(ConfigError):
        copy_tree(tree, tmp_path / "copy")


@pytest.mark.parametrize(
    ("limit", "value"), [("MAX_FILES", 2), ("MAX_BYTES", 5), ("MAX_BYTES", 3)]
)
def test_too_much_is_refused(
    tree: Path, tmp_path: Path, limit: str, value: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trees, limit, value)

    with pytest.raises(ConfigError):
        hash_tree(tree)
    with pytest.raises(ConfigError):
        copy_tree(tree, tmp_path / "copy")


def test_compiled_python_that_is_a_link_is_removed(tree: Path) -> None:
    (tree / "__pycache__").symlink_to("/etc")
    clean_tree(tree)

    assert not (tree / "__pycache__").is_symlink()


# -- archives


def tar(
    path: Path,
    *members: tuple[str, bytes | None],
    mode: int = 0o644,
    kind: bytes | None = None,
) -> Path:
    with tarfile.open(path, "w:gz") as opened:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.mode = mode
            if content is None:
                info.type = kind or tarfile.DIRTYPE
                info.linkname = "/etc/passwd"
            info.size = len(content or b"")
            opened.addfile(info, io.BytesIO(content or b""))
    return path


def zipped(path: Path, *members: tuple[str, bytes], mode: int = 0) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as opened:
        for name, content in members:
            info = zipfile.ZipInfo(name)
            info.external_attr = mode << 16
            opened.writestr(info, content)
    return path


def test_both_kinds_unpack_to_the_same(tmp_path: Path) -> None:
    members = [("top/", None), ("top/a.md", b"a"), ("./top/b/c.md", b"c")]
    unpack(tar(tmp_path / "a.tar.gz", *members), tmp_path / "tar")
    unpack(
        zipped(
            tmp_path / "a.zip", ("top/", b""), ("top/a.md", b"a"), ("top/b/c.md", b"c")
        ),
        tmp_path / "zip",
    )

    assert hash_tree(tmp_path / "tar") == hash_tree(tmp_path / "zip")
    assert (tmp_path / "tar/b/c.md").read_text() == "c"


def test_programs_stay_programs_and_several_entries_stay(tmp_path: Path) -> None:
    unpack(
        tar(tmp_path / "a.tgz", ("a", b"1"), ("b", b"2"), mode=0o4777), tmp_path / "tar"
    )
    unpack(
        zipped(tmp_path / "a.zip", ("a", b"1"), ("b", b"2"), mode=0o100755),
        tmp_path / "zip",
    )

    assert (tmp_path / "tar/a").stat().st_mode & 0o7777 == 0o755
    assert hash_tree(tmp_path / "tar") == hash_tree(tmp_path / "zip")


NAMES = (
    "/etc/x",
    "../x",
    "a/../../x",
    "a//b",
    "a\\b",
    "C:/x",
    "a\nb",
    ".git/hooks/x",
    "a" * 1200,
)


@pytest.mark.parametrize("name", NAMES, ids=[str(index) for index in range(len(NAMES))])
@pytest.mark.parametrize("kind", ["tar", "zip"])
def test_a_name_that_leads_elsewhere_is_refused(
    tmp_path: Path, kind: str, name: str
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    file = (
        tar(folder / "a.tgz", (name, b"x"))
        if kind == "tar"
        else zipped(folder / "a.zip", (name, b"x"))
    )

    with pytest.raises(ConfigError, match="leads elsewhere"):
        unpack(file, folder / "out")
    assert not list(tmp_path.rglob("x"))


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE]
)
def test_a_link_or_a_device_is_refused(tmp_path: Path, kind: bytes) -> None:
    with pytest.raises(ConfigError, match="link or a device"):
        unpack(tar(tmp_path / "a.tgz", ("x", None), kind=kind), tmp_path / "out")


def test_a_link_in_a_zip_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="link or a device"):
        unpack(
            zipped(tmp_path / "a.zip", ("x", b"/etc"), mode=0o120777), tmp_path / "out"
        )


def test_an_encrypted_entry_is_refused(tmp_path: Path) -> None:
    file = zipped(tmp_path / "a.zip", ("x", b"1"))
    data = bytearray(file.read_bytes())
    data[data.index(b"PK\x01\x02") + 8] |= 1
    file.write_bytes(data)

    with pytest.raises(ConfigError, match="encrypted"):
        unpack(file, tmp_path / "out")


@pytest.mark.parametrize(
    "names", [("a", "A"), ("a/x", "a"), ("a", "a/x")], ids="-".join
)
def test_a_name_that_stands_twice_is_refused(
    tmp_path: Path, names: tuple[str, ...]
) -> None:
    with pytest.raises(ConfigError, match=r"twice|a file and a folder of one name"):
        unpack(
            tar(tmp_path / "a.tgz", *((name, b"x") for name in names)), tmp_path / "out"
        )


def test_a_name_that_is_too_long_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="longer than a file may be called"):
        unpack(tar(tmp_path / "a.tgz", ("x/" + "é" * 128, b"x")), tmp_path / "out")


def test_a_list_of_too_many_entries_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = zipped(tmp_path / "a.zip", *((f"{number}", b"x") for number in range(100)))
    unpack(file, tmp_path / "all")
    monkeypatch.setattr(archives, "_MAX_LIST", 1000)
    with pytest.raises(ConfigError, match="more than 10000 entries"):
        unpack(file, tmp_path / "out")


def test_what_unpacks_to_too_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archives, "MAX_BYTES", 1000)
    monkeypatch.setattr(archives, "_MAX_STREAM", 20_000)
    large = bytes(3000)
    with tarfile.open(
        tmp_path / "head.tgz", "w:gz", format=tarfile.PAX_FORMAT
    ) as opened:
        info = tarfile.TarInfo("x")
        info.pax_headers = {"comment": "x" * 1_000_000}
        opened.addfile(info)
    files = [
        tar(tmp_path / "a.tgz", ("x", large)),
        zipped(tmp_path / "a.zip", ("x", large)),
        tmp_path / "head.tgz",
    ]
    for index, file in enumerate(files):
        with pytest.raises(ConfigError, match="more than 1000 bytes"):
            unpack(file, tmp_path / f"out{index}")
    monkeypatch.setattr(archives, "MAX_FILES", 1)
    with pytest.raises(ConfigError, match="more than 1 entries"):
        unpack(tar(tmp_path / "c.tgz", ("x", b""), ("y", b"")), tmp_path / "many")


@pytest.mark.parametrize("kind", ["tar", "zip"])
def test_a_name_that_is_too_deep_is_refused(tmp_path: Path, kind: str) -> None:
    name = "/".join("d" * 45)
    file = (
        tar(tmp_path / "a.tgz", (name, b"x"))
        if kind == "tar"
        else zipped(tmp_path / "a.zip", (name, b"x"))
    )

    with pytest.raises(ConfigError, match="more than 40 folders deep"):
        unpack(file, tmp_path / "out")


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    kind=st.sampled_from(["tgz", "tar", "zip", "lzma"]),
    place=st.floats(0, 0.999),
    byte=st.integers(0, 255),
)
def test_one_wrong_byte_is_an_error_or_harmless(
    tmp_path: Path, kind: str, place: float, byte: int
) -> None:
    with tempfile.TemporaryDirectory(dir=tmp_path) as folder:
        data = bytearray(_plain(Path(folder), kind))
        data[int(place * len(data))] = byte
        file = Path(folder, "a.tar.gz" if kind in ("tgz", "tar") else "a.zip")
        file.write_bytes(gzip.compress(bytes(data)) if kind == "tar" else bytes(data))

        with suppress(ConfigError, OSError):
            unpack(file, Path(folder, "out"))
        assert not list(tmp_path.glob("*.md"))


def test_an_entry_without_a_name_is_refused(tmp_path: Path) -> None:
    archive = tmp_path / "a.zip"
    with zipfile.ZipFile(archive, "w") as opened:
        opened.writestr("#", b"text")
    # where a name ends for the library
    archive.write_bytes(archive.read_bytes().replace(b"#", b"\0"))

    with pytest.raises(ConfigError, match="an entry has no name"):
        unpack(archive, tmp_path / "out")


def _plain(folder: Path, kind: str) -> bytes:
    """Return an archive of two files; a `tar` is not compressed yet."""
    if kind in ("tgz", "tar"):
        made = tar(
            folder / "whole.tgz",
            ("top/", None),
            ("top/é.md", b"text" * 20),
            ("top/b.md", b"b"),
        ).read_bytes()
        return gzip.decompress(made) if kind == "tar" else made
    compression = zipfile.ZIP_LZMA if kind == "lzma" else zipfile.ZIP_DEFLATED
    with zipfile.ZipFile(folder / "whole.zip", "w", compression) as opened:
        opened.writestr("top/é.md", b"text" * 20)
        opened.writestr("top/b.md", b"b")
    return (folder / "whole.zip").read_bytes()


@pytest.mark.parametrize("name", ["a.tgz", "a.zip", "cut.tgz"])
def test_a_damaged_archive_is_named(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    whole = tar(tmp_path / "whole.tgz", ("x", bytes(range(256)) * 40)).read_bytes()
    file.write_bytes(whole[:-20] if name == "cut.tgz" else b"nothing")

    with pytest.raises(ConfigError, match=name):
        unpack(file, tmp_path / "out")
