"""One rule on tool calls: what it is about, and what becomes of the calls that fit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final, TypeAlias

import attrs

from amplifier_kit.rules.calls import COMMAND_KEYS, URL_KEYS, RuledCall
from amplifier_kit.rules.paths import PathPattern
from amplifier_kit.rules.touched import TouchedPath, touched_paths
from amplifier_kit.rules.truth import Truth
from amplifier_kit.shell.decisions import Decision
from amplifier_sdk.effects import EFFECTS, ONLY_READS, Effect
from amplifier_sdk.jsontypes import JSONValue

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Example", "Rule"]

Example: TypeAlias = str | Mapping[str, JSONValue]
"""A call for which a rule must hold or must not: `{tool, arguments, effects}`, or the text of the rule's condition."""


@attrs.frozen(kw_only=True)
class Rule:
    """A rule; all its conditions must hold. One that allows wants them for certain and of every value of a call.

    Args:
        decision: what becomes of a call that fits.
        tools: names of tools, with `*` for any characters.
        paths: patterns of the paths among the arguments.
        commands: patterns of the shell commands among them.
        hosts: domains of the web addresses among them; `*.` before one leaves the domain itself out.
        effects: what the tool does. A rule that allows fits a tool that does nothing else.
        arguments: values by their path among the arguments; a list means one of them.
        reason: why, for the person and the model.
        match: examples that must fit, checked when the rules are loaded.
        not_match: examples that must not.
    """

    decision: Decision
    tools: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    effects: tuple[Effect, ...] = ()
    arguments: Mapping[str, JSONValue] = attrs.field(factory=dict)
    reason: str | None = None
    match: tuple[Example, ...] = ()
    not_match: tuple[Example, ...] = ()

    def fits(self, call: RuledCall) -> Truth:
        """Tell whether the rule is about a call."""
        if self.tools and not any(
            fnmatchcase(call.tool_name, name) for name in self.tools
        ):
            return Truth.NO
        # all conditions must hold, so the least certain one decides
        return min(self._conditions(call), default=Truth.YES)

    def becomes(self, call: RuledCall) -> Decision | None:
        """Return what the rule makes of a call; `None` when it is not about it.

        What may fit a rule that asks or denies is asked about.
        """
        truth = self.fits(call)
        if truth is Truth.YES:
            return self.decision
        if truth is Truth.MAYBE and self.decision != "allow":
            return "ask"
        return None

    def problems(self, directory: Path) -> Iterator[tuple[str, str]]:
        """Yield what is wrong with the rule: the key, and what it is.

        Args:
            directory: where the relative paths of examples start.
        """
        if not (
            self.tools
            or self.paths
            or self.commands
            or self.hosts
            or self.effects
            or self.arguments
        ):
            yield (
                "",
                "the rule is about nothing; name tools, ['*'] for all of them, or a condition",
            )
        found = False
        for key, check in self._readers():
            for text in getattr(self, key):
                try:
                    check(text)
                except ValueError as error:
                    found = True
                    yield key, str(error)
        if not found:  # what cannot be read cannot be tried either
            yield from self._false_examples(directory)

    def _readers(self) -> Iterable[tuple[str, Callable[[str], object]]]:
        from amplifier_kit.rules.arguments import read_argument_path

        yield "paths", PathPattern.read
        yield "arguments", read_argument_path
        if self.commands:
            # few sessions run commands
            from amplifier_kit.rules.commands import read_command_pattern

            yield "commands", read_command_pattern
        if self.hosts:
            # few rules are about hosts
            from amplifier_kit.http.netguard.policies import DomainPattern

            yield "hosts", DomainPattern.read

    def _false_examples(self, directory: Path) -> Iterator[tuple[str, str]]:
        for key, examples in (("match", self.match), ("not_match", self.not_match)):
            for example in examples:
                try:
                    fits = self.fits(self._as_call(example, directory)) is Truth.YES
                except ValueError as error:
                    yield key, str(error)
                    continue
                if fits is not (key == "match"):
                    yield (
                        key,
                        f"{example!r} {'fits' if fits else 'does not fit'} the rule",
                    )

    def _as_call(self, example: Example, directory: Path) -> RuledCall:
        tool = next((name for name in self.tools if "*" not in name), "example")
        effects: frozenset[Effect] = frozenset(self.effects)
        if isinstance(example, Mapping):
            unknown = sorted(set(example) - {"tool", "arguments", "effects"})
            arguments, named = example.get("arguments", {}), example.get("tool", tool)
            declared = example.get("effects", sorted(effects))
            if (
                unknown
                or not isinstance(arguments, Mapping)
                or not isinstance(named, str)
            ):
                raise ValueError(
                    f"{example!r} is no example; write {{tool: NAME, arguments: {{…}}, effects: […]}}"
                )
            if not isinstance(declared, (list, tuple)) or not set(EFFECTS).issuperset(
                map(str, declared)
            ):
                raise ValueError(
                    f"{example!r} has effects other than {', '.join(sorted(EFFECTS))}"
                )
            effects = frozenset(effect for effect in EFFECTS if effect in declared)
            return RuledCall(
                tool_name=named,
                arguments=arguments,
                directory=directory,
                effects=effects or None,
            )
        keys = [
            key
            for key in ("path", "command", "url")
            if getattr(self, _CONDITION_OF[key])
        ]
        if len(keys) != 1:
            raise ValueError(
                f"{example!r} may mean several things here; write {{tool: NAME, arguments: {{…}}}}"
            )
        return RuledCall(
            tool_name=tool,
            arguments={keys[0]: example},
            directory=directory,
            effects=effects or None,
        )

    def _conditions(self, call: RuledCall) -> Iterator[Truth]:
        every = self.decision == "allow"
        if self.effects:
            yield self._effects_fit(call)
        if self.arguments:
            from amplifier_kit.rules.arguments import argument_truth, read_argument_path

            for path, wanted in self.arguments.items():
                yield argument_truth(
                    read_argument_path(path), wanted, call.arguments, every=every
                )
        if self.paths:
            yield self._together(
                self._path_fits(path, call) for path in touched_paths(call)
            )
        if self.commands:
            yield self._together(
                self._command_fits(value) for value in call.values_of(COMMAND_KEYS)
            )
        if self.hosts:
            yield self._together(
                max(_host_fits(host, value) for host in self.hosts)
                for value in call.values_of(URL_KEYS)
            )

    def _together(self, truths: Iterable[Truth]) -> Truth:
        """Combine the truths of all values; a tool that the rule names and that gives none may still be meant."""
        found = list(truths)
        # naming a tool without conditions means all of its calls; a pattern of
        # tools may reach some that have no such argument at all
        if not found:
            named = any("*" not in name for name in self.tools)
            if named or self.decision == "allow":
                return Truth.MAYBE
            return Truth.NO
        return Truth.combine(found, every=self.decision == "allow")

    def _effects_fit(self, call: RuledCall) -> Truth:
        if call.effects is None:
            return Truth.MAYBE
        if self.decision == "allow":
            return Truth.of(call.effects.issubset(self.effects))
        # a rule that refuses fits a tool that does one of these things among
        # others
        return Truth.of(not call.effects.isdisjoint(self.effects))

    def _path_fits(self, path: TouchedPath, call: RuledCall) -> Truth:
        patterns = map(PathPattern, self.paths)
        if self.decision == "allow":
            if path.is_of_command:
                return Truth.MAYBE  # where it works says too little of what it does
            return max(
                pattern.allows(path.value, call.directory) for pattern in patterns
            )
        writes = path.writes
        if writes is None:
            writes = call.effects != ONLY_READS
        deep = path.is_searched or writes
        truth = max(
            pattern.catches(path.value, call.directory, deep=deep)
            for pattern in patterns
        )
        # A search reads all below, which an answer to a question must not allow where a rule denies.
        if truth is Truth.MAYBE and path.is_searched and self.decision == "deny":
            return Truth.YES
        return truth

    def _command_fits(self, value: JSONValue) -> Truth:
        # few sessions run commands
        from amplifier_kit.rules.commands import command_allows, command_catches

        return (command_allows if self.decision == "allow" else command_catches)(
            self.commands, value
        )


def _host_fits(pattern: str, value: JSONValue) -> Truth:
    """Tell whether an address's host is the pattern's domain or below it; one that can be read in two ways may be."""
    # few rules are about hosts, and reading addresses takes tables to import
    from amplifier_kit.http.netguard.errors import WebError
    from amplifier_kit.http.netguard.policies import DomainPattern
    from amplifier_kit.http.netguard.urls import read_url

    if not isinstance(value, str):
        return Truth.MAYBE
    try:
        return Truth.of(DomainPattern.read(pattern).matches(read_url(value)))
    except WebError:
        return Truth.MAYBE


_CONDITION_OF: Final = {"path": "paths", "command": "commands", "url": "hosts"}
