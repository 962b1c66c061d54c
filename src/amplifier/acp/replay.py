"""A stored history as the updates that an editor would have seen."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

from amplifier.acp.tool_calls import CallView, call_update, text_content
from amplifier.acp.updates import chunk
from amplifier.app.store.reader import StoredHistory
from amplifier.app.text.message_visibility import is_shown
from amplifier_kit.open_data import as_object
from amplifier_kit.redaction import clean_message
from amplifier_sdk.content import (
    ContentBlock,
    ReasoningBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.messages import Message, MessageDict

__all__ = ["replayed", "replayed_waiting"]


def replayed(
    messages: Sequence[MessageDict],
    view: CallView,
    *,
    pending: Container[str] = frozenset(),
) -> Iterator[JSONObject]:
    """Return the updates of a history; what modules and instructions say is left out.

    Args:
        messages: the history.
        view: shows its tool calls.
        pending: the ids of the calls that have no result yet.
    """
    for data in messages:
        try:
            message = Message.from_dict(clean_message(data, view.redactor))
        except ValueError:  # what is no message of ours is nobody's text
            continue
        role = message.role
        if role not in ("user", "assistant", "tool"):
            continue
        for block in message.blocks:
            if role == "tool" and isinstance(block, TextBlock):
                block = ToolResultBlock(  # noqa: PLW2901  # a result that is written as a text
                    tool_call_id=message.tool_call_id or "", output=block.text
                )
            if is_shown(block, "developer"):
                for update in _updates(role, block, view):
                    if update.get("toolCallId") in pending:
                        update["status"] = "pending"
                    yield update


def replayed_waiting(history: StoredHistory, view: CallView) -> Iterator[JSONObject]:
    """Return the updates of a history whose last turn waits for a person: it is neither over nor interrupted."""
    turn = history.interrupted
    said: list[MessageDict] = []
    pending = set[str]()
    for line in history.lines:
        metadata = as_object(line.message.get("metadata"))
        is_last = turn is not None and line.turn == turn.turn_id
        if is_last and metadata.get("synthesized"):
            pending.add(str(line.message.get("tool_call_id")))
        else:
            said.append(line.message)
    yield from replayed(said, view, pending=pending)


def _updates(role: str, block: ContentBlock, view: CallView) -> Iterator[JSONObject]:
    match block:
        case TextBlock(text=text) if role == "user":
            yield chunk("user_message_chunk", text)
        case TextBlock(text=text) if role == "assistant":
            yield chunk("agent_message_chunk", text)
        case ThinkingBlock(thinking=text):
            yield chunk("agent_thought_chunk", text)
        case ReasoningBlock():
            return
        case ToolCallBlock(id=call_id, name=name, input=arguments):
            shown = view.shown(call_id, name, arguments, None)
            yield {"sessionUpdate": "tool_call", **shown, "status": "completed"}
        case ToolResultBlock(tool_call_id=call_id, output=output):
            text = output if isinstance(output, str) else str(output)
            yield call_update(call_id, "completed", text_content(text))
        case _:
            return
