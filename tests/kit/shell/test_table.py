"""Which calls the table of known programs names."""

from __future__ import annotations

from pathlib import Path

import pytest

from amplifier_kit.shell import PathPolicy, ShellPolicy, Table, standard_table
from amplifier_kit.shell.kinds import KINDS
from amplifier_kit.shell.scripts import Word, word_of
from amplifier_kit.shell.table import covered_table
from amplifier_kit.shell.usages import expand, read_usage

PROGRAMS = {
    "p|q": [
        "-ab -n=NUMBER -o?=WORD --long --size=NUMBER --color?=WORD -name:=TEXT -pair:=NAME,TEXT -# READ*"
    ],
    "two": ["READ WORD"],
    "many": ["WORD READ+ WRITE"],
    "first": ["-e=TEXT! TEXT READ*:."],
    "deep": ["-r! TREE*:."],
    "needs": ["-l! --list! WORD*"],
    "rest": ["-v SCRIPT ARG... !run"],
    "raw": ["!raw TEXT*"],
    "old": ["-xz -f=WRITE WORD* !bundle"],
    "sub": ["-C=DIR --quiet ... !work"],
    "sub add": ["WORK+", "--other WORD"],
    "sub python": ["...module !run"],
    "module test": ["-q"],
    "py3.*": ["-v"],
    "choice": ["{a,b} NUMBER?"],
    "none": [],
}


@pytest.fixture
def path_policy(tmp_path: Path) -> PathPolicy:
    work = tmp_path.resolve() / "work"
    for folder in ("src", "secret/.ssh", "other"):
        (work / folder).mkdir(parents=True)
    for name in ("a.txt", "b.txt", "src/-n", "src/x.py", "secret/.ssh/id_rsa"):
        (work / name).write_text("")
    (work / "other/out").symlink_to("/etc")
    return PathPolicy(directory=str(work), writable=(str(work),), home="/home/me")


def decided(path_policy: PathPolicy, text: str) -> str:
    return (
        ShellPolicy([], table=Table(PROGRAMS))
        .evaluate(text, path_policy, {"HOME": "/home/me"})
        .decision
    )


@pytest.mark.parametrize(
    "text",
    [
        "p", "p -a", "p -ab a.txt", "q -n 5", "p -n5", "p -an5 a.txt", "p --size 5", "p --size=5", "p -o",
        "p -oX", "p --color", "p --color=x", "p -name x", "p -name=x", "p -5", "p -pair x y", "p -- a.txt",
        "p - a.txt", "p a.txt -a", "p *.txt", "p {a,b}.txt", "two a.txt x", "many x a.txt b.txt out",
        "many x *.txt out", "first x", "first x a.txt", "first -e x a.txt", "first -e=x* a.txt",
        "deep -r src", "needs -l",
        "needs --list x", "rest src/x.py -c --anything", "rest -v src/x.py", "raw -x --y $X", "old xzf out a",
        "old -x a", "old", "sub add src", "sub -C src add x.py", "sub --quiet add --other x",
        "sub python test -q", "py3.12 -v", "choice a 5", "choice b", "p --version", "none --help",
    ],
    ids=str,
)  # fmt: skip
def test_what_the_table_names_runs(path_policy: PathPolicy, text: str) -> None:
    assert decided(path_policy, text) == "allow"


@pytest.mark.parametrize(
    "text",
    [
        "p -c", "p -ac", "p --lon", "p --long=x", "p --unknown", "p -n", "p -n=5", "p -n x", "p -n $X", "p -n *.txt",
        "p --size", "p -pair x", "p -pair 5 y", "p $X", "p -$X", "p ~/x", "p src/-n -x", "p a$((1)).txt",
        "two a.txt", "two a.txt x y", "two *.txt x", "two {a,b}.txt", "two", "many x out", "many x", "many",
        "first", "first -e", "deep -r", "deep -r secret", "deep -r other", "deep", "needs", "needs x", "rest",
        "rest -x src/x.py", "rest /etc/x", "rest -", "old xzf", "old q a", "sub", "sub -C src",
        "sub -C /etc add x", "sub -x add a", "sub $X", "sub add*", "sub other", "sub add", "sub add /etc/x",
        "sub python other", "choice c", "choice", "choice a 5 6", "none", "unheard", "p --version x",
        "p -name", "p /dev/zero", "p -a*", "old $X", "sub -C $X add a",
    ],
    ids=str,
)  # fmt: skip
def test_what_it_does_not_name_is_asked_about(
    path_policy: PathPolicy, text: str
) -> None:
    assert decided(path_policy, text) == "ask"


def test_a_name_that_a_pattern_stands_for_counts_as_an_option(
    path_policy: PathPolicy,
) -> None:
    assert decided(path_policy, "cd src; p *") == "ask"
    assert decided(path_policy, "p src/*.py") == "allow"


@pytest.mark.parametrize("text", ["-a=", "-:", "lower", "READ**"])
def test_a_usage_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="of a usage"):
        read_usage(text, "x")


def test_a_macro_stands_for_words() -> None:
    assert set(read_usage(expand("<A> -b", {"A": "-a"}), "x").options) == {"-a", "-b"}


def test_words_behind_options_before_subcommand_are_known() -> None:
    from amplifier_kit.shell import parse_script

    def rest(text: str) -> list[str] | None:
        (command,) = parse_script(text).commands
        found = standard_table().subcommand("git", command.words[1:])
        return None if found is None else [word.raw for word in found]

    assert rest("git -C . --no-pager push -f") == ["push", "-f"]
    assert rest("git --unheard push") is None
    assert rest("git") == []


def test_every_kind_in_the_standard_table_is_one() -> None:
    for name, usages in standard_table().usages.items():
        for usage in usages:
            kinds = {kind for option in usage.options.values() for kind in option.kinds}
            kinds |= {operand.kind for operand in usage.operands}
            assert {kind for kind in kinds if not kind.startswith("{")} <= set(KINDS), (
                name
            )
            assert usage.effects <= {"names", "run", "work"}, name
            assert usage.below is None or any(
                key.startswith(f"{usage.below} ") for key in standard_table().usages
            ), name


def test_every_kind_is_used() -> None:
    used = {
        kind
        for table in (standard_table(), covered_table())
        for usages in table.usages.values()
        for usage in usages
        for kind in (
            *(kind for option in usage.options.values() for kind in option.kinds),
            *(operand.kind for operand in usage.operands),
        )
    }

    assert set(KINDS) - used == set()


def test_what_lies_below_an_unknown_folder_may_be_a_secret(
    path_policy: PathPolicy,
) -> None:
    assert not path_policy.holds_secret("src")
    assert PathPolicy(directory=None, writable=(), home="/home/me").holds_secret("src")


def test_a_pattern_or_a_second_folder_fills_no_single_place(
    path_policy: PathPolicy,
) -> None:
    table = Table({"one": ["READ"], "pack": ["!bundle -x -C=DIR WORD*"]})
    pattern = Word(raw="*", values=("*",), is_pattern=True)
    assert table.find("one", [pattern], path_policy).refused == "*"
    moved = [word_of(text) for text in ("x", "-C", "src", "-C", "other")]
    assert not table.find("pack", moved[:3], path_policy).refused
    assert table.find("pack", moved, path_policy).refused == "other"
    late = [word_of(text) for text in ("x", "name", "-C", "src")]
    assert table.find("pack", late, path_policy).refused == "src"
    assert table.subcommand("one", [word_of("x")]) is None
