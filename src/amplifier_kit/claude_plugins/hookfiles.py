"""Hooks as Claude Code writes them: `hooks/hooks.json` of a plugin, or the settings of a folder."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal

import attrs

from amplifier_kit.open_data import as_object
from amplifier_sdk.errors import ConfigError, Problem
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["EVENTS", "HookEntry", "read_hooks"]

EVENTS: Final = (
    "PreToolUse",
    "PostToolUse",
    "Stop",
    "SubagentStop",
    "SessionStart",
    "SessionEnd",
    "UserPromptSubmit",
    "PreCompact",
    "Notification",
)
"""The events that hooks are run for."""

_UNMATCHED: Final = frozenset({"Stop", "SubagentStop", "UserPromptSubmit"})
_PLAIN: Final = re.compile(r"[\w|, -]*\Z")
_SECONDS: Final[Mapping[str, float]] = {"command": 60.0, "prompt": 30.0}
_LONGEST: Final = 3600.0
_BESIDE: Final = frozenset({"description", "$schema"})


@attrs.frozen(kw_only=True)
class HookEntry:
    """One hook.

    Args:
        event: one of `EVENTS`.
        kind: whether `text` is a shell text or a prompt for a model.
        text: what is run, or asked.
        matcher: what it is about; `None` for everything.
        timeout: seconds it may take.
        model: the model that is asked, as the file names it.
        observes: whether it is said that nothing waits for it.
    """

    event: str
    kind: Literal["command", "prompt"]
    text: str
    matcher: str | None = None
    timeout: float = 60.0
    model: str | None = None
    observes: bool = False

    def matches(self, names: Sequence[str]) -> bool:
        """Tell whether the hook is about something that goes by these names.

        A matcher of plain words is one of the names, or several with `|` between them; any other is a regular
        expression that is searched in them.
        """
        if self.matcher is None or self.event in _UNMATCHED:
            return True
        # `Edit|Write` names tools exactly: as a pattern, `Edit` would be found in
        # `MultiEdit` as well
        if _PLAIN.match(self.matcher):
            wanted = {word.strip() for word in re.split(r"[|,]", self.matcher)}
            return not wanted.isdisjoint(names)
        return any(re.search(self.matcher, name) for name in names)


def read_hooks(
    document: JSONValue, subject: str
) -> tuple[tuple[HookEntry, ...], tuple[str, ...]]:
    """Read hooks; return them, and what the file says that is not known here.

    Args:
        document: events with their hooks, by themselves or under `hooks`, where settings and plugins have them.
        subject: the file, for messages.

    Raises:
        ConfigError: a hook cannot be read, so that what it guards would be unguarded.
    """
    if not isinstance(document, Mapping):
        raise ConfigError.of(
            "", "events with their hooks, as an object", subject=subject
        )
    inside = document.get("hooks")
    is_wrapped = "hooks" in document
    if is_wrapped and not isinstance(inside, Mapping):
        raise ConfigError.of(
            "hooks", "events with their hooks, as an object", subject=subject
        )
    events = document
    if isinstance(inside, Mapping):
        events = inside
    reader = _Reader(prefix="hooks." if is_wrapped else "")
    for event, groups in events.items():
        # an unknown event is no error: files are written for newer versions, too
        if event in EVENTS:
            reader.read(event, groups)
        elif is_wrapped or event not in _BESIDE:
            reader.unknown.append(
                f"{subject}: there is no event {event!r} here; its hooks do not run"
            )
    if reader.problems:
        raise ConfigError(reader.problems, subject=subject)
    return tuple(reader.found), tuple(reader.unknown)


@attrs.define(eq=False)
class _Reader:
    """Reads the groups of hooks of a file, and notes what is wrong with them."""

    prefix: str
    found: list[HookEntry] = attrs.field(factory=list)
    problems: list[Problem] = attrs.field(factory=list)
    unknown: list[str] = attrs.field(factory=list)

    def read(self, event: str, groups: JSONValue) -> None:
        """Read all hooks of an event."""
        place = f"{self.prefix}{event}"
        if not isinstance(groups, list):
            self._note(place, "a list of matchers with their hooks")
            return
        for index, group in enumerate(groups):
            self._group(event, group, f"{place}[{index}]")

    def _note(self, place: str, message: str) -> None:
        self.problems.append(Problem(place, message))

    def _group(self, event: str, group: JSONValue, place: str) -> None:
        fields = as_object(group)
        hooks, matcher = fields.get("hooks"), fields.get("matcher")
        if not isinstance(hooks, list) or not (
            matcher is None or isinstance(matcher, str)
        ):
            self._note(place, "an object with a text 'matcher' and a list 'hooks'")
            return
        # checked when the file is read: later, a hook that guards would just not
        # run
        problem = _matcher_problem(matcher)
        if problem is not None:
            self._note(f"{place}.matcher", problem)
            return
        for index, hook in enumerate(hooks):
            self.found += self._hook(
                event,
                None if matcher in ("", "*") else matcher,
                hook,
                f"{place}.hooks[{index}]",
            )

    def _hook(
        self, event: str, matcher: str | None, hook: JSONValue, place: str
    ) -> Iterator[HookEntry]:
        fields = as_object(hook)
        kind, timeout, model = (
            fields.get("type"),
            fields.get("timeout"),
            fields.get("model"),
        )
        if kind not in ("command", "prompt"):
            self._note(f"{place}.type", f"'command' or 'prompt'; got {kind!r}")
            return
        text = fields.get(kind)
        # a NUL would cut the command short where the system reads it
        if not isinstance(text, str) or not text.strip() or "\0" in text:
            self._note(f"{place}.{kind}", f"a text; got {text!r:.80}")
            return
        if timeout is not None and not _is_time(timeout):
            problem = f"seconds, up to {_LONGEST:g}; got {timeout!r:.80}"
            self._note(f"{place}.timeout", problem)
            return
        yield HookEntry(
            event=event,
            kind=kind,
            text=text,
            matcher=matcher,
            timeout=float(timeout)
            if isinstance(timeout, (int, float))
            else _SECONDS[kind],
            model=model if isinstance(model, str) else None,
            observes=fields.get("async") is True,
        )


def _is_time(value: JSONValue) -> bool:
    return (
        not isinstance(value, bool)
        and isinstance(value, (int, float))
        and 0 < value <= _LONGEST
    )


def _matcher_problem(matcher: str | None) -> str | None:
    if matcher is None or matcher in ("", "*"):
        return None
    try:
        re.compile(matcher)
    except re.error as error:
        return f"a name or a regular expression; {error}"
    except (OverflowError, RecursionError):
        return "a name or a regular expression; it is nested too deep, or too large"
    return None
