"""The hooks of the configuration: a command for an event of ours, its answer in the words of `HookResult`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import partial
from logging import getLogger
from typing import Final, Literal

import attrs

from amplifier_module_hooks_shell._observers import Observers
from amplifier_module_hooks_shell._process import CommandResult, InputError, write_input
from amplifier_module_hooks_shell._surroundings import HookEnvironment
from amplifier_module_hooks_shell.config import HookConfig
from amplifier_sdk.configuration import read_config
from amplifier_sdk.errors import ConfigError
from amplifier_sdk.events import PROMPT_SUBMIT, TOOL_PRE, Event
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.results import HookResult, InjectionRole, MessageLevel

__all__ = ["OwnHook"]

_DECIDING: Final = frozenset({str(TOOL_PRE), str(PROMPT_SUBMIT)})
_DENIED: Final = 2
_log: Final = getLogger(__name__)


@attrs.frozen(kw_only=True)
class _Answer:
    """What a command may put out: fields of `HookResult` by their names."""

    action: Literal["continue", "deny", "modify", "inject_context", "ask_user"] = (
        "continue"
    )
    reason: str | None = None
    data: Mapping[str, JSONValue] | None = None
    context_injection: str | None = None
    context_injection_role: InjectionRole = "user"
    ephemeral: bool = False
    append_to_last_tool_result: bool = False
    approval_prompt: str | None = None
    approval_options: tuple[str, ...] | None = None
    approval_default: Literal["allow", "deny"] = "deny"
    user_message: str | None = None
    user_message_level: MessageLevel = "info"
    suppress_output: bool = False


@attrs.define(eq=False)
class OwnHook:
    """One hook of the configuration.

    Args:
        config: the hook's settings.
        surroundings: where it runs.
        observers: where it runs when nothing waits for it.
    """

    config: HookConfig
    surroundings: HookEnvironment
    observers: Observers
    _failed: bool = False

    @property
    def label(self) -> str:
        """What the hook is called in messages."""
        return f"hooks-shell:{self.config.name or self.config.event}"

    @property
    def decides(self) -> bool:
        """Whether the event waits for it."""
        if self.config.decides is None:
            return self.config.event in _DECIDING
        return self.config.decides

    def register(self) -> None:
        """Hear the event from now on."""
        event = Event[dict[str, object]](self.config.event)
        if self.decides:
            self.surroundings.listen(
                event,
                self._decide,
                decides=True,
                runs=self.config.timeout,
                name=self.label,
            )
        else:
            self.surroundings.listen(event, self._observe, name=self.label)

    async def _decide(self, event: str, data: dict[str, object]) -> HookResult | None:
        """Run the command and do what it answers; what is no clear answer is a denial."""
        if not self._matches(data):
            return None
        try:
            text = self._input(event, data, may_cut=False)
        except InputError as error:
            return HookResult.deny(f"{self.label}: {error}")
        return self._answer(await self._run(text))

    async def _observe(self, event: str, data: dict[str, object]) -> None:
        """Hand the event over; nothing waits for what comes of it."""
        if not self._matches(data):
            return
        try:
            text = self._input(event, data, may_cut=True)
        except InputError as error:
            self._complain(str(error))
            return
        await self.observers.put(partial(self._look, text))

    async def _look(self, text: str) -> None:
        ran = await self._run(text)
        if ran.failure is not None or ran.code:
            self._complain(ran.failure or f"exit code {ran.code}: {ran.complaint}")

    def _matches(self, data: Mapping[str, object]) -> bool:
        return all(
            _fits(_at(data, path), wanted) for path, wanted in self.config.match.items()
        )

    def _input(self, event: str, data: Mapping[str, object], *, may_cut: bool) -> str:
        fields = {
            "event": event,
            "working_dir": self.surroundings.directory,
            "data": {key: value for key, value in data.items() if key != "tool_obj"},
        }
        return write_input(
            fields, self.surroundings.config.max_input_bytes, may_cut=may_cut
        )

    async def _run(self, text: str) -> CommandResult:
        config = self.config
        return await self.surroundings.run(
            config.command, input=text, timeout=config.timeout, env=config.env
        )

    def _answer(self, ran: CommandResult) -> HookResult | None:
        if ran.failure is not None:
            return HookResult.deny(f"{self.label} failed: {ran.failure}")
        if ran.code == _DENIED:
            return HookResult.deny(f"{self.label}: {ran.complaint or 'denied'}")
        if ran.code:
            return HookResult.deny(
                f"{self.label} failed: exit code {ran.code}: {ran.complaint}"
            )
        if not ran.output.strip():
            return None
        try:
            read: JSONValue = json.loads(ran.output.strip().removeprefix("\ufeff"))
            answer = read_config(
                _Answer,
                read if isinstance(read, dict) else {"action": read},
                subject=self.label,
            )
        except (ValueError, RecursionError, ConfigError) as error:
            problem = " ".join(str(error).split())[:300]
            return HookResult.deny(
                f"{self.label} failed: its output is no answer: {problem}"
            )
        return self._result(answer)

    def _result(self, answer: _Answer) -> HookResult:
        cut, shown = self.surroundings.cut, self.surroundings.shown
        return HookResult(
            action=answer.action,
            reason=f"{self.label}: {answer.reason or 'denied'}"
            if answer.action == "deny"
            else answer.reason,
            data=answer.data,
            context_injection=None
            if answer.context_injection is None
            else cut(answer.context_injection),
            context_injection_role=answer.context_injection_role,
            ephemeral=answer.ephemeral,
            append_to_last_tool_result=answer.append_to_last_tool_result,
            approval_prompt=answer.approval_prompt
            or (answer.reason if answer.action == "ask_user" else None),
            approval_options=answer.approval_options,
            approval_default=answer.approval_default,
            user_message=None
            if answer.user_message is None
            else shown(answer.user_message),
            user_message_level=answer.user_message_level,
            suppress_output=answer.suppress_output,
        )

    def _complain(self, problem: str) -> None:
        """Tell once that the hook does not work."""
        if not self._failed:
            self._failed = True
            _log.warning("%s failed: %s", self.label, self.surroundings.shown(problem))


def _at(data: Mapping[str, object], path: str) -> object:
    """Return what stands at a place such as `tool_input.command`; `None` when nothing does."""
    value: object = data
    for part in path.split("."):
        if isinstance(value, Mapping):
            value = value.get(part)
        else:
            value = getattr(value, part, None)
    return value


def _fits(value: object, wanted: JSONValue) -> bool:
    if isinstance(wanted, list):
        return any(_fits(value, one) for one in wanted)
    if isinstance(wanted, str) and isinstance(value, str):
        return any(fnmatchcase(value, pattern) for pattern in wanted.split("|"))
    return type(value) is type(wanted) and value == wanted
