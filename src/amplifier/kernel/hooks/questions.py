"""A question to the person: what they read, and what their answers mean.

What is shown is what runs: the question names the tool and its final arguments, with every character that a
terminal would obey, that shows nothing, or that could hide another, written as its escape. Of a long text the
beginning and the end are shown, and how much stands between them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from math import inf
from typing import Final, Literal

import attrs

from amplifier_sdk.approvals import ApprovalRequest
from amplifier_sdk.legible import asked_text, escaped, shortened, shortened_value
from amplifier_sdk.results import Decision, HookResult

__all__ = [
    "ALLOWED_BY_DEFAULT",
    "ASKS_BEFORE_CHANGES",
    "CANCELLED",
    "NOBODY_TO_ASK",
    "REMEMBERED",
    "UNASSESSED",
    "Question",
    "ask_because",
    "person_prompt",
]

CALL_OPTIONS: Final = ("Allow once", "Allow always", "Deny")

ALLOWED_BY_DEFAULT: Final = "nobody answered in time; the default allows it"
ASKS_BEFORE_CHANGES: Final = "the session asks before changes"
CANCELLED: Final = "The turn was cancelled before the person answered"
NOBODY_TO_ASK: Final = "No approval system is available, so the operation is denied"
REMEMBERED: Final = "allowed always in this session"
UNASSESSED: Final = "the tool did not say within {:g} s what it does"

ALLOW_ALWAYS: Final = "allow always"
ALLOWING: Final = frozenset({"allow", "allow once", ALLOW_ALWAYS})
"""The answers that allow an operation, in any case, besides the options that the handler names as allowing."""

MAX_TEXT: Final = 3000
"""Characters of one text among the arguments that a person reads; of a longer one its two ends."""

MAX_NAME: Final = 100
MAX_SHOWN: Final = 12_000
"""Characters of all arguments."""

DEFAULT_OPTIONS: Final = ("Allow", "Deny")


@attrs.frozen(kw_only=True)
class Question:
    """One question as the person reads it.

    `asked` is the handler's own text, `prompt` all that is shown; `key` stands for what "Allow always" covers
    and is `None` when that cannot be distinguished from other questions. `call_id` is the id of the tool call,
    `session_id` the session that it is made in.
    """

    handler: str
    event: str
    asked: str
    prompt: str
    options: tuple[str, ...]
    allowing: frozenset[str]
    timeout: float
    default: Literal["allow", "deny"]
    key: str | None
    tool_name: str | None = None
    risk: str = "unknown"
    agents: tuple[str, ...] = ()
    call_id: str | None = None
    session_id: str | None = None
    details: Mapping[str, object] = attrs.field(factory=dict)

    @classmethod
    def of(
        cls,
        decision: Decision,
        event: str,
        data: Mapping[str, object],
        agents: tuple[str, ...] = (),
    ) -> Question:
        """Make a question of what a handler asked and the event's final data; the last of `agents` wants it."""
        result = decision.result
        asked = asked_text(result.approval_prompt or "Allow this operation?")
        tool_name, call_id = data.get("tool_name"), data.get("tool_call_id")
        session_id = data.get("session_id")
        if isinstance(tool_name, str):
            # without the call's ids: with them no question would be the same again
            details: dict[str, object] = {"tool_input": data.get("tool_input")}
            subject = _subject(tool_name, data.get("tool_input"))
        else:
            tool_name, details = None, dict(data)
            subject = _event_line(event, details)
        covered = (
            [result.approval_scope]
            if result.approval_scope
            else [asked, tool_name, details]
        )
        return cls(
            handler=decision.handler,
            event=str(event),
            asked=asked,
            prompt="\n".join(
                filter(None, (_asker_line(agents), subject, asked, _scope_line(result)))
            ),
            options=result.approval_options or DEFAULT_OPTIONS,
            allowing=ALLOWING.union(map(_normal, result.approval_allowing)),
            timeout=result.approval_timeout,
            default=result.approval_default,
            # sorted, since the model may name the same arguments in another order
            key=_json([decision.handler, str(event), *covered], sort_keys=True),
            tool_name=tool_name,
            risk=escaped(result.approval_risk or "unknown", allowed=""),
            agents=agents,
            call_id=call_id if isinstance(call_id, str) else None,
            session_id=session_id if isinstance(session_id, str) else None,
            details=details,
        )

    @property
    def can_be_allowed(self) -> bool:
        """Whether any of the options allows the operation."""
        return any(map(self.allows, self.options))

    def allows(self, reply: str) -> bool:
        """Whether a reply allows the operation; what is no option that does, denies."""
        return _normal(reply) in self.allowing

    def allows_always(self, reply: str) -> bool:
        """Whether a reply allows it for the rest of the session, as one of the options offers."""
        return _normal(reply) == ALLOW_ALWAYS and _offers_always(self.options)

    @property
    def late_answer(self) -> str:
        """What is said where nobody answered in time."""
        return f"Approval timeout after {self.timeout:g} s: {self.asked}"

    @property
    def no_option_allows(self) -> str:
        """What is said of a question that can only be denied."""
        offered = ", ".join(map(repr, self.options))
        return (
            f"{self.handler} asks without an option that allows: {offered};"
            " name one as allowing"
        )

    def denial(self, reason: str | None = None) -> str:
        """Return what is said where the person denied it, perhaps for a reason."""
        return f"User denied: {reason or self.asked:.200}"

    def to_request(self) -> ApprovalRequest:
        """Write the question as an approval provider takes it."""
        details = {
            **self.details,
            "prompt": self.prompt,
            "event": self.event,
            "hook": self.handler,
            "options": self.options,
            "allowing": tuple(filter(self.allows, self.options)),
            "covers": self.key,
        }
        if self.agents:
            details["agents"] = list(self.agents)
        if self.call_id is not None:
            details["tool_call_id"] = self.call_id
            details["session_id"] = self.session_id
        return ApprovalRequest(
            tool_name=self.tool_name or self.event,
            action=self.asked,
            risk_level=self.risk,
            details=details,
            # a request says by None that it waits as long as it takes
            timeout=None if self.timeout == inf else self.timeout,
        )


def _normal(option: str) -> str:
    return option.strip().casefold()


def _offers_always(options: Sequence[str]) -> bool:
    return any(_normal(option) == ALLOW_ALWAYS for option in options)


def _asker_line(agents: Sequence[str]) -> str:
    """Name the agent that a person did not talk to."""
    if agents:
        return (
            f"The agent {shortened(escaped(agents[-1], allowed=''), MAX_NAME)!r} asks:"
        )
    return ""


def _scope_line(result: HookResult) -> str:
    """Say what "Allow always" covers, where it is offered."""
    if not _offers_always(result.approval_options or DEFAULT_OPTIONS):
        return ""
    scope = result.approval_scope
    covered = "exactly this, in this session"
    if scope:
        covered = escaped(scope, allowed="")
    return f"Allow always covers: {covered}"


def _event_line(event: str, details: Mapping[str, object]) -> str:
    """Write an event's data where they are plain; what is not is left to the handler's own words."""
    if details and _json(details) is not None:
        return _subject(event, details)
    return ""


def _subject(name: str, value: object) -> str:
    """Write what is asked about in one line; the middle of each long text in it is left out."""
    # each text is cut by itself first: a long one must not push the others out of sight
    shown = _json(shortened_value(value, MAX_TEXT))  # type: ignore[arg-type]  # what is no JSON data stays as it is
    return shortened(escaped(f"{name} {shown or repr(value)}", allowed=""), MAX_SHOWN)


def _json(value: object, *, sort_keys: bool = False) -> str | None:
    try:
        return json.dumps(value, ensure_ascii=False, sort_keys=sort_keys)
    except (TypeError, ValueError, RecursionError):
        return None


def person_prompt(
    agents: Sequence[str], tool_name: str, arguments: object, message: str
) -> str:
    """Write what a person reads of a question that a tool asks: the call first, then what are the tool's own words."""
    lines = [_asker_line(agents), _subject(tool_name, arguments)]
    said = f"The tool asks, in its own words: {asked_text(message)}"
    return "\n".join([*filter(None, lines), said])


def ask_because(reason: str, details: str) -> HookResult:
    """Ask about a tool call, for a reason that no handler gave."""
    text = f"Asked because {reason}."
    if details:
        text = f"{details}\n{text}"
    return HookResult.ask(text, options=CALL_OPTIONS)
