"""What a shell text consists of."""

from __future__ import annotations

import pytest

from amplifier_kit import shell
from amplifier_kit.shell import ShellSyntaxError, SimpleCommand, grammar, parse_script
from amplifier_kit.shell.scripts import HOLE


def values(text: str, **variables: str) -> list[list[tuple[str, ...]]]:
    """The possible values of each word of each command."""
    return [
        [word.values for word in command.words]
        for command in parse_script(text, variables).commands
    ]


def only(text: str, **variables: str) -> str | None:
    """The one value of the last word of a text."""
    return parse_script(text, variables).commands[0].words[-1].static


def names(text: str) -> list[str | None]:
    return [command.words[0].static for command in parse_script(text).commands]


def test_the_package_names_what_it_offers() -> None:
    assert "parse_script" in dir(shell)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("x plain", "plain"),
        ("x 12", "12"),
        (r"x a\ b", "a b"),
        ("x a \\\n b", "b"),
        ("x 'a b'", "a b"),
        ('x "a b"', "a b"),
        (r'x "a\"b\$c"', 'a"b$c'),
        ('x "a$"', "a$"),
        (r"x a'b'\"c\"d", 'ab"c"d'),
        ('x $"a"', "a"),
        (r"x $'\x72\155\n\u0041\\'", "rm\nA\\"),
        (r"x $'plain'", "plain"),
        (r"x $'\q'", None),
        (r"x $'\0'", None),
        ("x ~/a", "/home/me/a"),
        ("x ~root/a", None),
        ("x '~/a'", "~/a"),
        ("x $HOME/a", "/home/me/a"),
        ('x "${HOME}/a"', "/home/me/a"),
        ("x ${HOME%/*}", None),
        ("x $OTHER", None),
        ("x $(nproc)", "1"),
        ('x "a  $HOME  b"', "a  /home/me  b"),
        ("x $SPLIT", None),
        ('x "$SPLIT"', "a b"),
        ("x <(ls)", "/dev/fd/63"),
        ("x $((1 + 2))", None),
        ("x a{1..3}", None),
        ("x {a,'b'}c", None),
        ("x '{a}'{b,c}", None),
    ],
    ids=str,
)
def test_quotes_are_taken_away_and_known_variables_put_in(
    text: str, value: str | None
) -> None:
    assert only(text, HOME="/home/me", SPLIT="a b") == value


def test_without_a_home_a_tilde_is_not_known() -> None:
    assert only("x ~/a") is None


def test_a_word_may_have_several_values() -> None:
    assert values("x a{b,c}d") == [[("x",), ("abd", "acd")]]
    assert values("for f in a b; do x $f.txt; done") == [[("x",), ("a.txt", "b.txt")]]
    assert values("a=1; if x; then a=2; fi; y $a")[1] == [("y",), ("1", "2")]
    assert values("x {a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q}")[0][1] == ("\0",)


@pytest.mark.parametrize(
    "text",
    [
        "x $a; a=b; read a < f",
        "x $a; a=b; ((a = 1))",
        "x $a; a=b; let a=1",
        "x $a; ((a++)); a=b",
        "x $a; a=b; a+=c",
        "a[1]=b; x $a",
        "for a; do x $a; done",
        "a=(b c); x $a",
        "x $a; a=$(ls)",
        "a='b c'; x $a",
        "a=*; x $a",
        "(a=b); x $a",
        "a=b | c; x $a",
        "a=b & x $a",
        "c && a=b; x $a",
        "if c; then a=b; fi; x $a",
        "for i in 1; do a=b; done; x $a",
        "f() { a=b; }; x $a",
        "{ a=b; } > out; x $a",
        "x $a; a=b",
        "a=b; unset a; x $a",
        "a=b; command read a; x $a",
        "a=b; builtin -p read a; x $a",
        "a=b; command export a=c; x $a",
        "a=b; export 'a=c'; x $a",
        "a=b; printf -va c; x $a",
        "a=b; printf $c d; x $a",
        "a=b; read $c; x $a",
        "a=b; c ${a:=d}; x $a",
        "a=b; eval c; x $a",
        "a=read; b=c; $a b; x $b",
        "read PWD; x $PWD",
    ],
    ids=str,
)
def test_a_variable_that_is_not_certain_is_not_known(text: str) -> None:
    assert (
        parse_script(text)
        .commands[-1 if not text.startswith("x") else 0]
        .words[-1]
        .static
        is None
    )


def test_a_variable_that_is_set_on_every_way_is_known() -> None:
    assert values("a=b; if x; then y $a; fi")[1] == [("y",), ("b",)]
    assert values("{ a=b; }; y $a") == [[("y",), ("b",)]]
    assert values("a=b && y $a") == [[("y",), ("b",)]]
    assert values("a=b; for a in c; do y $a; done") == [[("y",), ("b", "c")]]


def test_only_a_function_that_is_certainly_defined_is_called() -> None:
    def called(text: str) -> bool:
        return parse_script(text).commands[-1].is_function

    assert called("f() { x; }; f")
    assert called("f() { x; }; if y; then f; fi")
    for text in (
        "(f() { x; }); f",
        "if y; then f() { x; }; fi; f",
        "f() { x; } & f",
        "y && f() { x; }; f",
    ):
        assert not called(text)
    for text in (
        "f() { x; }; /bin/f",
        "f() { x; }; command f",
        "f() { x; }; unset -f f; f",
        "f() { x; }; eval y; f",
    ):
        assert not called(text)


@pytest.mark.parametrize(
    "text",
    [
        "a=1; echo $((a + 1))", "for a in 1 2; do echo $((a)); done", "a=$(wc -l < f); [[ $a -gt 3 ]]",
        "echo $((b))", "a=$((1)); a=$((a + 1)); let a=a+1; echo $((a))", "a=x; [[ $a == y ]]", "echo ${a[0]} ${a[@]}",
        "a=5; b=$a; echo $((b)) ${c:b:1}", "[ $1 -eq 2 ]", "for ((i=0; i<3; i++)); do x; done", 'a="$#"; ((a > 1))',
        "a=$?; [[ $a -eq 0 ]]", "read a; echo $a", "test -v a", "a=${#b}; echo $((a))",
    ],
    ids=str,
)  # fmt: skip
def test_arithmetic_on_numbers_is_certain(text: str) -> None:
    assert parse_script(text).doubts == ()


@pytest.mark.parametrize(
    "text",
    [
        "read a; echo $((a))", "a='b[$(c)]'; echo $((a))", "a=b; b='c[$(d)]'; echo $((a))", "echo $(($1))",
        "echo $(( $(a) ))", "[[ 'a[$(b)]' -eq 1 ]]", "test -v 'a[$(b)]'", "[ -v 'a[$(b)]' ]", "let 'a[$(b)]=1'",
        "let $a",
        "printf -v 'a[$(b)]' x", "unset 'a[`b`]'", "wait -p 'a[$(b)]'", "a=$(b); echo ${c[a]}", "a=$(b); echo ${c:a}",
        "declare -i a; a=$(b)", "a=$(b); ((a))", "for a in $(b); do echo $((a)); done", "for a; do echo $((a)); done",
        "for a in *; do [[ $a -eq 1 ]]; done", "echo $((REPLY))", "a=(b); echo $((a))", "eval a; echo $((b))",
        "[[ a\\b -eq 1 ]]", "a=$'b'; echo $((a))", "a=${b%c}; echo $((a))",
    ],
    ids=str,
)  # fmt: skip
def test_arithmetic_on_texts_is_a_doubt(text: str) -> None:
    (doubt,) = parse_script(text).doubts

    assert "works out a value that is not known to be a number" in doubt


@pytest.mark.parametrize(
    "text",
    [
        "a; b", "a && b", "a || b", "a | b", "a |& b", "a & b", "a\nb", "(a; b)", "{ a; b; }", "! a; b",
        "if a; then b; fi", "while a; do b; done", "until a; do b; done", "for x in 1; do a; b; done",
        "case x in x) a;; *) b;; esac", "for ((i=0; i<1; i++)); do a; b; done", "f() { a; b; }", "function f { a; b; }",
        "a <(b)", "a $(b)", "a `b`", 'a "$(b)"', "a ${x:-$(b)}", "a=$(a; b)", "a=1 a $(b)", "a <<< $(b)",
        "a <<E\n$(b)\nE", "a <<E | b\ntext\nE", "a; [[ $(b) ]]", "a; echo=$(( $(b) ))", "a > $(b)", "a # c\nb",
        "select x in 1; do a; b; done", "a=($(a) $(b))", "a[$(a)]=$(b)",
    ],
    ids=str,
)  # fmt: skip
def test_every_command_is_found_wherever_it_stands(text: str) -> None:
    assert {"a", "b"} <= {*names(text), *(() if "a=" not in text else ("a",))}


def test_declarations_are_commands_with_assignments() -> None:
    script = parse_script("export A=1 B; unset C; X=1 Y=$Z cmd arg")

    assert [[word.raw for word in command.words] for command in script.commands] == [
        ["export", "A=1", "B"],
        ["unset", "C"],
        ["cmd", "arg"],
    ]
    assert [(each.name, each.value.static) for each in script.assignments] == [
        ("A", "1")
    ]
    assert [
        (each.name, each.value.static) for each in script.commands[-1].assignments
    ] == [("X", "1"), ("Y", None)]
    assert script.commands[0].text == "export A=1 B"


def test_redirections_tell_what_they_open() -> None:
    script = parse_script("a > b 2>> c < d 2>&1 3>&- &> e >| g")

    assert [(each.operator, each.target.static, each.writes) for each in script.redirects] == [
        (">", "b", True), (">>", "c", True), ("<", "d", False), (">&", "1", True), ("&>", "e", True),
        (">|", "g", True),
    ]  # fmt: skip


def test_functions_that_call_themselves_are_known() -> None:
    script = parse_script("f() { g; }; g() { f | f & }; h() { ls; }; i() { h; }; i")

    assert [script.repeats(name) for name in "fghi"] == [True, True, False, False]
    assert not script.repeats("nothing")


def test_patterns_are_unquoted_wildcards() -> None:
    words = parse_script(r"x *.py '*' \* a[1] \"?\" a*'b'").commands[0].words[1:]

    assert [word.is_pattern for word in words] == [True, False, False, True, True, True]
    assert parse_script('for f in *; do x "$f"; done').commands[0].words[1].is_pattern
    assert (
        not parse_script('for f in a; do x "$f"; done').commands[0].words[1].is_pattern
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("echo 'a", "cannot be read as shell text .at line 1"),
        ("if a; then", "cannot be read"),
        ("a ||| b", "cannot be read"),
        ("echo \0", "characters that no shell text has"),
        ("echo a\rb", "characters that no shell text has"),
        ("echo \ud800", "characters that no shell text has"),
        ("#" * 100_001, "too long"),
        ("ls;" * 30_000, "10,000 parts"),
        ("echo ${x@P}", "may run what a variable holds"),
        ("echo a\\\nb", "goes on behind the end of a line"),
        ("echo > a b", "words behind the redirection"),
        ("echo ${x:-`b`}", "a substitution in"),
        ("cat <<E\n`b`\nE", "a substitution in"),
        ("(" * 70 + "a" + ")" * 70, "nested more than 60 levels"),
        ("a \f#;b", "characters that no shell text has"),
        ("a ${!b}", "may run what a variable holds"),
        ("cat <<E;a;\nb\nE;a;", "where the document of 'E;a;' ends"),
        (
            "cat <<EOF | cat\nx\nEfor i in a b; @( do echo $i; do`a`neOF\n",
            "where the document of 'EOF' ends",
        ),
        ("cat <<-E\n  E\necho 'x\nE\n#'", "give its end a line alone"),
        ("cat <<E\nb\nE \nE\n", "give its end a line alone"),
        ("echo \"${x:-'a'}\"", "may be read in two ways"),
        ("[a = b ]", "no plain test"),
        ("[ a > b ]", "no plain test"),
        ("[[ a<(b) = c ]]", "no plain test"),
        ("x=$\na", "which cannot be read"),
        ("cat <<E\n`a` $b\nE", "substitution in|which cannot be read"),
        ("pwd() { a; }", "makes another 'pwd'"),
        ("echo a == b \nc ]]", "the argument .* cannot be read"),
        ("[[ a\nb ]]", "no plain test|cannot be read"),
        ("a=(1 2)# `b`", "may be no comment"),
        ("a ${x/{v}\nb\n>a/b}", "where .* ends cannot be read"),
        ("cat <<E\nE # `b`", "give its end a line alone"),
        ("case a in a) e;;) esa<(b)c", "cannot be read as shell text"),
    ],
    ids=[
        "quote",
        "if",
        "operators",
        "nul",
        "return",
        "surrogate",
        "long",
        "many",
        "prompt",
        "line",
        "behind",
        "hidden",
        "document",
        "deep",
        "feed",
        "indirect",
        "delimiter",
        "end",
        "before",
        "behind the end",
        "literal",
        "bracket",
        "opened",
        "process",
        "apart",
        "gap",
        "relied",
        "regex",
        "lines",
        "comment",
        "braces",
        "words behind the end",
        "fault",
    ],
)
def test_what_is_not_certain_is_an_error(text: str, problem: str) -> None:
    with pytest.raises(ShellSyntaxError, match=problem):
        parse_script(text)


def test_a_part_that_is_not_known_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grammar, "_STRUCTURE", frozenset({"program", "command_name"}))

    with pytest.raises(ShellSyntaxError, match="'a && b', which is not understood"):
        parse_script("a && b")


def test_a_quoted_document_is_no_program() -> None:
    assert names("cat <<'E' > out\n$(b) `c`\nE\nd") == ["cat", "d"]


def test_nothing_is_a_command_without_words() -> None:
    assert SimpleCommand(words=()).text == ""
    assert parse_script("").commands == ()
    assert parse_script("> out").commands == ()


def test_a_text_is_nested_so_deep_and_no_deeper() -> None:
    def nested(levels: int) -> str:
        return "( " * levels + "ls" + " )" * levels

    assert [command.text for command in parse_script(nested(57)).commands] == ["ls"]
    with pytest.raises(ShellSyntaxError, match="nested more than 60 levels deep"):
        parse_script(nested(58))


@pytest.mark.parametrize(
    ("expression", "value"),
    [("1 + 2", "a"), ("y = 2", HOLE), ("y++", HOLE), ("y--", HOLE)],
)
def test_a_variable_is_known_unless_arithmetic_may_set_it(
    expression: str, value: str
) -> None:
    script = parse_script(f'x=a; : $(({expression})); cat "$x"')

    assert script.commands[-1].words[1].values == (value,)


def test_only_what_is_not_quoted_is_taken_apart() -> None:
    (command,) = parse_script('cat $X "$X" a$X').commands

    assert [word.may_split for word in command.words] == [False, True, False, True]


def test_a_translated_string_is_its_text_and_a_nested_default_is_not_known() -> None:
    assert only('a=$"b c"; x "$a"') == "b c"
    assert only("x ${A:-${B}}", A="a", B="b") is None
    assert parse_script("l? x").commands[0].program is None
