"""What tools and hook handlers answer, and what a whole event's handlers decided together.

Source: the tool and hook contracts; `HookResult` loses nothing on the way through `emit`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final, Literal, TypeAlias, get_args

import attrs

from amplifier_sdk._fields import strings, strings_or_none
from amplifier_sdk.content import ContentBlock
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.values import Value

__all__ = [
    "ContextInjection",
    "Decision",
    "Emission",
    "HookAction",
    "HookResult",
    "InjectionRole",
    "MessageLevel",
    "ToolResult",
    "UserMessage",
]

HookAction: TypeAlias = Literal[
    "continue", "deny", "modify", "inject_context", "ask_user"
]
"""What a handler wants to happen. Precedence: deny > ask_user > inject_context > modify > continue."""

InjectionRole: TypeAlias = Literal["system", "user", "assistant"]
"""The role an injected message takes."""

MessageLevel: TypeAlias = Literal["info", "warning", "error"]
"""How a message to the person is shown."""


# Made in every call: slots would double what that costs.
@attrs.frozen(kw_only=True, slots=False, init=False, eq=False, repr=False)
class ToolResult(Value):
    """What a tool call returned.

    `output` is what the model gets, any JSON value; `error` holds at least a `message` when `success` is
    false. `content` may hold blocks of text and images: the model gets them in place of `output`, and behind the
    error of a call that failed. `is_error` is accepted by the constructor for the orchestrator contract's sample
    and readable as a property.
    """

    success: bool = True
    output: JSONValue = None
    error: Mapping[str, JSONValue] | None = None
    content: tuple[ContentBlock, ...] | None = None

    def __init__(
        self,
        *,
        success: bool = True,
        output: JSONValue = None,
        error: Mapping[str, JSONValue] | None = None,
        content: Sequence[ContentBlock] | None = None,
        is_error: bool | None = None,
    ) -> None:
        if is_error is not None:
            success = not is_error
        self.__attrs_init__(
            success=success,
            output=output,
            error=error,
            content=tuple(content) if content is not None else None,
        )

    @classmethod
    def failure(cls, message: str, **details: JSONValue) -> ToolResult:
        """Build a failed result with a message for the model and any further details."""
        return cls(success=False, error={"message": message, **details})

    @property
    def is_error(self) -> bool:
        """Whether the call failed."""
        return not self.success

    def get_serialized_output(self) -> str:
        """Return the result as text: JSON for structures, the error's message for failures.

        It goes into the history, unless there is `content`: see `amplifier_sdk.history.result_message`.
        """
        if not self.success:
            return self._error_text()
        if self.output is None:
            return "Success"
        return _text(self.output)

    def _error_text(self) -> str:
        if self.error is None:
            if self.output is not None:
                return f"Error: {_text(self.output)}"
            return "Error: the tool failed"
        details = {
            key: value
            for key, value in self.error.items()
            if key not in ("message", "type")
        }
        text = f"Error: {self.error.get('message', 'the tool failed')}"
        if details:
            return f"{text}\n{_text(details)}"
        return text

    def __str__(self) -> str:
        return self.get_serialized_output()


def _text(value: JSONValue) -> str:
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, default=_plain)
    except (TypeError, ValueError):
        # keys that no JSON object can have, or a value that holds itself
        return repr(value)


def _plain(value: object) -> object:
    """Write what tools return although JSON lacks it, such as paths and dates; else its Python text."""
    from amplifier_sdk.convert import to_json  # plain JSON data never needs it

    try:
        return to_json(value)
    except (TypeError, ValueError):
        return repr(value)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class ContextInjection(Value):
    """A text that a handler adds to what the model reads, with its role and who added it."""

    content: str
    role: InjectionRole = "system"
    ephemeral: bool = False
    append_to_last_tool_result: bool = False
    hook_name: str = "unknown"
    event: str = ""


@attrs.frozen(kw_only=True, eq=False, repr=False)
class UserMessage(Value):
    """A message that a handler shows to the person."""

    text: str
    level: MessageLevel = "info"
    source: str = "unknown"


# Made in every call: slots would double what that costs.
@attrs.frozen(kw_only=True, slots=False, eq=False, repr=False)
class HookResult(Value):
    """What one handler answers.

    The constructors `deny`, `modify`, `inject` and `ask` say which fields belong to which action.
    `data` of a `modify` replaces the keys it names. `approval_timeout` is in seconds. `approval_allowing` are
    the options that allow besides "Allow", "Allow once" and "Allow always"; `approval_scope` says in words what
    "Allow always" covers, instead of exactly what was asked; `approval_risk` says how much is at stake. `approves`
    says that the handler evaluated a tool call and lets it run: the session asks no question of its own.
    `suppress_output` leaves what is injected and what is changed out of `hook:decided`, and so of logs and traces;
    the `user_message` is shown nevertheless.
    """

    action: HookAction = attrs.field(
        default="continue", validator=attrs.validators.in_(get_args(HookAction))
    )
    data: Mapping[str, object] | None = None
    reason: str | None = None
    context_injection: str | None = None
    context_injection_role: InjectionRole = "system"
    ephemeral: bool = False
    approval_prompt: str | None = None
    approval_options: tuple[str, ...] | None = attrs.field(
        default=None, converter=strings_or_none
    )
    approval_timeout: float = 300.0
    approval_default: Literal["allow", "deny"] = "deny"
    approval_allowing: tuple[str, ...] = attrs.field(default=(), converter=strings)
    approval_scope: str | None = None
    approval_risk: str | None = None
    approves: bool = False
    suppress_output: bool = False
    user_message: str | None = None
    user_message_level: MessageLevel = "info"
    user_message_source: str | None = None
    append_to_last_tool_result: bool = False

    @classmethod
    def proceed(cls) -> HookResult:
        """Let the operation continue."""
        return CONTINUE

    @classmethod
    def approve(cls, reason: str) -> HookResult:
        """Let a tool call run that was evaluated: by rules, or by what a person allowed before.

        A tool that wants a person asked about the call, and a session that asks before changes, is content with that;
        another handler may still ask or deny.
        """
        return cls(reason=reason, approves=True)

    @classmethod
    def deny(cls, reason: str) -> HookResult:
        """Stop the operation; the reason reaches the model and the log."""
        return cls(action="deny", reason=reason)

    @classmethod
    def modify(cls, data: Mapping[str, object]) -> HookResult:
        """Change the keys of the event's data that `data` names; what runs is what was changed."""
        return cls(action="modify", data=data)

    @classmethod
    def inject(
        cls,
        text: str,
        *,
        role: InjectionRole = "system",
        ephemeral: bool = False,
        append_to_last_tool_result: bool = False,
        user_message: str | None = None,
        suppress_output: bool = False,
    ) -> HookResult:
        """Add a text to what the model reads; an ephemeral one is in the next request only."""
        return cls(
            action="inject_context",
            context_injection=text,
            context_injection_role=role,
            ephemeral=ephemeral,
            append_to_last_tool_result=append_to_last_tool_result,
            user_message=user_message,
            suppress_output=suppress_output,
        )

    @classmethod
    def ask(
        cls,
        prompt: str,
        *,
        options: Sequence[str] | None = None,
        timeout: float = 300.0,
        default: Literal["allow", "deny"] = "deny",
        allowing: Sequence[str] = (),
        scope: str | None = None,
        risk: str | None = None,
    ) -> HookResult:
        """Ask the person; the operation continues only when they allow it.

        Args:
            prompt: what the person reads below the tool's name and arguments.
            options: the answers to choose from; default "Allow" and "Deny".
            timeout: seconds to wait for an answer.
            default: the answer when nobody gives one.
            allowing: options that allow, once, besides "Allow", "Allow once" and "Allow always"; any other denies.
            scope: what "Allow always" covers, in words that the person reads; default this very question with
                these very arguments. Every question of this handler with the same scope is then allowed.
            risk: how much is at stake, for approval providers and the event; default `unknown`.
        """
        return cls(
            action="ask_user",
            approval_prompt=prompt,
            approval_options=options,
            approval_timeout=timeout,
            approval_default=default,
            approval_allowing=allowing,
            approval_scope=scope,
            approval_risk=risk,
        )


# One for all: almost every handler answers so to almost every event.
CONTINUE: Final = HookResult()


@attrs.frozen(eq=False, repr=False)
class Decision(Value):
    """One handler's answer to one event: who, what, and how long it took in seconds.

    `plugin` is the plugin of the module that registered the handler, whose name another module's may have as well.
    """

    handler: str
    result: HookResult
    duration: float = 0.0
    plugin: object = attrs.field(default=None, eq=False, repr=False)


@attrs.define(eq=False)
class Emission:
    """What all handlers of one event decided: the final data, and every answer that was more than `continue`.

    It reads like the `HookResult` that takes precedence (`action`, `reason`, `context_injection`, …), and keeps
    the rest: all injections with their role and source, the question, the messages, who decided. It is
    not frozen because one is made for each event, and a frozen class costs three times as much to make.
    """

    data: dict[str, object]
    decisions: Sequence[Decision] = ()

    @property
    def action(self) -> HookAction:
        """The action that takes precedence: deny > ask_user > inject_context > modify > continue."""
        if not self.decisions:
            return "continue"
        return self._leading.result.action

    @property
    def decided_by(self) -> str | None:
        """The handler whose action counts; `None` when all continue."""
        if self.decisions:
            return self._leading.handler
        return None

    @property
    def reason(self) -> str | None:
        """Why the operation was denied."""
        if self.decisions:
            return self._leading.result.reason
        return None

    @property
    def denied(self) -> bool:
        """Whether a handler stopped the operation."""
        return self.action == "deny"

    @property
    def question(self) -> HookResult | None:
        """The first handler's question to the person."""
        return next(
            (d.result for d in self.decisions if d.result.action == "ask_user"), None
        )

    @property
    def injections(self) -> tuple[ContextInjection, ...]:
        """Every text to add to what the model reads, in the handlers' order; empty ones are dropped."""
        return tuple(
            ContextInjection(
                content=d.result.context_injection,
                role=d.result.context_injection_role,
                ephemeral=d.result.ephemeral,
                append_to_last_tool_result=d.result.append_to_last_tool_result,
                hook_name=d.handler,
            )
            for d in self.decisions
            if d.result.action == "inject_context" and d.result.context_injection
        )

    @property
    def user_messages(self) -> tuple[UserMessage, ...]:
        """Every message for the person, in the handlers' order."""
        return tuple(
            UserMessage(
                text=d.result.user_message,
                level=d.result.user_message_level,
                source=d.result.user_message_source or d.handler,
            )
            for d in self.decisions
            if d.result.user_message
        )

    context_injections = injections
    """Another name of `injections`."""

    @property
    def user_message(self) -> str | None:
        """All messages for the person joined by line ends, or `None`."""
        return "\n".join(message.text for message in self.user_messages) or None

    @property
    def approval_prompt(self) -> str | None:
        """The first question's text, or `None`."""
        if self.question is not None:
            return self.question.approval_prompt
        return None

    @property
    def approval_options(self) -> tuple[str, ...] | None:
        """The first question's options; `None` without a question, and where it leaves them to the kernel."""
        if self.question is not None:
            return self.question.approval_options
        return None

    @property
    def approval_timeout(self) -> float:
        """The seconds that the first question waits for an answer; 300 without one."""
        return (self.question or CONTINUE).approval_timeout

    @property
    def approval_default(self) -> Literal["allow", "deny"]:
        """What the first question means unanswered; `"deny"` without one."""
        return (self.question or CONTINUE).approval_default

    @property
    def user_message_level(self) -> MessageLevel:
        """The level of the most serious message; `"info"` without one."""
        levels = {message.level for message in self.user_messages}
        return next((level for level in _SERIOUS if level in levels), "info")

    @property
    def user_message_source(self) -> str | None:
        """Who says the first message, or `None`."""
        return next((message.source for message in self.user_messages), None)

    @property
    def suppress_output(self) -> bool:
        """Whether a handler wants what it adds and changes left out of logs."""
        return any(decision.result.suppress_output for decision in self.decisions)

    @property
    def context_injection(self) -> str | None:
        """All injected texts joined by a blank line, or `None`."""
        return "\n\n".join(injection.content for injection in self.injections) or None

    @property
    def context_injection_role(self) -> InjectionRole:
        """The first injection's role; `"system"` without one."""
        return next((injection.role for injection in self.injections), "system")

    @property
    def ephemeral(self) -> bool:
        """Whether every injection is for the next request only."""
        injections = self.injections
        return bool(injections) and all(injection.ephemeral for injection in injections)

    @property
    def append_to_last_tool_result(self) -> bool:
        """Whether every injection belongs at the end of the last tool result."""
        injections = self.injections
        return bool(injections) and all(
            injection.append_to_last_tool_result for injection in injections
        )

    @property
    def _leading(self) -> Decision:
        # of several that weigh the same, `min` takes the first handler's
        return min(self.decisions, key=lambda decision: _WEIGHT[decision.result.action])


_SERIOUS: Final[tuple[MessageLevel, ...]] = ("error", "warning")

_WEIGHT: Final[Mapping[HookAction, int]] = {
    "deny": 0,
    "ask_user": 1,
    "inject_context": 2,
    "modify": 3,
    "continue": 4,
}
