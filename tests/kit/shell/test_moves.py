"""A text that goes to other folders is evaluated in every folder where a part of it may run."""

from __future__ import annotations

from pathlib import Path

import pytest

from amplifier_kit.shell import PathPolicy, ShellPolicy, parse_script, standard_table
from amplifier_kit.shell.script_context import possible_directories

POLICY = ShellPolicy([], table=standard_table())


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project with work in it, in a folder of somebody's."""
    root = tmp_path.resolve() / "home/project"
    for folder in ("src", "docs", "build", "keys", "a/b"):
        (root / folder).mkdir(parents=True)
    for name in ("src/app.py", "docs/page.md", "notes.txt", "keys/server.pem"):
        (root / name).write_text("1\n")
    return root


def decided(root: Path, text: str) -> str:
    policy = PathPolicy(
        directory=str(root), writable=(str(root),), home=str(root.parent)
    )
    return POLICY.evaluate(text, policy, {}).decision


@pytest.mark.parametrize(
    "text",
    [
        "(cd build); rm -rf src docs",
        "(cd build && ls); rm -rf src",
        "cd build | cat; rm -rf src",
        "cd build & rm -rf src",
        "x=$(cd build); rm -rf src",
        "ls <(cd build); rm -rf src",
        "f() { cd build; }; rm -rf src",
        "{ cd build; } | cat; rm -rf src",
        "if false; then cd build; fi; rm -rf src",
        "false && cd build; rm -rf src",
        "true || cd build; rm -rf src",
        "cd build > log; rm -rf src",
        "ls; cd docs; rm -rf page.md",
        "ls; cd docs; rm -rf *.md",
        "cd docs && ls; cd ../src; rm -rf app.py",
        "time cd ..; cat diary",
        "time -p cd ..; cat diary",
        "cd docs; for i in 1 2 3; do cd ..; done; cat diary",
        "cd docs; f() { cd ..; }; f; f; cat diary",
        "false && cd docs; cd ..; cat diary",
        "true || cd docs; cd ..; cat diary",
        "(cd docs); cd ..; cat diary",
        "cd a/b && cd nowhere && ls; cd ../../..; cat diary",
        "ls; cd keys; cat s*",
        "ls; cd keys; cat server*",
    ],
)
def test_what_is_nothing_in_one_folder_may_be_work_in_another(
    root: Path, text: str
) -> None:
    assert decided(root, text) == "ask"


@pytest.mark.parametrize(
    "text",
    [
        "cd build && rm -rf made",
        "cd src && ls && cd .. && ls",
        "cd docs; ls; cd ../src; cat app.py",
        "cd docs || exit 1; cat page.md",
        "(cd src && ls) && (cd docs && ls)",
        "mkdir -p new && cd new && echo x > y",
        "cd a && cd b && ls; cd ..",
        "cd src && grep x app.py | head -3; ls",
    ],
)
def test_ordinary_moves_run_unasked(root: Path, text: str) -> None:
    assert decided(root, text) == "allow"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cd docs; ls", {"docs"}),
        ("cd docs && ls", {"docs"}),
        ("time cd docs; ls", {"docs"}),
        ("! cd docs; ls", {"docs"}),
        ("ls; cd docs", {".", "docs"}),
        ("(cd docs)", {".", "docs"}),
        ("cd docs > log", {".", "docs"}),
        ("cd docs; cd ../src", {".", "docs", "src"}),
        ("cd docs; cd ..", {".", "docs"}),
        ("cd docs && ls && cd ../src; cd ..", {".", "docs", "src"}),
        ("(cd docs); cd src", {".", "docs", "src", "docs/src"}),
    ],
)
def test_a_move_counts_where_it_may_take_effect(
    root: Path, text: str, expected: set[str]
) -> None:
    found = possible_directories(parse_script(text), str(root))

    assert found == {str((root / name).resolve()) for name in expected}


def test_a_long_text_that_moves_works_where_nobody_knows(root: Path) -> None:
    short, long = ("(cd src); " + "cat notes.txt; " * count for count in (20, 300))

    assert decided(root, short) == "allow"
    assert decided(root, long) == "ask"
