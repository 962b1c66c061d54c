"""Questions to the person, asked in their editor."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextvars import ContextVar
from typing import Final, Literal, TypeAlias

import anyio
import attrs

from amplifier.acp.tool_calls import text_content
from amplifier.acp.updates import TurnUpdates
from amplifier_kit.open_data import as_list, as_object
from amplifier_kit.rpc.frames import RpcError
from amplifier_kit.terminal import one_line
from amplifier_sdk.errors import ApprovalUnavailableError
from amplifier_sdk.events import ToolPre
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.legible import escaped

__all__ = ["AskEditor", "EditorApproval", "OptionKind", "choose", "kind_of"]

OptionKind: TypeAlias = Literal["allow_once", "allow_always", "reject_once"]
AskEditor: TypeAlias = Callable[[JSONObject], Awaitable[JSONValue]]
"""Sends a request for a permission, and returns what the editor answers."""

_ONCE: Final = frozenset({"allow", "allow once", "yes"})
_REFUSAL: Final = "Deny"


def kind_of(option: str) -> OptionKind:
    """Say what an answer does, as an editor shows it; what does not clearly allow, rejects."""
    words = option.strip().casefold()
    if words in _ONCE:
        return "allow_once"
    if words.startswith("allow"):
        return "allow_always"
    return "reject_once"


async def choose(
    ask: AskEditor,
    call: JSONObject,
    options: Iterable[str],
    kind: Callable[[str], OptionKind] = kind_of,
) -> int | None:
    """Return the number of the option that the person chose; `None` for whatever else the editor says.

    Args:
        ask: asks the editor.
        call: the call that is asked about, as the editor shows it.
        options: their names, which may hold what a model chose.
        kind: says what each does.

    Raises:
        RpcError: the editor cannot ask.
    """
    offered: list[JSONValue] = [
        {
            "optionId": str(number),
            "name": one_line(escaped(name, allowed="")),
            "kind": kind(name),
        }
        for number, name in enumerate(options)
    ]
    answer = await ask({"toolCall": call, "options": offered})
    outcome = as_object(as_object(answer).get("outcome"))
    if outcome.get("outcome") != "selected":
        return None
    for number in range(len(offered)):
        if outcome.get("optionId") == str(number):
            return number
    return None


@attrs.define(eq=False)
class EditorApproval:
    """The approval system of a session that an editor drives.

    Args:
        ask: asks the editor.
        updates: what the running turn sends; `None` between turns.
    """

    ask: AskEditor
    updates: TurnUpdates | None = None
    _asked: int = attrs.field(default=0, init=False)
    # Each call is decided in a task of its own, and several may be asked about.
    _call: ContextVar[ToolPre | None] = attrs.field(
        factory=lambda: ContextVar("call", default=None), init=False
    )

    async def note_call(self, _: str, data: ToolPre) -> None:
        """Remember which call a question is about: a handler of `tool:pre`."""
        self._call.set(data)

    async def request_approval(
        self,
        prompt: str,
        options: Sequence[str],
        timeout: float,  # noqa: ARG002  # the kernel keeps the time
        default: str,  # noqa: ARG002  # likewise, when nobody answers
        /,
    ) -> str:
        """Ask, and return the option that the person chose.

        Raises:
            ApprovalUnavailableError: the editor cannot ask.
        """
        # what is read of the turn is sent before the question
        await anyio.lowlevel.checkpoint()
        shown = await self._shown(prompt)
        try:
            chosen = await choose(self.ask, shown, options)
        except RpcError as error:
            raise ApprovalUnavailableError(
                f"the editor did not ask: {error}"
            ) from error
        return _REFUSAL if chosen is None else options[chosen]

    async def _shown(self, prompt: str) -> JSONObject:
        """Describe the call that is asked about, with the question as its content."""
        call, updates = self._call.get(), self.updates
        question = text_content(escaped(prompt))
        if call is None or updates is None or "tool_call_id" not in call:
            self._asked += 1
            title = one_line(prompt, 200)
            return {
                "toolCallId": f"question-{self._asked}",
                "title": title,
                "kind": "other",
                "status": "pending",
                "content": [question],
            }
        shown = await updates.announce(
            call["tool_call_id"], call["tool_name"], call["tool_input"], "pending"
        )
        return {
            **shown,
            "status": "pending",
            "content": [*as_list(shown.get("content")), question],
        }
