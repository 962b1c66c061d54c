"""Evaluates shell texts: every command, redirection and assignment by the rules; the strictest answer counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal, TypeAlias

import attrs

from amplifier_kit.shell.changes import written_over
from amplifier_kit.shell.decisions import Decision, strictest
from amplifier_kit.shell.disk_usage import growth_of
from amplifier_kit.shell.grammar import parse_script
from amplifier_kit.shell.path_policy import PathPolicy
from amplifier_kit.shell.programs import LANGUAGES
from amplifier_kit.shell.risky_variables import is_harmless, is_steering, names_code
from amplifier_kit.shell.rules import CommandRule
from amplifier_kit.shell.script_context import ScriptContext, changes_names, program_of
from amplifier_kit.shell.scripts import (
    HOLE,
    SYSTEM_FOLDERS,
    Assignment,
    Redirect,
    ShellSyntaxError,
    SimpleCommand,
    Word,
    word_of,
)
from amplifier_kit.shell.setters import DECLARING, SETTERS, names_set_by
from amplifier_kit.shell.table import CallWord, Table
from amplifier_kit.shell.wrappers import UNKNOWN, inner_of
from amplifier_sdk.errors import ConfigError, Problem

__all__ = ["Cause", "PolicyDecision", "ShellPolicy"]

_MAX_DEPTH: Final = 5

Cause: TypeAlias = Literal["rule", "unlisted", "unknown", "secret"]
"""What decided about a part of a text."""


@attrs.frozen(kw_only=True)
class PolicyDecision:
    """What becomes of a text, why, and which part of it decided that.

    `cause` says what decided: a `rule` that fits, that none does (`unlisted`), that the part cannot be evaluated
    (`unknown`), or that it may reach a `secret`, which is asked about whatever becomes of what is unlisted.
    `edits` are the files that a text writes over which may run for all that the rules say: whoever decides on edits
    decides on these.
    """

    decision: Decision
    reason: str = ""
    part: str = ""
    cause: Cause = "rule"
    edits: tuple[str, ...] = ()


_ALLOWED: Final = PolicyDecision(decision="allow")


class ShellPolicy:
    """Evaluates texts by rules.

    This says what runs without asking a person. It is no security boundary: a program that may run can do
    anything that its sandbox allows.

    Args:
        rules: in any order; they count before the table.
        unlisted: what becomes of a command that no rule fits, and of what cannot be evaluated.
        table: programs that run unasked, with their options; `None` for none.

    Raises:
        ConfigError: an example of a rule does not hold; names the rule.
    """

    def __init__(
        self,
        rules: Sequence[CommandRule],
        unlisted: Decision = "ask",
        table: Table | None = None,
    ) -> None:
        self._table = table
        self._rules = tuple(rules)
        self._unlisted = unlisted
        self._first_words = {
            name
            for rule in rules
            for pattern in rule.commands
            for name in pattern.split(" ")[0].split("|")
        }
        problems = [
            problem
            for index, rule in enumerate(rules)
            for problem in _false_examples(index, rule)
        ]
        if problems:
            raise ConfigError(problems, subject="rules for shell commands")

    def evaluate(
        self,
        text: str,
        path_policy: PathPolicy,
        variables: Mapping[str, str] | None = None,
    ) -> PolicyDecision:
        """Evaluate a text.

        Args:
            text: what the shell is to run.
            path_policy: what its paths are evaluated by.
            variables: those whose values are known, such as `HOME`.
        """
        # decided for the text as a whole: a file may be renamed at any point
        # before it is used, also in a nested shell
        if changes_names(text):
            path_policy = attrs.evolve(path_policy, is_changing=True)
        return self._evaluate(text, path_policy, variables or {}, 0)

    def _evaluate(
        self,
        text: str,
        path_policy: PathPolicy,
        variables: Mapping[str, str],
        depth: int,
    ) -> PolicyDecision:
        # `eval` of `eval` and shells in shells: a bound keeps the evaluation
        # finite, and what lies deeper is doubted rather than allowed
        if depth > _MAX_DEPTH:
            return self._doubt(f"it is nested more than {_MAX_DEPTH} shells deep", text)
        try:
            script = parse_script(text, variables)
        except ShellSyntaxError as error:
            return self._doubt(error.message, text)
        verdicts = [
            self._doubt(doubt, text)
            for doubt in (*script.doubts, growth_of(script))
            if doubt
        ]
        # What is nothing in one folder may be a file in another: a text must be allowed in each.
        for context in ScriptContext.each(script, path_policy, variables, depth):
            verdicts += (self._command(each, context) for each in script.commands)
            verdicts += (self._assignment(each, context) for each in script.assignments)
            verdicts += (self._redirect(each, context) for each in script.redirects)
        return _strictest(verdicts)

    def _command(
        self, command: SimpleCommand, context: ScriptContext
    ) -> PolicyDecision:
        return _strictest(
            [*self._sides(command, context), self._main(command, context)]
        )

    def _sides(
        self, command: SimpleCommand, context: ScriptContext
    ) -> Iterator[PolicyDecision]:
        """Evaluate what a command carries besides what it does."""
        name = program_of(command)
        if name in SETTERS and names_set_by(command) is None:
            yield self._doubt(
                "which variables it sets is known only when it runs", command.text
            )
        for assignment in command.assignments:
            # `IFS= read -r line` is how lines are read; the variable ends with
            # the command
            if not (name == "read" and assignment.name == "IFS"):
                yield self._assignment(assignment, context, is_exported=True)
        exports = _exports(name, command)
        for word in command.words[1:]:
            if name in SETTERS and any(map(_sets_steering, word.values)):
                yield self._doubt(
                    f"{word.raw!r:.80} decides what programs run or trust", command.text
                )
            elif exports and not all(map(_is_harmless_word, word.values)):
                yield self._doubt(
                    f"what programs do with {word.raw!r:.80} is not known", command.text
                )
            if any(
                map(
                    context.path_policy.is_secret,
                    (*word.values, *_matches(word, context)),
                )
            ):
                yield self._secret(f"{word.raw!r:.80} may hold secrets", command.text)

    def _main(self, command: SimpleCommand, context: ScriptContext) -> PolicyDecision:
        program = command.program
        if program is None:
            return self._doubt("what it runs is known only when it runs", command.text)
        name, is_own = self._name(program, context)
        if name is None:
            return self._doubt(
                f"{program!r:.80} is a program from elsewhere", command.text
            )
        if command.is_function:
            return self._by_rules(name, command, context, is_own=is_own)
        inner = inner_of(name, command, context.listed or UNKNOWN)
        if inner is None:
            return self._by_rules(name, command, context, is_own=is_own)
        if inner.own is None:
            found = []
        else:
            found = [self._by_rules(name, inner.own, context, is_own=is_own)]
        if inner.opaque is not None:
            found.append(self._doubt(inner.opaque, command.text))
        found += (self._nested(each, context) for each in inner.commands)
        found += (
            self._evaluate(
                text, context.path_policy, context.variables, context.depth + 1
            )
            for text in inner.texts
        )
        return _strictest(found)

    def _nested(self, command: SimpleCommand, context: ScriptContext) -> PolicyDecision:
        if context.depth >= _MAX_DEPTH:
            return self._doubt("it is wrapped too often", command.text)
        return self._command(command, attrs.evolve(context, depth=context.depth + 1))

    def _name(self, program: str, context: ScriptContext) -> tuple[str | None, bool]:
        """Return a program's name for the rules, and whether it belongs to the folder that is worked in."""
        folder, slash, name = program.rpartition("/")
        if not slash:
            return program, False
        if folder in SYSTEM_FOLDERS:
            return name, False
        # Outside of the writable folders a program may be anybody's, and a name
        # that a rule trusts says nothing about it there.
        if not context.path_policy.may_write(word_of(program)):
            return None, False
        # `./gradlew` counts by the rules for `gradlew` where there are some; else
        # the name keeps its dot, so that a rule for a program of the system does
        # not fit it
        is_known = name in self._first_words or (
            self._table is not None and self._table.knows(name)
        )
        return (name if is_known else f"./{name}"), True

    def _by_rules(
        self, name: str, command: SimpleCommand, context: ScriptContext, *, is_own: bool
    ) -> PolicyDecision:
        if command.is_function:
            # the body of a function is evaluated once, where it is defined, so a
            # recursion could do more than was seen
            if context.script.repeats(name):
                return self._doubt(f"{name!r:.60} calls itself", command.text)
            return _ALLOWED  # its body is among the commands
        fitting = [
            rule
            for rule in self._rules
            if rule.fits(command, name, context.path_policy)
        ]
        if not fitting and self._table is not None:
            return self._by_table(self._table, name, command, context, is_own=is_own)
        # a rule that allows `sed` means sed that edits text; its `e` and `w` run
        # and write
        language = LANGUAGES.get(name)
        if language is not None and not language(
            command.words[1:], context.path_policy
        ):
            return self._doubt(
                f"the program for {name} may do more than print", command.text
            )
        if context.fills(command):
            # what the text has just written nobody has seen, so no rule may run
            # it
            fitting = [rule for rule in fitting if not rule.runs_files]
        # the program that is run may be the one that the text has written
        if is_own and context.writes:
            return self._doubt("it writes files and runs one", command.text)
        if not fitting:
            reason = f"no rule lets {name!r:.60} run unasked with these arguments"
            return PolicyDecision(
                decision=self._unlisted,
                reason=reason,
                part=command.text,
                cause="unlisted",
            )
        decision = strictest([rule.decision for rule in fitting])
        # several rules may ask for the same: the first with a reason of its own
        # speaks
        reason = next(
            (
                rule.reason
                for rule in fitting
                if rule.decision == decision and rule.reason
            ),
            "by a rule",
        )
        return PolicyDecision(decision=decision, reason=reason, part=command.text)

    def _by_table(
        self,
        table: Table,
        name: str,
        command: SimpleCommand,
        context: ScriptContext,
        *,
        is_own: bool,
    ) -> PolicyDecision:
        # patterns are put beside what they stand for now: a file may be called
        # `-rf`
        finding = table.find(
            name, _expanded(command.words[1:], context), context.path_policy
        )
        effects = finding.effects | ({"run"} if is_own else set())
        if finding.refused and finding.cause == "secret":
            return self._secret(
                f"{finding.refused!r:.60} may hold secrets", command.text
            )
        if finding.refused:
            what = "run unasked"
            if finding.refused != name:
                what = f"run unasked with {finding.refused!r:.60}"
            reason = f"no rule lets {name!r:.60} {what}"
            return PolicyDecision(
                decision=self._unlisted,
                reason=reason,
                part=command.text,
                cause=finding.cause,
            )
        if (
            not effects.isdisjoint(("run", "work"))
            and not context.path_policy.is_inside
        ):
            return self._doubt(
                f"{name!r:.60} would work in a folder elsewhere", command.text
            )
        if "run" in effects and not context.path_policy.has_sandbox:
            return self._doubt(
                f"{name!r:.60} runs programs of the folder, and there is no sandbox",
                command.text,
            )
        if "run" in effects and (context.fills(command) or (is_own and context.writes)):
            return self._doubt("it writes files and runs one", command.text)
        if "run" in effects:
            return _ALLOWED  # what it makes, it makes again
        # a rename that comes later takes nothing from what this command finds in
        # place
        policy = context.path_policy
        if not context.is_renamed_before(command):
            policy = attrs.evolve(policy, is_changing=False)
        return self._written(written_over(finding.arguments, policy), policy)

    def _written(
        self, words: Iterable[CallWord], path_policy: PathPolicy
    ) -> PolicyDecision:
        """Name what is written over; where all may run that no rule is about, nobody is to decide on it."""
        # there everything runs, so nobody would be asked about the edits either
        if self._unlisted == "allow":
            return _ALLOWED
        edits = []
        for each in words:
            policy = path_policy
            if each.directory != policy.directory:
                policy = attrs.evolve(policy, directory=each.directory)
            if any(map(policy.holds_work, each.word.values)):
                edits.append(_shown(each.word))
        return PolicyDecision(decision="allow", edits=tuple(edits))

    def _doubt(self, reason: str, part: str) -> PolicyDecision:
        return PolicyDecision(
            decision=self._unlisted, reason=reason, part=part, cause="unknown"
        )

    def _secret(self, reason: str, part: str) -> PolicyDecision:
        """Ask at least: to let what is unlisted run is no word about secrets."""
        return PolicyDecision(
            decision=strictest(["ask", self._unlisted]),
            reason=reason,
            part=part,
            cause="secret",
        )

    def _assignment(
        self,
        assignment: Assignment,
        context: ScriptContext,
        *,
        is_exported: bool = False,
    ) -> PolicyDecision:
        name, value = assignment.name, assignment.value
        # the text as it is written: a value that was put in may be a secret
        part = f"{name}={value.raw}"
        if is_steering(name):
            return self._doubt(f"{name} decides what programs run or trust", part)
        if is_exported and not is_harmless(name):
            return self._doubt(f"what programs do with {name} is not known", part)
        # each folder of a search path counts, and an empty one is the working
        # directory
        folders = [folder for each in value.values for folder in each.split(":")]
        if names_code(name) and not all(
            context.path_policy.may_use(word_of(folder)) for folder in folders
        ):
            return self._doubt(f"{name} leads elsewhere", part)
        if any(map(context.path_policy.is_secret, value.values)):
            return self._secret("its value may be a secret's name", part)
        if any("$(" in each or "`" in each for each in value.values):
            return self._doubt("its value may run when it is used", part)
        return _ALLOWED

    def _redirect(self, redirect: Redirect, context: ScriptContext) -> PolicyDecision:
        part = f"{redirect.operator} {redirect.target.raw}"
        # `2>&1` opens no file
        if redirect.is_of_handle:
            return _ALLOWED
        if any(
            map(
                context.path_policy.is_secret,
                (*redirect.target.values, *_matches(redirect.target, context)),
            )
        ):
            return self._secret(f"{redirect.target.raw!r:.80} may hold secrets", part)
        if redirect.writes and not context.path_policy.may_write(redirect.target):
            return self._doubt(
                "it writes outside the folders that may be written", part
            )
        if not redirect.writes and any(
            map(context.path_policy.is_endless, redirect.target.values)
        ):
            return self._doubt("what it reads has no end", part)
        if not redirect.writes and not context.path_policy.may_read(redirect.target):
            return self._doubt("it reads a file that may be private", part)
        if not redirect.writes:
            return _ALLOWED
        # a pattern is a name as well where one file fits it
        names = _expanded([redirect.target], context)
        directory = context.path_policy.directory
        written = [CallWord("WRITE", name, directory) for name in names]
        return self._written(written, context.path_policy)


def _shown(word: Word) -> str:
    """Return a word as it is written, or the pattern that stands for what it is given when it runs."""
    return next((value for value in word.values if "/**" in value), word.raw)


def _sets_steering(value: str) -> bool:
    """Tell whether a word names a variable that steers, also behind the letters of options, as in `-vPATH`."""
    name = value.partition("=")[0]
    if name.startswith("-"):
        # `printf -vPATH` sets a variable whose name is glued to the option's
        # letter
        starts = range(2, len(name))
    else:
        starts = range(0)
    return is_steering(name) or any(is_steering(name[start:]) for start in starts)


def _exports(name: str, command: SimpleCommand) -> bool:
    """Tell whether a command gives the variables that it names to programs."""
    options = (
        value
        for word in command.words[1:]
        for value in word.values
        if value.startswith("-")
    )
    return name == "export" or (
        name in DECLARING and any("x" in option for option in options)
    )


def _is_harmless_word(value: str) -> bool:
    return value.startswith("-") or is_harmless(value.partition("=")[0])


def _strictest(verdicts: Sequence[PolicyDecision]) -> PolicyDecision:
    """Return the verdict that takes precedence; of equal ones the one that fewest answers can cover."""
    decision = strictest(["allow", *(verdict.decision for verdict in verdicts)])
    found = [verdict for verdict in verdicts if verdict.decision == decision]
    if not found:
        return _ALLOWED
    # A person who may answer "always" for an unlisted command must see the
    # weightier cause first, or that answer would cover a secret as well.
    verdict = max(found, key=lambda verdict: _WEIGHT[verdict.cause])
    if decision != "allow":
        return verdict
    edits = dict.fromkeys(edit for each in found for edit in each.edits)
    return attrs.evolve(verdict, edits=tuple(edits))


_WEIGHT: Final[dict[Cause, int]] = {"unlisted": 0, "unknown": 1, "rule": 2, "secret": 3}


def _matches(word: Word, context: ScriptContext) -> tuple[str, ...]:
    """Return the names that a pattern stands for now; a hole where they are not known."""
    if word.is_pattern:
        found = context.path_policy.matches(word)
    else:
        found = ()
    if found is None:
        return (HOLE,)
    return found


def _expanded(words: Sequence[Word], context: ScriptContext) -> tuple[Word, ...]:
    """Put behind each pattern what it stands for now: a name may be an option, or lead elsewhere."""
    return tuple(
        each
        for word in words
        for each in (word, *map(word_of, _matches(word, context)))
    )


def _false_examples(index: int, rule: CommandRule) -> Iterator[Problem]:
    """Yield a problem for each example that a rule does not keep to; paths are evaluated as in an empty folder."""
    path_policy = PathPolicy(
        directory="/workspace", writable=("/workspace",), home="/home/person"
    )
    for key, examples, expected in (
        ("match", rule.match, True),
        ("not_match", rule.not_match, False),
    ):
        for example in examples:
            try:
                commands = parse_script(example, {"HOME": "/home/person"}).commands
            except ShellSyntaxError as error:
                yield Problem(f"rules[{index}].{key}", f"{example!r}: {error.message}")
                continue
            fits = any(
                rule.fits(command, _example_name(command), path_policy)
                for command in commands
            )
            if fits is not expected:
                verb = "fits"
                if expected:
                    verb = "does not fit"
                yield Problem(
                    f"rules[{index}].{key}",
                    f"{example!r} {verb} {' or '.join(rule.commands)!r:.120}",
                )


def _example_name(command: SimpleCommand) -> str:
    folder, _, name = (command.words[0].static or "").rpartition("/")
    if folder and folder not in SYSTEM_FOLDERS:
        return f"./{name}"
    return name
