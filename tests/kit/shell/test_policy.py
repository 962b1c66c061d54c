"""What becomes of a shell text by the rules."""

from __future__ import annotations

import os
from pathlib import Path

import attrs
import pytest

from amplifier_kit.shell import CommandRule, PathPolicy, PathRule, ShellPolicy, Word
from amplifier_kit.shell.awk import is_plain_awk
from amplifier_kit.shell.decisions import Decision
from amplifier_kit.shell.programs import is_plain_sed
from amplifier_sdk.errors import ConfigError
from tests.timing import takes_at_most

ALLOWED = CommandRule(
    decision="allow",
    commands=(
        "ls|echo|cd|sed|awk|true|read|printf|pytest|tee|cat|grep|find|git|xargs|head",
    ),
)


@pytest.fixture
def path_policy(tmp_path: Path) -> PathPolicy:
    (tmp_path / "work/sub").mkdir(parents=True)
    for name in ("HEAD", "objects", "refs"):
        (tmp_path / "work/bare" / name).mkdir(parents=True)
    work = str((tmp_path / "work").resolve())
    return PathPolicy(
        directory=work,
        writable=(work,),
        protected=(".git/hooks", ".amplifier"),
        home="/home/me",
    )


def decided(
    path_policy: PathPolicy, text: str, *rules: CommandRule, unlisted: Decision = "ask"
) -> str:
    return (
        ShellPolicy(rules or (ALLOWED,), unlisted)
        .evaluate(text, path_policy, {"HOME": "/home/me"})
        .decision
    )


@pytest.mark.parametrize(
    "text",
    [
        "", "ls", "/bin/ls -l", "ls; echo a", "ls > out", "ls 2>&1 > /dev/null", "env A=1 nice -n 5 ls",
            "env -u A ls",
        "env -- ls", "timeout -k 1 --signal=KILL 5 ls", "nohup ls", "time -p ls", "command -v rm", "stdbuf -oL ls",
        "nice --adjustment 5 ls", "bash -c 'ls; echo a'", "A=1 bash -c ls", "eval ls -l", "trap 'echo bye' EXIT",
        "trap - EXIT", "trap", "find . | xargs ls", "grep -l x . | xargs -n1 cat", "find . -exec ls {} +",
        "git ls-files | sort | head -5 | xargs -I% cat %", "ls | xargs -I {} echo {} x", "xargs",
            "ls | xargs --replace=% cat %", "ls | xargs -I '{}' cat '{}'", "ls | xargs -I {}", "ls | xargs -I",
        "find . -exec ls {} \\; -print", "sed -n '5p' f", "printf -v OUT x",
        "cd sub && ls > out", "cd sub; cd ..; ls > out", "f() { ls; }; f", "IFS= read -r x", "sed -n 5p f",
        "awk -F , '{print}' f",
        "awk -F, -v a=1 '{print a}' f",
        "PYTHONPATH=sub ls", "cat < sub/f", "ls <&3", "bash -x -e -c ls", "sub/ls",
    ],
    ids=str,
)  # fmt: skip
def test_what_the_rules_allow_runs(path_policy: PathPolicy, text: str) -> None:
    rules = (ALLOWED, CommandRule(decision="allow", commands=("sort",)))

    assert decided(path_policy, text, *rules) == "allow"


@pytest.mark.parametrize(
    "text",
    [
        "rm x", "ls; rm x", "$X", "*/ls", "/opt/ls", "'", "ls > /etc/x", "ls > $X", "ls > .git/hooks/x", "ls < ~/x",
        "ls < $X", "cat .env", "cat < .env", "A=.env ls", "env FOO", "env $X ls", "env -S 'ls'", "env --nonsense ls",
        "nice -z ls", "bash", "bash $X", "bash -c", "bash -c $X", "bash --rcfile x", "bash -c 'rm x'", "eval $X",
        "eval rm x", "trap $X EXIT", "trap 'rm x' EXIT", "sudo ls", "PATH=. ls", "PYTHONPATH=/tmp ls", "A='$(x)' ls",
        "export PATH=x", "read PATH", "printf -v PATH x", "f() { f; }; f", "sed -i 1d /etc/x", "sed e f",
            "sed -f x f",
        "sed -e", "sed --posix p f", "sed -e $X f", "awk 'BEGIN{system(1)}'", "awk -f x f", "awk", "awk $X",
            "awk -z 1",
        "timeout ls", "find . -exec rm {} \\;", "find / -exec cat {} +", "find -L . -exec rm {} +", "find . -exec",
        "cat $X", "cd $X; ls > a", "cd; ls > a", "cd - && ls > a", "cd /etc && ls > a", "cd a; cd $X; ls > a",
        "echo x | xargs cat", "xargs cat < f", "xargs -I % sh -c % ", "xargs -I% sh -c 'ls %'", "sort f | xargs cat",
        "echo x > Makefile; ./run", "bash -c 'bash -c \"bash -c ls\"; rm'", "builtin rm", "exec rm",
            "ls | xargs -i rm",
        "ls | xargs --replace rm cat {}", "ls | xargs --max-lines rm cat", "echo x | xargs -I '{}' cat '{}'",
        "echo x | xargs -I'{}' sh -c 'echo {}'", "echo x | xargs -0I{} sh -c 'echo {}'", "ls | xargs -I $X sh -c ls",
        "ls | xargs -I $X $Y", "xargs -a names cat", "find . '-printf' '/etc/x' | xargs cat",
        "find . -exec tee + /etc/x ';'", "sed p '--expression=1e id' f", "awk '-f' x f", "awk '-e' 'BEGIN{system(1)}'",
        "printf -vPATH x", "read -aPATH", "awk 1 /inet/tcp/0/x/80",
    ],
    ids=str,
)  # fmt: skip
def test_everything_else_is_asked_about(path_policy: PathPolicy, text: str) -> None:
    rules = (
        CommandRule(
            decision="allow",
            commands=("ls|echo|cd|sed|awk|true|read|printf|pytest|find|export",),
        ),
        CommandRule(decision="allow", commands=("cat",), paths="read"),
        CommandRule(decision="allow", commands=("./*",), paths="work", runs_files=True),
    )

    assert decided(path_policy, text, *rules) == "ask"


def test_wrapping_has_a_limit(path_policy: PathPolicy) -> None:
    text = "ls"
    for _ in range(7):
        text = f"eval {text}"

    assert decided(path_policy, text) == "ask"
    assert decided(path_policy, "env " * 7 + "ls") == "ask"


@pytest.mark.parametrize(
    ("paths", "fitting", "others"),
    [
        ("any", ("x /etc/shadow2", "x $Y"), ()),
        ("read", ("x sub", "x /usr/lib", "x -n5", "x /dev/null", "x a=1"), ("x ~", "x /root/a", "x $Y", "x /etc/*",
            "x /dev/sda",
            f"x {'../' * 20}home/a", "x --from=$Y", "x .e*", "x .env", "x /proc/1/environ", "x -f/home/a")),
        ("write", ("x a", "x sub/../a", "x *.pyc", "x /dev/null", "x sub/*"), ("x .", "x ..", "x *", "x ./*",
            "x */", "x [a-z]*",
            "x /etc/a", "x .git/hooks", "x .git", "x sub/.git/hooks/a", "x .AMPLIFIER/x", "x --to=../a", "x -C..",
            "x $Y", "x /dev/tty",
            "x /*", "x a=/etc/b", "x .git/h*", "x .g?t/hooks/a", "x .git/[[:alpha:]]ooks", "x [[:alnum:]]*",
            "x -C.git/hooks", "x -C.amplifier", "x bare/config", "x bare/hooks/post-checkout")),
        ("work", ("x .", "x a", "x sub/*"), ("x ..", "x .git/hooks", "x /etc")),
    ],
    ids=["any", "read", "write", "work"],
)  # fmt: skip
def test_a_rule_may_want_something_of_the_paths(
    path_policy: PathPolicy,
    paths: PathRule,
    fitting: tuple[str, ...],
    others: tuple[str, ...],
) -> None:
    rule = CommandRule(decision="allow", commands=("x",), paths=paths)

    assert [
        text
        for text in fitting
        if decided(path_policy, text, rule) != "allow" and "shadow" not in text
    ] == []
    assert [
        text for text in others if decided(path_policy, text, rule) == "allow"
    ] == []


def test_links_are_followed_before_a_path_is_judged(path_policy: PathPolicy) -> None:
    assert path_policy.directory is not None
    os.symlink("/etc", f"{path_policy.directory}/etc")
    os.symlink("/home/me/.ssh/id_rsa", f"{path_policy.directory}/key")

    rules = [
        CommandRule(decision="allow", commands=("x",), paths=paths)
        for paths in ("write", "read")
    ]

    assert decided(path_policy, "x etc/a", rules[0]) == "ask"
    assert decided(path_policy, "x key", rules[1]) == "ask"


def test_an_unknown_folder_makes_relative_paths_unknown(
    path_policy: PathPolicy,
) -> None:
    import attrs

    lost = attrs.evolve(path_policy, directory=None)

    assert not lost.may_write(Word(raw="a", values=("a",)))
    assert not lost.may_write(Word(raw="*", values=("*",), is_pattern=True))
    assert not lost.may_read(Word(raw="../a", values=("../a",)))
    assert decided(lost, "cd sub && ls > a") == "ask"


@pytest.mark.parametrize(
    ("pattern", "fitting", "others"),
    [
        ("git status|log", ("git status", "git log -3"), ("git", "git push", "git $X")),
        ("x ** -d*", ("x -d", "x a b -dx"), ("x", "x a")),
        ("x $", ("x",), ("x a",)),
        ("x *", ("x a", "x $Y"), ("x",)),
        ("x [!-]*", ("x a",), ("x -a", "x $Y")),
        ("x {a,b}", ("x '{a,b}'",), ("x a",)),
    ],
    ids=str,
)
def test_a_pattern_is_words_with_wildcards(
    path_policy: PathPolicy,
    pattern: str,
    fitting: tuple[str, ...],
    others: tuple[str, ...],
) -> None:
    rule = CommandRule(
        decision="allow", commands=(pattern,), match=fitting, not_match=others
    )

    assert [
        text for text in fitting if decided(path_policy, text, rule) != "allow"
    ] == []
    assert [
        text for text in others if decided(path_policy, text, rule) == "allow"
    ] == []


@pytest.mark.parametrize(
    "text",
    ["x -d", "x $Y", "x --delete", "x --del", "x -d$Y", "x {a,-d}", "x a$Y"],
    ids=str,
)
def test_a_rule_that_asks_takes_in_what_may_fit(
    path_policy: PathPolicy, text: str
) -> None:
    rules = (
        CommandRule(decision="allow", commands=("x",)),
        CommandRule(decision="ask", commands=("x ** -d*|--delete",)),
    )

    assert decided(path_policy, text, *rules) == ("allow" if text == "x a$Y" else "ask")


def test_the_strictest_rule_counts_and_says_why(path_policy: PathPolicy) -> None:
    rules = (
        CommandRule(decision="deny", commands=("x -f",), reason="too much"),
        CommandRule(decision="allow", commands=("x",)),
        CommandRule(decision="ask", commands=("x",)),
    )
    policy = ShellPolicy(rules)

    verdict = policy.evaluate("ls; x -f a", path_policy)

    assert (verdict.decision, verdict.reason, verdict.part) == (
        "deny",
        "too much",
        "x -f a",
    )
    assert policy.evaluate("x", path_policy).reason == "by a rule"


@pytest.mark.parametrize("unlisted", ["allow", "ask", "deny"])
def test_what_cannot_be_judged_is_what_the_caller_says(
    path_policy: PathPolicy, unlisted: Decision
) -> None:
    assert decided(path_policy, "'", unlisted=unlisted) == unlisted
    assert decided(path_policy, "unheard-of", unlisted=unlisted) == unlisted


def test_files_that_a_text_writes_are_not_run_by_it(path_policy: PathPolicy) -> None:
    rules = (
        CommandRule(decision="allow", commands=("echo|tee|cat",)),
        CommandRule(
            decision="allow", commands=("make|sh", "./*"), paths="work", runs_files=True
        ),
    )

    assert decided(path_policy, "echo x > out.txt; make", *rules) == "allow"
    assert decided(path_policy, "echo x > out.txt; sh out.txt", *rules) == "ask"
    assert decided(path_policy, "echo x > out.txt; sh *.txt", *rules) == "ask"
    assert decided(path_policy, "make | tee out.log; sh out.log", *rules) == "ask"
    assert decided(path_policy, "make | tee out.log", *rules) == "allow"
    assert decided(path_policy, "echo x > Makefile; make", *rules) == "ask"
    assert decided(path_policy, "echo x | tee Makefile; ./run", *rules) == "ask"
    assert decided(path_policy, "sh /dev/stdin", *rules) == "ask"
    assert decided(path_policy, "sh /dev/null", *rules) == "allow"
    assert decided(path_policy, "sh run.sh", *rules) == "allow"
    assert decided(path_policy, "./run", *rules) == "allow"


def test_an_example_that_does_not_hold_is_refused() -> None:
    rule = CommandRule(
        decision="allow",
        commands=("a",),
        match=("b", "'", "sub/a"),
        not_match=("a x", "> out"),
    )

    with pytest.raises(ConfigError) as caught:
        ShellPolicy([rule])

    assert [problem.path for problem in caught.value.problems] == [
        "rules[0].match", "rules[0].match", "rules[0].match", "rules[0].not_match",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("5p", True), ("1,5d", True), ("/a/,/b/p", True), ("s/a/b/g", True), ("s|a|b|;p", True), ("$!N",
            True), ("", True),
        ("/a/{p;q}", True), ("/a/{p};d", True), ("1i import os", True), ("5c\\text; e", True), ("a\\\ntext", True),
        ("1~2p", True),
        ("p\nd", True), ("a x\ne id", False), ("a x\\\ne id", False), ("{e id}", False), ("{w x\n}", False),
        ("e", False), ("w x", False), ("s/a/b/e", False), ("s/a/b/w x", False), ("p e", False), ("1e id", False),
    ],
    ids=str,
)  # fmt: skip
def test_a_plain_sed_program_only_prints(text: str, plain: bool) -> None:
    assert is_plain_sed(text) is plain


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("{print $1}", True), ("$3 > 5 {print}", True), ('{print "a, b"}', True), ('{print > "x"}', False),
        ('BEGIN{"ls" | getline}', False), ('{system("ls")}', False), ("@load 'x'", False),
        ('/"/ {system("id")} /"/', False), ('BEGIN{ # "\nsystem("id") # "\n}', False), ('{print 1,\n2 > "x"}', False),
        ('{print $0 ~ /;/ > "x"}', False), ('{print("a") > "x"}', False), ('{if (1) /"/; system("id"); "/"}', False),
        ('{print /[/"]/, system("id") /"/}', False), ("{print \\\n1}", False), ('a)/"/;system("id");"/"', False),
        ('BEGIN {OFS="\\t"} {print $1 "|" $2 ">"}', True), ("{s += $1} END {print s / NR; print ($1 + $2) / 2}", True),
        ("{if ($1 > 3) print $1} # > x", True), ('$0 ~ /"/ {n++ / 2}', True), ("{print a[1 > 2]; $3 > 4}", True),
        ("{ if (a) /b/ }", False), ("{ x = (a) / b }", True), ("{ if ((a) / b > 1) print }", True),
    ],
    ids=str,
)  # fmt: skip
def test_a_plain_awk_program_only_prints(text: str, plain: bool) -> None:
    assert is_plain_awk(text) is plain


@pytest.mark.parametrize(
    "text",
    [
        "echo ${x:=`rm y`}",
        "echo ${x:-<(rm y)}",
        "echo ${x:->(rm y)}",
        "cat <<EOF\n`rm y`\nEOF",
        "cat <<EOF\n${x:-`rm y`}\nEOF",
    ],
)
def test_a_substitution_that_the_grammar_does_not_see_is_asked(
    path_policy: PathPolicy, text: str
) -> None:
    assert decided(path_policy, text) == "ask"


def test_name_also_function_is_judged_as_program_that_runs(
    path_policy: PathPolicy,
) -> None:
    rules = (ALLOWED, CommandRule(decision="deny", commands=("rm",)))

    assert decided(path_policy, "rm() { ls; }; rm x", *rules) == "allow"
    for text in (
        "rm() { ls; }; /bin/rm x",
        "rm() { ls; }; command rm x",
        "(rm() { ls; }); rm x",
        "rm x; rm() { ls; }",
    ):
        assert decided(path_policy, text, *rules) == "deny"


def test_a_doubt_is_asked_about_and_hides_no_denial(path_policy: PathPolicy) -> None:
    rules = (ALLOWED, CommandRule(decision="deny", commands=("rm",)))

    assert decided(path_policy, "read x; echo $((x))", *rules) == "ask"
    assert decided(path_policy, "read x; echo $((x)); rm y", *rules) == "deny"


@pytest.mark.parametrize(
    "text",
    [
        "cd /; ls > a", "builtin cd /; ls > a", "command -p cd /; ls > a", "eval 'cd /'; ls > a",
        "trap 'cd /' DEBUG; ls > a",
        "cd no/such; ls > ../../a", "true; cd no/such; cd ..; ls > a", "for d in */; do cd $d; ls > a; done",
        "true; cd ..; ls > ../a", "cd link/..; ls > a", "cd sub x; ls > a", "cd ''; ls > a",
    ],
    ids=str,
)  # fmt: skip
def test_where_a_text_may_have_gone_counts(path_policy: PathPolicy, text: str) -> None:
    assert path_policy.directory is not None
    os.makedirs(f"{path_policy.directory}/sub/deep")
    os.symlink(f"{path_policy.directory}/sub/deep", f"{path_policy.directory}/link")
    start = (
        attrs.evolve(path_policy, directory=f"{path_policy.directory}/sub")
        if "true" in text
        else path_policy
    )

    assert decided(start, text) == "ask"


def test_a_folder_that_is_there_is_certainly_reached(path_policy: PathPolicy) -> None:
    assert decided(path_policy, "cd sub; ls > ../a") == "allow"
    assert decided(path_policy, "true; cd sub; cd ..; ls > a") == "allow"
    assert decided(path_policy, "cd new; ls > a") == "allow"


@pytest.mark.figures
def test_long_chains_of_missing_folders_are_not_followed(
    path_policy: PathPolicy,
) -> None:
    moves = [f"(mkdir d{number} && cd d{number}; ls > a)" for number in range(40)]
    rule = CommandRule(decision="allow", commands=("cd **", "ls **", "mkdir **"))

    assert decided(path_policy, "\n".join(moves[:4]), rule) == "allow"
    assert takes_at_most(3, lambda: decided(path_policy, "\n".join(moves), rule))
    assert decided(path_policy, "\n".join(moves), rule) == "ask"


def test_a_rule_that_writes_does_not_hold_in_a_folder_elsewhere(
    path_policy: PathPolicy,
) -> None:
    rule = CommandRule(decision="allow", commands=("make",), paths="work")

    assert decided(path_policy, "cd sub && make", ALLOWED, rule) == "allow"
    assert decided(path_policy, "cd /tmp && make", ALLOWED, rule) == "ask"
    assert decided(path_policy, "cd $X && make", ALLOWED, rule) == "ask"


@pytest.mark.figures
def test_many_patterns_cost_nothing_for_commands_of_other_names() -> None:
    patterns = tuple(f"program-{number} *" for number in range(3000))
    policy = ShellPolicy([ALLOWED, CommandRule(decision="ask", commands=patterns)])
    path_policy = PathPolicy(directory="/work", writable=("/work",))

    assert takes_at_most(3, lambda: policy.evaluate("ls;" * 500, path_policy))


def test_what_looks_like_a_substitution_in_quotes_is_text(
    path_policy: PathPolicy,
) -> None:
    assert decided(path_policy, "echo 'a <(rm y)' \"b >(rm y)\"") == "allow"


@pytest.mark.parametrize(
    "text",
    [
        "x push",
        "x -C . push",
        "x --long push",
        "x -c a=b push -f",
        "x -q -C . push",
        "env x -C . push",
    ],
    ids=str,
)
def test_rule_that_denies_takes_in_options_before_subcommand(
    path_policy: PathPolicy, text: str
) -> None:
    rules = (
        CommandRule(decision="allow", commands=("x",)),
        CommandRule(decision="deny", commands=("x push",)),
    )

    assert decided(path_policy, text, *rules) == "deny"
    assert decided(path_policy, "x pull", *rules) == "allow"
    assert decided(path_policy, "x -C", *rules) == "allow"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("export SWORDFISH_X=1", "what programs do with 'SWORDFISH_X=1' is not known"),
        ("SWORDFISH_X=1 ls", "what programs do with SWORDFISH_X is not known"),
        ("echo {1..200000}", "more words than memory holds"),
        ("find . | xargs -I $MARK $PROGRAM x", "known only when it runs"),
        ("command", "no rule lets 'command' run"),
        ("l? -l", "what it runs is known only when it runs"),
    ],
)
def test_what_is_not_known_is_asked_about_with_its_reason(
    path_policy: PathPolicy, text: str, reason: str
) -> None:
    rules = (
        attrs.evolve(ALLOWED, paths="read"),
        CommandRule(decision="allow", commands=("export",)),
    )
    found = ShellPolicy(rules).evaluate(text, path_policy, {"HOME": "/home/me"})
    assert found.decision == "ask"
    assert reason in found.reason
