"""What the kinds of arguments of the standard table take, and what they refuse."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from amplifier_kit.shell import PathPolicy, ShellPolicy, standard_table
from amplifier_kit.shell.awk import is_plain_awk
from amplifier_kit.shell.kinds import kind_fits
from amplifier_kit.shell.scripts import word_of

POLICY = ShellPolicy([], table=standard_table())


@pytest.fixture
def path_policy(tmp_path: Path) -> PathPolicy:
    work = tmp_path.resolve() / "work"
    for folder in ("src", "safe", "build", ".git", "many"):
        (work / folder).mkdir(parents=True)
    for name in (
        "a.txt",
        "src/app.py",
        "src/.env",
        "safe/b.txt",
        "build/x.o",
        "x.pyc",
        "safe/.hidden",
    ):
        (work / name).write_text("")
    (work / "out").symlink_to("/home/me")
    return PathPolicy(directory=str(work), writable=(str(work),), home="/home/me")


def decided(path_policy: PathPolicy, text: str) -> str:
    return POLICY.evaluate(text, path_policy, {"HOME": "/home/me"}).decision


@pytest.mark.parametrize(
    ("runs", "asks"),
    [
        (
            ("head -c 10M a.txt", "head -c 5 a.txt"),
            ("head -c 1T a.txt", "head -c x a.txt", "truncate -s 101M x"),
        ),
        (
            ("printf %s a", "printf '%5d' 1"),
            ("printf %99999d 1", "printf '%*d' 9 1", 'printf "$X"'),
        ),
        (
            ("cat a.txt",),
            (
                "cat /etc/../root/x",
                "cat /private/x",
                "cat src/.env",
                "cat /dev/zero",
                "cat /srv/x",
                "cat out/x",
                "cat $X",
            ),
        ),
        (("less a.txt", "gcc a.txt"), ("less +x", "gcc @a.txt")),
        (
            ("grep -r x safe",),
            ("grep -r x src", "grep -r x", "grep -r x $X", "tar cf x.tar ."),
        ),
        (("rg x src", "rg x safe"), ("rg x $X", "rg -u x src")),
        (("ls src", "find / -name x"), ("ls ~", "ls /home/x")),
        (
            ("rm build/x.o", "rm *.pyc", "rm -rf build", "rm missing"),
            ("rm a.txt", "rm -r src", "rm $X", "find . | xargs rm"),
        ),
        (
            ("find . -name '*.pyc' | xargs rm",),
            ("find . -name '*.txt' | xargs rm", "find . -name | xargs rm"),
        ),
        (
            ("python src/app.py", "python src/app.py a.txt"),
            ("python /dev/stdin", "python http://x", "python -"),
        ),
        (("npm test -- a.txt",), ("npm test -- /dev/stdin", "npm test -- /srv/x")),
        (
            ("git switch main", "git checkout -"),
            (
                "git switch src",
                "git checkout a.txt",
                "git checkout x.py",
                "git switch '*'",
            ),
        ),
        (("java -cp src:safe Main",), ("java -cp src:/srv Main",)),
        (
            ("make test", "make CC=clang", "make CFLAGS='-O2 -g'", "make X=1"),
            ("make SHELL=sh", "make PATH=x", "make X='a;b'", "make /x", "make 'a b'"),
        ),
        (("sed p a.txt", "sed -i s/a/b/ a.txt"), ("sed e a.txt", 'sed "$X" a.txt')),
        (("awk 1 a.txt",), ("awk 1 /inet/x", "awk '{system(1)}' a.txt")),
        (("jq .a a.txt",), ("jq env a.txt", "jq '$ENV' a.txt", 'jq "$X" a.txt')),
        (("tar cf x.tar safe",), ("tar cf host:x safe", "tar cf /srv/x safe")),
        (("make -C src",), ("make -C *", "make -C /srv", "make -C $X")),
        (
            ("find safe -type f -exec cat {} +", "find . -name '*.txt' -exec cat {} +"),
            ("find . -type f -exec cat {} +", "find -L . -exec cat {} +"),
        ),
        (
            ("find src -name '*.py' | xargs cat", "ls safe | xargs echo"),
            ("find . | xargs cat", "ls ! | xargs cat"),
        ),
        (
            ("while true; do ls; done", "while read -r x; do echo x > y; done < a.txt"),
            ("while true; do ls > x; done",),
        ),
        (
            ("for ((i=0;i<3;i++)); do echo x > y; done", "echo x >> y; cat y"),
            (
                "for ((;;)); do mkdir x; done",
                "tee -a y < y",
                "until false; do tee x; done",
            ),
        ),
        (("cat < a.txt",), ("cat < /dev/zero", "cat < src/.e*")),
        (
            ("cd src && cat app.py",),
            ("cd $X && cat app.py", "cd .git && git status", "cd $X; cat *"),
        ),
        (("echo *", "ls *.txt"), ("cat src/.*",)),
    ],
    ids=str,
)
def test_a_kind_takes_what_it_says(
    path_policy: PathPolicy, runs: tuple[str, ...], asks: tuple[str, ...]
) -> None:
    assert [text for text in runs if decided(path_policy, text) != "allow"] == []
    assert [text for text in asks if decided(path_policy, text) == "allow"] == []


@pytest.mark.parametrize(
    "text", ["make", "./run", "src/cat a.txt", "python src/app.py"]
)
def test_running_folder_programs_needs_sandbox_without_writes(
    path_policy: PathPolicy, text: str
) -> None:
    assert decided(path_policy, text) == "allow"
    assert decided(attrs.evolve(path_policy, has_sandbox=False), text) == "ask"
    assert decided(path_policy, f"echo x > Makefile; {text}") == "ask"
    assert decided(path_policy, f"cd /tmp; {text}") == "ask"


def test_secret_below_folder_asked_about_whatever_unlisted(
    path_policy: PathPolicy,
) -> None:
    policy = ShellPolicy([], "allow", standard_table())

    verdict = policy.evaluate("grep -r x src", path_policy)

    assert (verdict.decision, verdict.cause) == ("ask", "secret")


def test_a_folder_with_too_many_entries_may_hold_anything(
    path_policy: PathPolicy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("amplifier_kit.shell.path_policy._MAX_ENTRIES", 1)
    monkeypatch.setattr("amplifier_kit.shell.path_policy._MAX_MATCHES", 1)

    assert decided(path_policy, "grep -r x safe") == "ask"
    assert decided(path_policy, "cat *.txt") == "ask"
    assert decided(path_policy, "echo *.txt") == "allow"


@pytest.mark.parametrize(
    "text",
    [
        "{for(i=1;i<=NF;i++) s+=$i; print s}",
        '{for(i=NF;i>0;i--) printf "%s ", $i}',
        "{for(i=1;i<=NF;i++) $i=toupper($i)} 1",
        "{c[$1]++} END {for (k in c) print k, c[k]}",
    ],
)
def test_an_awk_program_whose_loops_end_is_plain(text: str) -> None:
    assert is_plain_awk(text)


@pytest.mark.parametrize(
    "loop",
    ["while(1)", "do x; while(1)", "for(;;)", "for(i=1;i<=3;i--)", "for(i=1;i<n;i++)"],
)
def test_an_awk_program_with_a_loop_that_may_not_end_is_not(loop: str) -> None:
    assert not is_plain_awk(f"BEGIN {{ {loop} print 1 }}")


@pytest.mark.parametrize(
    ("kind", "value", "fits"),
    [
        ("JQ", ".a | length", True),
        ("JQ", '"x" * 100000000', False),
        ("JQ", "env.HOME", False),
        ("YQ", ".a", True),
        ("YQ", "src/.env", False),
    ],
)
def test_a_program_of_jq_reads_what_it_is_given(
    path_policy: PathPolicy, kind: str, value: str, fits: bool
) -> None:
    assert kind_fits(kind, word_of(value), path_policy) is fits
