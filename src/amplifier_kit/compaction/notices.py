"""The notice to a model about what it does not see, and how to get it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

from amplifier_kit.compaction.meters import FRAME, Count
from amplifier_kit.compaction.options import Verbosity
from amplifier_kit.compaction.pieces import RESULT_ROLES, calls_of, is_prompt
from amplifier_sdk.messages import MessageDict

__all__ = ["Loss", "notice", "ranges_of", "ranges_text"]

MINIMAL: Final = "Some of the conversation so far is not shown."
PROMPT_CHARACTERS: Final = 80
"""How much of a prompt that is left out the most verbose notice quotes."""


@attrs.frozen(kw_only=True)
class Loss:
    """What a model does not see of a history.

    Args:
        left_out: the numbers of the messages that are not shown, as ranges (first, last), both included.
        shortened: the numbers of those that are shown in a shorter form.
        messages: the messages left out.
        tool: the name of the tool that reads them, if the model has one.
    """

    left_out: Sequence[tuple[int, int]] = ()
    shortened: Sequence[int] = ()
    messages: Sequence[MessageDict] = ()
    tool: str | None = None


def notice(
    loss: Loss, verbosity: Verbosity, most_tokens: int, count: Count
) -> MessageDict | None:
    """Write a notice of at most so many tokens: as verbose as wanted if that fits, else less so, else none."""
    for lines in _drafts(loss, verbosity):
        text = "\n".join(lines)
        if FRAME + count(text) <= most_tokens:
            return {
                "role": "system",
                "content": text,
                "metadata": {"source": "context", "kind": "compaction_notice"},
            }
    return None


def _drafts(loss: Loss, verbosity: Verbosity) -> list[list[str]]:
    """Return the notice in its forms, the fullest that is wanted first."""
    minimal = [MINIMAL]
    normal = [*minimal, *_figures(loss), *_remedy(loss)]
    if verbosity == "minimal":
        return [minimal]
    newest_first: list[list[str]] = []
    if verbosity == "verbose" and (prompts := _prompts(loss)):
        newest_first = [
            prompts[skip:] for skip in (0, len(prompts) // 2, len(prompts) * 3 // 4)
        ]
    return [
        *([*normal, "Left out was asked:", *part] for part in newest_first),
        normal,
        minimal,
    ]


def _figures(loss: Loss) -> list[str]:
    lines = []
    if loss.left_out:
        prompts = sum(map(is_prompt, loss.messages))
        results = sum(message.get("role") in RESULT_ROLES for message in loss.messages)
        answers = sum(message.get("role") == "assistant" for message in loss.messages)
        what = f"{prompts} prompts, {answers} answers, {results} tool results"
        lines.append(f"Left out: messages {ranges_text(loss.left_out)} ({what}).")
        tools = sorted(
            {name for message in loss.messages for _, name in calls_of(message) if name}
        )
        lines += [f"Tools used in them: {', '.join(tools)}."] if tools else []
    if loss.shortened:
        lines.append(f"Shortened: messages {ranges_text(ranges_of(loss.shortened))}.")
    return lines


def _remedy(loss: Loss) -> list[str]:
    if loss.tool is None:
        return [
            "Nothing is lost: the application keeps all of it. Ask, or look again, for what you need."
        ]
    return [
        f"Nothing is lost: read it with the tool {loss.tool}, by the numbers of the messages."
    ]


def _prompts(loss: Loss) -> list[str]:
    texts = [
        message["content"]
        for message in loss.messages
        if message.get("role") == "user" and is_prompt(message)
    ]
    return [
        f"- {' '.join(text.split())[:PROMPT_CHARACTERS]}"
        for text in texts
        if isinstance(text, str)
    ]


def ranges_of(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """Join ascending numbers into ranges (first, last), both included."""
    ranges: list[tuple[int, int]] = []
    for number in numbers:
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1] = (ranges[-1][0], number)
        else:
            ranges.append((number, number))
    return ranges


def ranges_text(ranges: Sequence[tuple[int, int]]) -> str:
    """Write ranges, such as `0-4, 7`."""
    return ", ".join(
        str(first) if first == last else f"{first}-{last}" for first, last in ranges
    )
