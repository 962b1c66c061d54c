"""What a hook of Claude Code answers: its exit code, or the JSON that it put out."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Final, Literal, NoReturn, TypeAlias

import attrs

from amplifier_module_hooks_shell._process import CommandResult
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["HookOutput", "read_judgement", "read_ran"]

Verdict: TypeAlias = Literal["allow", "deny", "ask"]
"""What a hook says of what it was asked about; blocking is denying."""

_BLOCKING: Final = 2
_WORDS: Final[Mapping[str, Verdict]] = {
    "approve": "allow",
    "allow": "allow",
    "deny": "deny",
    "block": "deny",
    "ask": "ask",
}
_PERMISSIONS: Final[Mapping[str, Verdict]] = {
    "allow": "allow",
    "deny": "deny",
    "ask": "ask",
}
_FIELDS: Final = (
    "continue",
    "decision",
    "hookSpecificOutput",
    "ok",
    "permissionDecision",
    "permissionDecisionReason",
    "reason",
    "stopReason",
    "suppressOutput",
    "systemMessage",
    "updatedInput",
)
_LIKE_AN_ANSWER: Final = re.compile(
    r"[\"'](?:continue|decision|hookSpecificOutput|permissionDecision)[\"']\s*:"
)
_FENCE: Final = re.compile(r"```(?:json)?\s*(\{.*\})\s*```", re.DOTALL)
_WORD: Final = re.compile(r"[a-z]+")


@attrs.frozen(kw_only=True)
class HookOutput:
    """What one hook answered.

    Args:
        verdict: what it says; `None` when nothing.
        reason: why, for the model.
        context: what it adds to the conversation.
        message: its message to the person, and to the model where it can have one.
        plain: what it put out that is no JSON.
        updated: arguments that it changes.
        suppressed: what it adds and changes is left out of logs and traces.
        halt: why the agent shall stop altogether.
        warning: what went wrong without meaning anything.
        failure: what went wrong so that it said nothing.
    """

    verdict: Verdict | None = None
    reason: str = ""
    context: str = ""
    message: str = ""
    plain: str = ""
    updated: Mapping[str, JSONValue] | None = None
    suppressed: bool = False
    halt: str | None = None
    warning: str = ""
    failure: str | None = None


class _MisfitError(ValueError):
    """The output is JSON and no answer."""


def read_ran(ran: CommandResult, *, strict: bool) -> HookOutput:
    """Read what came of a command.

    Exit code 2 blocks, with the error output as reason. Another one than 0 is a warning.

    Args:
        ran: how the command ended.
        strict: an exit code other than 0 and 2 is a failure.
    """
    if ran.failure is not None:
        return HookOutput(failure=ran.failure)
    if ran.code == _BLOCKING:
        return HookOutput(
            verdict="deny", reason=(ran.errors.strip() or ran.output.strip())
        )
    if ran.code:
        problem = f"exit code {ran.code}: {ran.complaint}"
        if strict:
            return HookOutput(failure=problem)
        return HookOutput(warning=problem)
    text = _bare(ran.output)
    if not text.startswith("{"):
        if _LIKE_AN_ANSWER.search(text.replace("\0", "")):  # UTF-16 has them
            return HookOutput(
                failure="its output is no answer: an answer is one JSON object in UTF-8 and nothing besides"
            )
        return HookOutput(plain=text)
    try:
        return _read_object(_load(text))
    except (ValueError, RecursionError) as error:
        return HookOutput(
            failure=f"its output is no answer: {' '.join(str(error).split())[:200]}"
        )


def read_judgement(text: str) -> HookOutput:
    """Read what a model answered to a prompt: one JSON object and nothing besides, or a verdict and a text behind it.

    What is quoted in a text is no answer. A text that has the words of several verdicts in it means the strictest.
    """
    text = _bare(text)
    fenced = _FENCE.fullmatch(text)
    if fenced is not None:
        text = fenced[1]
    if text.startswith("{"):
        try:
            answer = _read_object(_load(text))
        except (ValueError, RecursionError):
            answer = HookOutput()
        if answer.verdict is not None:
            return answer
        return _no_verdict(text)
    words = _WORD.findall(text.lower())
    said = {_WORDS[word] for word in words if word in _WORDS}
    if not words or words[0] not in _WORDS or _LIKE_AN_ANSWER.search(text):
        return _no_verdict(text)
    verdict: Verdict = "ask" if "ask" in said else "allow"
    if "deny" in said:
        verdict = "deny"
    return HookOutput(verdict=verdict, reason=text)


def _no_verdict(text: str) -> HookOutput:
    return HookOutput(
        failure=f"the model gave no verdict: {' '.join(text.split())[:200]!r}"
    )


def _bare(text: str) -> str:
    """Return a text without white space and byte order marks around it."""
    return text.strip().strip("\ufeff").strip()


def _load(text: str) -> Mapping[str, JSONValue]:
    read: JSONValue = json.loads(text, parse_constant=_refuse, object_pairs_hook=_once)
    if not isinstance(read, dict):
        raise _MisfitError("it is no object")
    return read


def _once(pairs: list[tuple[str, JSONValue]]) -> JSONValue:
    """Return an object whose keys stand there once: of two verdicts neither is meant."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _MisfitError("a key stands there twice")
    return found


def _require_spelling(found: Mapping[str, JSONValue]) -> None:
    """Refuse a key that is known in another spelling: what it says would go unheard.

    Raises:
        _MisfitError: there is one.
    """
    known = {name.casefold(): name for name in _FIELDS}
    for name in found:
        meant = known.get(name.replace("_", "").replace("-", "").casefold(), name)
        if meant != name:
            raise _MisfitError(f"{name!r} is written {meant!r}")


def _refuse(name: str) -> NoReturn:
    raise _MisfitError(f"{name} is no JSON number")


def _read_object(found: Mapping[str, JSONValue]) -> HookOutput:
    inner = found.get("hookSpecificOutput", {})
    if not isinstance(inner, Mapping):
        raise _MisfitError("hookSpecificOutput is an object")
    _require_spelling(found)
    _require_spelling(inner)
    verdict, reason = _verdict(found, inner)
    goes_on = _typed(found, "continue", bool)
    updated = inner.get("updatedInput")
    if updated is not None and not isinstance(updated, Mapping):
        raise _MisfitError("updatedInput is an object")
    message = _text(found, "systemMessage")
    return HookOutput(
        verdict=verdict,
        reason=reason or message,
        context=_text(inner, "additionalContext"),
        message=message,
        updated=updated,
        suppressed=_typed(found, "suppressOutput", bool) is True,
        halt=(_text(found, "stopReason") or reason or "a hook stopped the agent")
        if goes_on is False
        else None,
    )


def _verdict(
    found: Mapping[str, JSONValue], inner: Mapping[str, JSONValue]
) -> tuple[Verdict | None, str]:
    """Return what an answer says and why: of the newer and the older spelling, and of a model's `ok`."""
    candidates: Sequence[
        tuple[Mapping[str, JSONValue], str, Mapping[str, Verdict], str]
    ] = (
        (inner, "permissionDecision", _PERMISSIONS, "permissionDecisionReason"),
        (found, "permissionDecision", _PERMISSIONS, "permissionDecisionReason"),
        (found, "decision", _WORDS, "reason"),
    )
    for place, name, words, why in candidates:
        value = place.get(name)
        if value is None:
            continue
        verdict = None
        if isinstance(value, str):
            verdict = words.get(value)
        if verdict is None:
            raise _MisfitError(
                f"{name} is one of {', '.join(words)}; got {value!r:.80}"
            )
        return verdict, _text(place, why) or _text(found, "reason")
    is_well = _typed(found, "ok", bool)
    if is_well is None:
        return None, _text(found, "reason")
    return ("allow" if is_well else "deny"), _text(found, "reason")


def _text(place: Mapping[str, JSONValue], name: str) -> str:
    value = _typed(place, name, str)
    if isinstance(value, str):
        return value.strip()
    return ""


def _typed(place: Mapping[str, JSONValue], name: str, wanted: type) -> JSONValue:
    value = place.get(name)
    if value is not None and not isinstance(value, wanted):
        raise _MisfitError(
            f"{name} is a {'truth' if wanted is bool else 'text'}; got {value!r:.80}"
        )
    return value
