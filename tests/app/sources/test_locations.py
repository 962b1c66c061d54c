"""What a source may say, and that everything else is refused without showing what is secret in it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amplifier.app.sources.locations import (
    GitLocation,
    PackageLocation,
    PathLocation,
    canonical_name,
    is_bare_name,
    path_of,
    satisfies,
)
from amplifier.app.sources.parser import read_location
from amplifier_kit.installation import install_command
from amplifier_sdk.errors import AmplifierError, ConfigError

BASE = Path("/base")
URL = "git+https://git.example/acme/tools"
COMMIT = "0123456789abcdef0123456789abcdef01234567"

REFUSED = {
    "a ref with a leading dash": f"{URL}@--upload-pack=touch",
    "a ref that is an option": f"{URL}@-h",
    "a ref that climbs": f"{URL}@../../main",
    "a ref with a revision": f"{URL}@main~1",
    "a ref with a colon": f"{URL}@main:refs/heads/x",
    "a ref with a brace": f"{URL}@main@{{1}}",
    "an empty ref": f"{URL}@",
    "a long ref": f"{URL}@{'a' * 300}",
    "a subdirectory that climbs": f"{URL}#subdirectory=../x",
    "a subdirectory that climbs later": f"{URL}#subdirectory=a/../../x",
    "an absolute subdirectory": f"{URL}#subdirectory=/etc",
    "a subdirectory of git's own": f"{URL}#subdirectory=.git/hooks",
    "an empty subdirectory": f"{URL}#subdirectory=",
    "a subdirectory with a backslash": f"{URL}#subdirectory=a\\b",
    "an unknown fragment": f"{URL}#egg=tools",
    "two fragments": f"{URL}#subdirectory=a&subdirectory=b",
    "plain http": "git+http://git.example/x",
    "the git protocol": "git+git://git.example/x",
    "a helper": "git+ext::sh -c touch% /tmp/x",
    "a helper without git": "ext::sh -c id",
    "a file descriptor": "git+fd::17",
    "a scheme of its own": "git+ftp://git.example/x",
    "upper case tricks": "git+HTTP://git.example/x",
    "a password": "git+https://me:s3cret@git.example/x",
    "a token": "git+https://s3cret@git.example/x",
    "a password with a slash": "git+https://me:s3cret/x@git.example/x",
    "a password over ssh": "git+ssh://git:s3cret@git.example/x",
    "a token in a query": "git+https://git.example/x?access_token=s3cret",
    "a host that is an option": "git+ssh://-oProxyCommand=touch/x",
    "a user that is an option": "git+ssh://-oProxyCommand=x@git.example/x",
    "no host": "git+https:///x",
    "a bad port": "git+https://git.example:port/x",
    "a path that climbs": "git+https://git.example/../x",
    "a path that is an option": "git+ssh://git.example/-x",
    "a path with escapes": "git+https://git.example/x%0a",
    "a path that climbs by escapes": "git+file:///a/%2e%2e/b",
    "a path with an escaped line": "git+file:///a%0ab",
    "a path with an escaped ref": "git+file:///a%40--upload-pack=x",
    "no path": "git+https://git.example",
    "a remote file": "git+file://server/x",
    "another machine's file": "file://server/x",
    "a new line": f"{URL}\n@main",
    "a zero": "a\0b",
    "a space at the end": "./x ",
    "nothing": "",
    "scp": "git@git.example:acme/tools",
    "an archive on the web": "https://git.example/x.zip",
    "an option": "--source",
    "a number": 3,
    "no type": {},
    "an unknown type": {"type": "svn", "url": "x"},
    "an unknown key": {
        "type": "git",
        "url": "https://git.example/x",
        "token": "s3cret",
    },
    "a ref in a mapping": {"type": "git", "url": "https://git.example/x", "ref": "-x"},
    "a subdirectory in a mapping": {
        "type": "git",
        "url": "https://git.example/x",
        "subdirectory": "..",
    },
    "a fragment in a mapping": {
        "type": "git",
        "url": "https://git.example/x#subdirectory=a",
    },
    "no URL": {"type": "git"},
    "a package that is a path": {"type": "package", "name": "../x"},
    "no name": {"type": "package"},
    "no path in a mapping": {"type": "file"},
    "a path object with a zero": Path("a\0b"),
    "a path with a zero": {"type": "file", "path": "a\0b"},
    "another machine's address that is none": "file://[",
    "a package on two lines": {"type": "package", "name": "acme\n>=1"},
    "a package with an option": "acme --index-url=https://s3cret@git.example",
    "a package that is a direct reference": "acme @ https://git.example/acme.whl",
    "a package with a marker": {
        "type": "package",
        "name": "acme; python_version > '3'",
    },
    "an address on two lines": {"type": "git", "url": "https://git.example/x\n"},
}


@pytest.mark.parametrize("source", REFUSED.values(), ids=list(REFUSED))
def test_hostile_source_is_refused_and_its_secret_is_not_shown(
    source: object,
) -> None:
    with pytest.raises(ConfigError) as caught:
        read_location(source, BASE)

    assert "s3cret" not in str(caught.value)
    assert "\n@" not in str(caught.value)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("./x", PathLocation(path=Path("/base/x"))),
        ("a/b", PathLocation(path=Path("/base/a/b"))),
        ("/x y", PathLocation(path=Path("/x y"))),
        ("file:///a%20b", PathLocation(path=Path("/a b"))),
        (Path("x"), PathLocation(path=Path("/base/x"))),
        ({"type": "file", "path": "x"}, PathLocation(path=Path("/base/x"))),
        ("c.tar.gz", PathLocation(path=Path("/base/c.tar.gz"))),
        ("amplifier-module-x", PackageLocation(requirement="amplifier-module-x")),
        ("acme[fast]>=1.2,<2", PackageLocation(requirement="acme[fast]>=1.2,<2")),
        ({"type": "package", "name": "acme"}, PackageLocation(requirement="acme")),
        (URL, GitLocation(url="https://git.example/acme/tools")),
        (
            f"{URL}@v1.2/x",
            GitLocation(url="https://git.example/acme/tools", ref="v1.2/x"),
        ),
        (
            f"{URL}#subdirectory=a/b",
            GitLocation(url="https://git.example/acme/tools", subdirectory="a/b"),
        ),
        ("git+ssh://git@git.example/x", GitLocation(url="ssh://git@git.example/x")),
        (
            "git+ssh://git@git.example:22/x@main",
            GitLocation(url="ssh://git@git.example:22/x", ref="main"),
        ),
        ("git+file:///a b/c@main", GitLocation(url="file:///a b/c", ref="main")),
        ("git+file:///J%C3%BCrgen/a%20b", GitLocation(url="file:///Jürgen/a b")),
        (
            {
                "type": "git",
                "url": "https://git.example/x",
                "ref": "main",
                "subdirectory": "a",
            },
            GitLocation(url="https://git.example/x", ref="main", subdirectory="a"),
        ),
    ],
    ids=str,
)
def test_a_source_is_read(source: object, expected: object) -> None:
    assert read_location(source, BASE) == expected


def test_a_name_is_a_folder_where_one_is_there(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()

    assert read_location("tools", tmp_path) == PathLocation(path=tmp_path / "tools")


def test_a_path_in_the_home_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/a")

    assert path_of("~/x") == Path("/home/a/x")


@pytest.mark.parametrize(
    ("name", "is_archive"), [("a.TGZ", True), ("a.zip", True), ("a.tar", False)]
)
def test_an_archive_is_known_by_its_name(
    tmp_path: Path, name: str, is_archive: bool
) -> None:
    assert PathLocation(path=tmp_path / name).is_archive is is_archive
    (tmp_path / name).mkdir()
    assert not PathLocation(path=tmp_path / name).is_archive


def test_a_whole_commit_is_known(tmp_path: Path) -> None:
    location = read_location(f"{URL}@{COMMIT}", tmp_path)

    assert isinstance(location, GitLocation)
    assert (location.commit, location.scheme) == (COMMIT, "https")
    assert GitLocation(url="https://h/x", ref="abc1234").commit is None


def test_a_package_has_a_name_and_versions() -> None:
    location = PackageLocation(requirement="Acme_Core[x] >=1")

    assert (location.name, location.versions) == ("acme-core", ">=1")
    assert PackageLocation(requirement="-").name == "-"


_PARTS = st.from_regex(r"[a-z0-9][a-z0-9._]{0,8}[a-z0-9]", fullmatch=True).filter(
    lambda part: ".." not in part and not part.endswith(".lock")
)


@given(
    host=_PARTS,
    path=st.lists(_PARTS, min_size=1, max_size=3),
    ref=st.none() | _PARTS,
    folder=st.none() | _PARTS,
)
def test_a_repository_is_written_as_it_is_read(
    host: str, path: list[str], ref: str | None, folder: str | None
) -> None:
    location = GitLocation(
        url=f"https://{host}/{'/'.join(path)}", ref=ref, subdirectory=folder
    )

    assert read_location(str(location), BASE) == location


@given(st.text())
def test_any_text_is_read_or_refused(source: str) -> None:
    try:
        location = read_location(source, BASE)
    except ConfigError:
        return
    if isinstance(location, GitLocation):
        assert not any(
            part.startswith("-") for part in (location.ref or "", location.url)
        )


@pytest.mark.parametrize(
    ("version", "versions", "expected"),
    [
        ("1.5", ">=1,<2", True),
        ("2.0", ">=1,<2", False),
        ("", "", True),
        ("x", "*", True),
        ("2.0rc1", ">=1", True),
    ],
)
def test_versions_are_compared(version: str, versions: str, expected: bool) -> None:
    assert satisfies(version, versions) is expected


@pytest.mark.parametrize(("version", "versions"), [("x", ">=1"), ("1", "new")])
def test_versions_that_cannot_be_compared_are_an_error(
    version: str, versions: str
) -> None:
    with pytest.raises(ValueError, match="nvalid"):
        satisfies(version, versions)


def test_comparing_versions_needs_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "packaging.specifiers", None)

    with pytest.raises(
        AmplifierError, match=re.escape(install_command("amplifier[cli]"))
    ):
        satisfies("1", ">=1")


def test_names_have_one_form() -> None:
    assert canonical_name("Acme_.Tools") == "acme-tools"
    assert not is_bare_name(3)
