"""Which files a shell text uses: what rules on paths and backups go by."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path

import pytest

from amplifier_kit.shell.file_access import FileAccess, file_accesses


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A folder with something to protect."""
    for name in ("secret", "src/deep"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("secret/s.txt", "src/a.py", "src/b.py"):
        (tmp_path / name).touch()
    return tmp_path.resolve()


def used(work: Path, text: str) -> set[tuple[str | None, str]]:
    """Return each path, from the folder on, with how it is used."""

    def how(access: FileAccess) -> str:
        return "w" if access.writes else "r" if not access.is_searched else "rr"

    def where(path: str | None) -> str | None:
        return (
            path
            if path is None
            else os.path.normpath(path).removeprefix(f"{work}/").replace(str(work), ".")
        )

    return {
        (where(access.path), how(access))
        for access in file_accesses(text, str(work), {"HOME": "/home/me"})
    }


def test_shells_are_read_so_deep_and_no_deeper(work: Path) -> None:
    assert UNKNOWN not in used(work, nested(5))
    assert UNKNOWN in used(work, nested(6))


def nested(depth: int) -> str:
    """A command within so many shells."""
    text = "ls"
    for _ in range(depth):
        text = shlex.join(["bash", "-c", text])
    return text


S, A = "secret/s.txt", "src/a.py"
UNKNOWN = (None, "w")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"cat {S}", [(S, "r")]),
        ("cat 's'\"ecret\"/s.t$'xt'", [(S, "r")]),
        ("cat s*/s.txt", [(S, "r"), ("s*/s.txt", "r")]),
        ("cat {secret,src}/x", [("secret/x", "r"), ("src/x", "r")]),
        ("x=secret; cat $x/s.txt", [(S, "r")]),
        ("echo x > secret/n", [("secret/n", "w")]),
        ("cat < secret/s.txt 2>&1", [(S, "r")]),
        (f"mv {S} src/", [(S, "w"), ("src", "w"), ("src/s.txt", "w")]),
        ("cp -r . /tmp", [(".", "rr"), ("/tmp", "w")]),
        ("grep -r x .", [(".", "rr")]),
        ("grep -r x", [(".", "rr")]),
        ("grep -n secret src/a.py", [(A, "r")]),
        ("rg x", [(".", "rr")]),
        ("find . -name s.txt", [(".", "rr")]),
        ("ls -R", [(".", "rr")]),
        ("ls", []),
        ("echo secret/s.txt", []),
        ("find src/deep -exec cat {} +", [("src/deep", "rr")]),
        ("find . -name '*.none' | xargs cat", [(".", "rr")]),
        ("ls | xargs cat", [(".", "rr"), ("secret", "r"), ("src", "r")]),
        ("((x = 1)); cat x", [("x", "r")]),
        ("tar cf x.tar -C src .", [("x.tar", "w"), ("src", "r"), ("src", "rr")]),
        ("tar cf x.tar .", [("x.tar", "w"), (".", "rr")]),
        ("sed -i s/a/b/ src/a.py", [(A, "w")]),
        (f"bash -c 'cat {S}'", [(S, "r")]),
        (f"timeout 5 cat {S}", [(S, "r")]),
        (f"env A=1 cat {S}", [(S, "r")]),
        ("cat ~/x", [("/home/me/x", "r")]),
        ("cd secret && cat s.txt", [(S, "r")]),
        ("ls; cd secret; cat s.txt", [("s.txt", "r"), (S, "r")]),
        ("/bin/cat src/a.py", [(A, "r")]),
        ("git diff src/a.py", [(A, "w")]),
        ("git log --oneline -3", []),
        ("git status", []),
        ("python --version", [UNKNOWN]),
    ],
)  # fmt: skip
def test_words_are_files_by_their_place(
    work: Path, text: str, expected: Sequence[tuple[str, str]]
) -> None:
    assert used(work, text) == set(expected)


@pytest.mark.parametrize(
    "text",
    [
        "cat $(echo secret/s.txt)",
        'f() { cat "$1"; }; f secret/s.txt',
        'eval "$x"',
        "$x y",
        'cat <<< "$(',
        "cd $x; cat s.txt",
        "for i in 1 2; do cd secret; cat s.txt; done",
        "trap 'cd secret' EXIT; cat s.txt",
        "pytest",
        "make",
        "./run.sh",
        "git add -A",
        "git show HEAD",
        "git commit -am x",
        "docker build .",
        "unheard-of x",
        "awk 'BEGIN { getline l < \"secret/s.txt\" }'",
        "sed -n 'r secret/s.txt' src/a.py",
        "mv secret other; cat o*/s.txt",
        'bash -c "$x"',
        nested(7),
        "cat ~someone/x",
    ],
)  # fmt: skip
def test_what_is_not_known_may_be_any_file(work: Path, text: str) -> None:
    assert UNKNOWN in used(work, text) or (None, "r") in used(work, text)


def test_a_name_that_a_pattern_stands_for_may_be_an_option(work: Path) -> None:
    (work / "src/--exec=x").touch()

    assert UNKNOWN in used(work, "cd src; git log *")


R, F, P = "replaced", "formatted", "possible"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cat src/a.py", {}),
        ("echo x > src/a.py", {A: R}),
        ("echo x >& src/a.py", {A: R}),
        ("echo x > new 2>&1", {"new": R}),
        ("echo x > /dev/null", {}),
        ("echo x > out.log", {}),
        ("sed -i s/a/b/ src/*.py", {"src/*.py": R, A: R, "src/b.py": R}),
        ("cp src/a.py secret", {"secret/a.py": R}),
        ("cp src/a.py new", {"new": R}),
        ("mv src/a.py src/b.py", {A: P, "src/b.py": R}),
        ("rm -r src", {"src": R}),
        ("rm -rf build", {}),
        ("git add src/a.py", {}),
        ("mkdir -p src/new; touch src/a.py", {}),
        ("ruff format src", {"src": F}),
        ("ruff format", {".": F}),
        ("ruff check src", {}),
        ("ruff check --fix src", {"src": F}),
        ("ruff format --check src", {}),
        ("prettier -w src", {"src": F}),
        ("prettier src", {}),
        ("black src/a.py", {A: F}),
        ("gofmt -l src", {}),
        ("gofmt -w src", {"src": F}),
        ("perl -pi -e s/a/b/ src/a.py", {A: P}),
        ("pytest src/a.py", {}),
        ("pytest --junitxml=src/a.py src/b.py", {A: P}),
        ("gcc -o src/a.py x.c", {A: P}),
        ("isort src", {"src": F}),
        ("dd if=x of=src/a.py", {A: P, "x": P}),
        ("echo x > $USER", {"me": R}),
        ("bash -c 'echo x > src/a.py'", {A: R}),
        ("cd src; sed -i s/a/b/ a.py", {A: R}),
    ],
)
def test_what_becomes_of_what_a_file_holds(
    work: Path, text: str, expected: dict[str, str]
) -> None:
    found = {
        os.path.relpath(access.path, work): access.change
        for access in file_accesses(text, str(work), {"USER": "me"})
        if access.path is not None and access.change != "none"
    }

    assert {name: found.get(name) for name in expected} == expected
    assert found.keys() - expected.keys() <= {"s/a/b", "i", "e", "if=x", "of=src/a.py"}


def test_a_variable_without_a_known_value_may_be_any_file(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def named() -> set[str | None]:
        return {access.path for access in file_accesses("cat $USER", str(work))}

    monkeypatch.setenv("USER", "me")
    assert named() == {f"{work}/me"}
    monkeypatch.delenv("USER")
    assert named() == {None}
