"""Which files a text writes over that may run: whoever decides on edits decides on these."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import attrs
import pytest

from amplifier_kit.shell import CommandRule, PathPolicy, ShellPolicy, standard_table

POLICY = ShellPolicy([], table=standard_table())


@pytest.fixture
def path_policy(tmp_path: Path) -> PathPolicy:
    """A project with some files, and with what programs make again."""
    root = tmp_path.resolve() / "project"
    for folder in ("src/deep", "docs", "build", "tree/src"):
        (root / folder).mkdir(parents=True)
    for name in ("a.txt", "b.txt", "src/a.py", "src/b.py", "src/notes", "docs/a.txt"):
        (root / name).touch()
    for name in ("out.log", "build/made", "tree/src/a.py", "old.tar", "--file=new"):
        (root / name).touch()
    return PathPolicy(
        directory=str(root),
        writable=(str(root),),
        home="/home/me",
    )


def edits(path_policy: PathPolicy, text: str) -> Sequence[str]:
    """Return what a text writes over, which must be one that may run."""
    verdict = POLICY.evaluate(text, path_policy, {"HOME": "/home/me"})
    assert verdict.decision == "allow", verdict
    return verdict.edits


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("echo x > a.txt", ["a.txt"]),
        ("echo x >> a.txt", ["a.txt"]),
        ("echo x >| a.txt", ["a.txt"]),
        ("echo x &> a.txt", ["a.txt"]),
        ("echo x >& a.txt", ["a.txt"]),
        ("> a.txt", ["a.txt"]),
        ("echo x > a.tx[t]", ["a.txt"]),
        ("echo x > --file=new", ["--file=new"]),
        ("echo x > {a,c}.txt", ["{a,c}.txt"]),
        ("echo x | tee a.txt new.txt", ["a.txt"]),
        ("echo x | tee -a a.txt", ["a.txt"]),
        ("truncate -s 0 a.txt", ["a.txt"]),
        ("sed -i s/a/b/ src/a.py src/b.py", ["src/a.py", "src/b.py"]),
        ("sed -i s/a/b/ src/*.py", ["src/a.py", "src/b.py"]),
        ("cp a.txt b.txt", ["b.txt"]),
        ("cp a.txt docs", ["docs"]),
        ("cp a.txt docs/", ["docs/"]),
        ("cp b.txt docs/", []),
        ("cp *.txt docs/", ["docs/"]),
        ("cp -r src tree", ["tree"]),
        ("cp -r src/. tree", ["tree"]),
        ("cp -r docs tree", []),
        ("mv a.txt b.txt", ["b.txt"]),
        ("mv a.txt docs", ["docs"]),
        ("mv a.txt c.txt", []),
        ("ln -f a.txt b.txt", ["b.txt"]),
        ("ln a.txt c.txt", []),
        ("gzip a.txt", ["a.txt"]),
        ("tar cf old.tar src", ["old.tar"]),
        ("tar cf new.tar src", []),
        ("find src -name '*.py' -exec sed -i s/a/b/ {} +", ["src/**/*.py"]),
        ("bash -c 'echo x > a.txt'", ["a.txt"]),
        ("eval 'echo x > a.txt'", ["a.txt"]),
        ("timeout 5 sed -i s/a/b/ a.txt", ["a.txt"]),
        ('for f in src/*.py; do sed -i s/a/b/ "$f"; done', ["src/a.py", "src/b.py"]),
        ("cd src && echo x > notes", ["notes"]),
        ("cd src && echo x > new", []),
        ("cat a.txt; cd src; echo x > notes", ["notes"]),
        ("mkdir -p later; cd later; echo x > notes", []),
        ("mkdir -p later; cd later; echo x > a.txt", ["a.txt"]),
        ("cat a.txt; cd src; bash -c 'echo x > notes'", ["notes"]),
        ("mv a.txt c.txt && ls", []),
        ("cd src && cp a.py c.py", []),
        ("cd src && cp a.py b.py", ["b.py"]),
        ("mv a.txt c.txt && mv b.txt c.txt", ["c.txt"]),
        ("mv a.txt c.txt; echo x > c.txt", ["c.txt"]),
        ("for f in a b; do cp a.txt new; done", ["new"]),
        ("timeout 5 cp a.txt c.txt; ls", ["c.txt"]),
    ],
)  # fmt: skip
def test_what_is_written_over_is_named(
    path_policy: PathPolicy, text: str, expected: Sequence[str]
) -> None:
    assert list(edits(path_policy, text)) == expected


def test_what_is_listed_may_be_every_file(path_policy: PathPolicy) -> None:
    found = edits(path_policy, "git ls-files | xargs sed -i s/a/b/")

    assert {"./**", "./a.txt"} <= set(found)


@pytest.mark.parametrize(
    "text",
    [
        "ls",
        "echo x > new.txt",
        "echo x > out.log",
        "echo x > build/made",
        "echo x > /dev/null 2>&1",
        "cp a.txt a.txt.bak",
        "touch a.txt",
        "mkdir -p src",
        "chmod +x a.txt",
        "rm -rf build out.log",
        "git add a.txt && git commit -m x",
        "ruff format src",
        "ruff check --fix src",
        "prettier --write src",
        "gcc -o a.txt x.c",
    ],
)
def test_new_files_and_what_programs_make_again_are_no_edits(
    path_policy: PathPolicy, text: str
) -> None:
    assert edits(path_policy, text) == ()


@pytest.mark.parametrize(
    "text",
    [
        "echo x > .vscode/tasks.json",
        "cp a.txt trusted.sh",
        "sed -i s/a/b/ trusted.sh",
        "echo x > .git/config",
        "echo x > ../a.txt",
        "echo x > .env",
        "unheard-of && echo x > a.txt",
        "ln a.txt new.log; echo x > new.log",
        "ln a.txt build/new",
        "git mv a.txt new.log",
        "mv a.txt new.log",
    ],
)
def test_what_is_asked_about_is_no_edit(path_policy: PathPolicy, text: str) -> None:
    path_policy = attrs.evolve(path_policy, protected=(".vscode", "trusted.sh"))

    verdict = POLICY.evaluate(text, path_policy, {"HOME": "/home/me"})

    assert (verdict.decision, verdict.edits) == ("ask", ())


def test_a_rule_that_allows_a_command_allows_its_edits(path_policy: PathPolicy) -> None:
    rule = CommandRule(decision="allow", commands=("sed **",))
    policy = ShellPolicy([rule], table=standard_table())

    assert policy.evaluate("sed -i s/a/b/ a.txt", path_policy).edits == ()
    # a redirection is none of the command's arguments
    assert policy.evaluate("sed p a.txt > b.txt", path_policy).edits == ("b.txt",)


def test_nobody_decides_on_edits_where_unlisted_texts_may_run(
    path_policy: PathPolicy,
) -> None:
    policy = ShellPolicy([], unlisted="allow", table=standard_table())

    assert policy.evaluate("echo x > a.txt", path_policy).edits == ()


def test_options_that_move_count_where_they_move_to(path_policy: PathPolicy) -> None:
    assert edits(path_policy, "tar cf old.tar -C src .") == ("old.tar",)
    assert edits(path_policy, "tar -C src -c -f notes .") == ("notes",)


def test_nobody_knows_what_is_in_a_folder_that_is_not_known(
    path_policy: PathPolicy,
) -> None:
    unknown = attrs.evolve(path_policy, directory=None)

    assert unknown.holds_work("x")
    assert not unknown.has_scrap_name("build/x")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("rg -g '*.py' x src", "allow"),
        ("rg -g '!.env' x src", "allow"),
        ("rg -g '.e*' x src", "ask"),
        ("ls src | xargs -I $X cat a.txt", "ask"),
        ("ls src | xargs -I $X $Y a.txt", "ask"),
    ],
)
def test_what_a_search_takes_in_and_xargs_is_given_counts(
    path_policy: PathPolicy, text: str, expected: str
) -> None:
    assert POLICY.evaluate(text, path_policy, {}).decision == expected
