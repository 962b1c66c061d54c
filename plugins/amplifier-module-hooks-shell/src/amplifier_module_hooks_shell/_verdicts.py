"""What the hooks of one event said, taken together, and stopping an agent altogether."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import attrs

from amplifier_kit.claude_plugins import HookEntry
from amplifier_module_hooks_shell._answers import HookOutput
from amplifier_module_hooks_shell._loaded import LoadedPlugin
from amplifier_module_hooks_shell._surroundings import NAME
from amplifier_sdk.contracts import Hooks
from amplifier_sdk.events import PROVIDER_REQUEST, ProviderRequest
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.results import HookResult

__all__ = ["Halt", "HookReply", "Verdicts"]

_EARLY: Final = -100


@attrs.frozen(kw_only=True)
class HookReply:
    """What one hook of one plugin answered."""

    loaded: LoadedPlugin
    entry: HookEntry
    answer: HookOutput

    @property
    def why(self) -> str:
        """Its reason for the model, with its name."""
        return self.loaded.said(
            self.answer.reason or "blocked", by_model=self.entry.kind == "prompt"
        )

    @property
    def plain_why(self) -> str:
        """Its reason on one line, with its name, for a denial."""
        return f"{self.loaded.label}: {self.answer.reason or 'blocked'}"


class Verdicts:
    """All that the hooks of one event said.

    Args:
        told: their answers, in the order of the hooks.
    """

    def __init__(self, reply: Sequence[HookReply]) -> None:
        self._replies: Final = tuple(reply)

    def plus(self, others: Verdicts) -> Verdicts:
        """Return what these and others say together."""
        return Verdicts((*self._replies, *others._replies))

    @property
    def failure(self) -> str | None:
        """Which of them failed, and how."""
        failed = next(
            (reply for reply in self._replies if reply.answer.failure is not None), None
        )
        if failed is None:
            return None
        return f"{failed.loaded.label}: a hook failed: {failed.answer.failure}"

    @property
    def denials(self) -> tuple[HookReply, ...]:
        """Those that block."""
        return tuple(reply for reply in self._replies if reply.answer.verdict == "deny")

    @property
    def questions(self) -> tuple[HookReply, ...]:
        """Those that want the person asked."""
        return tuple(reply for reply in self._replies if reply.answer.verdict == "ask")

    @property
    def halt(self) -> str | None:
        """Why the agent shall stop altogether."""
        found = next(
            (reply for reply in self._replies if reply.answer.halt is not None), None
        )
        if found is None:
            return None
        return f"{found.loaded.label}: {found.answer.halt}"

    @property
    def suppressed(self) -> bool:
        """Whether one of them wants what it adds and changes left out of logs and traces.

        Their texts are joined before anybody sees them, so one of them decides for all.
        """
        return any(reply.answer.suppressed for reply in self._replies)

    def context(self, *, plain: bool = False, messages: bool = True) -> str:
        """Return what they add to the conversation.

        Args:
            plain: with what they put out that is no JSON.
            messages: with what they tell the person.
        """
        parts = []
        for reply in self._replies:
            answer = reply.answer
            texts = (
                answer.context,
                answer.plain if plain else "",
                answer.message if messages else "",
            )
            text = "\n".join(filter(None, texts))
            if text:
                parts.append(
                    reply.loaded.said(text, by_model=reply.entry.kind == "prompt")
                )
        return "\n\n".join(parts)

    def message(self, *, plain: bool = False) -> str | None:
        """Return the text for the person: the hooks' messages, and what went wrong."""
        lines = []
        for reply in self._replies:
            answer = reply.answer
            failed = ""
            if answer.failure is not None:
                failed = f"a hook failed: {answer.failure}"
            texts = (
                answer.message,
                answer.plain if plain else "",
                answer.warning and f"a hook: {answer.warning}",
                failed,
            )
            lines += [f"{reply.loaded.label}: {text}" for text in texts if text]
        return "\n".join(lines) or None

    def changes(self) -> Mapping[str, JSONValue] | None:
        """Return the arguments that they change together.

        Raises:
            ValueError: two of them change one argument to different values.
        """
        changed: dict[str, JSONValue] = {}
        for reply in self._replies:
            for name, value in (reply.answer.updated or {}).items():
                if changed.setdefault(name, value) != value:
                    raise ValueError(
                        f"{reply.loaded.label}: another hook changes {name!r} to something else"
                    )
        return changed or None

    def __bool__(self) -> bool:
        return bool(self._replies)


@attrs.define(eq=False)
class Halt:
    """Denies the next request of a turn, and none of a later one."""

    _hooks: Hooks
    _end: Callable[[], None] | None = None

    def set(self, reason: str, turn: object) -> None:
        """Deny the next request of a turn.

        Args:
            reason: why, for whoever ran the turn.
            turn: the turn's id.
        """
        self.clear()

        def refuse(_: str, request: ProviderRequest) -> HookResult | None:
            self.clear()
            if request.get("turn_id") == turn:
                return HookResult.deny(reason)
            return None

        self._end = self._hooks.register(
            PROVIDER_REQUEST, refuse, _EARLY, NAME, decides=True
        )

    def clear(self) -> None:
        """Let requests go on."""
        if self._end is not None:
            self._end()
            self._end = None
