"""Commands about what the model sees: what fills its window, and showing it less."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final, Protocol, runtime_checkable

from anyio import to_thread

from amplifier.app.commands.status_commands import answer_of, rows
from amplifier.app.commands.talk import TalkCommands
from amplifier.app.sessions.live_figures import window_of
from amplifier.app.store.reader import words_of
from amplifier_kit.commands import (
    CommandAnswer,
    CommandError,
    CommandPrompt,
    SessionCommand,
)
from amplifier_kit.terminal import one_line
from amplifier_sdk.compaction import CompactionResult
from amplifier_sdk.contracts import Tool
from amplifier_sdk.messages import MessageDict

__all__ = ["ContextCommands"]

_EVERYTHING: Final = 10**9
_SHOWN_RANGES: Final = 12
_SOURCES: Final = {
    "system": "instruction",
    "developer": "files and notes that were added",
    "user": "your prompts",
    "assistant": "answers and their calls",
}
_INIT: Final = (
    "Write a file AGENTS.md in the root of this project: what an agent that works here must know, in at most 60 lines."
    " First look around: the README, the manifest of the build, the tests, how they run. Say what the project is,"
    " the commands that build, test and check it (only those that you found), where things are, and conventions that"
    " are not obvious. Leave out what any reader of the code sees at once. If AGENTS.md is there already, correct and"
    " shorten it instead."
)


@runtime_checkable
class _LeavesOut(Protocol):
    """A context that knows which messages no view shows."""

    @property
    def left_out(self) -> Sequence[tuple[int, int]]:
        """The numbers of those messages as ranges, both ends included."""
        ...


class ContextCommands(TalkCommands):
    """The commands about what the model sees; they wait for the end of a turn."""

    def commands(self) -> list[SessionCommand]:
        """Return them."""
        return [
            SessionCommand(name="context", make=self.context,
                           description="Show what fills the model's window, by source"),
            SessionCommand(name="compact", make=self.compact,
                           description="Show the model less of the conversation, and list what is left out"),
            SessionCommand(name="init", make=self.init, argument_hint="[WHAT MATTERS]",
                           description="Have AGENTS.md written, which agents read about this project"),
        ]  # fmt: skip

    async def context(self, _: str) -> CommandAnswer:
        """Count what the model would see of each source; tokens are estimates."""
        context = self.talk.opened.session.coordinator.context
        seen = await context.get_messages_for_request(token_budget=_EVERYTHING)
        tools = self.talk.opened.session.coordinator.tools
        sizes = await to_thread.run_sync(_sizes, seen, tools)
        total = sum(sizes.values())
        window = self._window()
        table = [
            (source, f"{tokens:,}", f"{tokens / (window or total or 1):.1%}")
            for source, tokens in sorted(sizes.items(), key=lambda each: -each[1])
        ]
        whole = f"About {total:,} tokens; the provider does not say how many it takes."
        if window is not None:
            whole = f"About {total:,} of {window:,} tokens, {total / window:.1%}."
        return answer_of([*rows(table, self.talk.columns, widest=40), whole])

    async def compact(self, _: str) -> CommandAnswer:
        """Ask the context manager to show the model less, and say what it shows no more."""
        context: object = self.talk.opened.session.coordinator.context
        compacting: object = getattr(context, "compact", None)
        if not callable(compacting):
            raise CommandError(
                "The session's context manager cannot compact; context-simple can"
            )
        result: object = await compacting()
        if not isinstance(result, CompactionResult):
            return CommandAnswer(text="Compacted.")
        message = (
            f"The model sees {result.after_messages} of {result.before_messages} messages, about"
            f" {result.after_tokens:,} of {result.before_tokens:,} tokens. The history itself is whole."
        )
        lines = [message]
        if isinstance(context, _LeavesOut):
            history = await self.talk.opened.session.coordinator.context.get_messages()
            lines += _ranges(history, context.left_out)
        return answer_of(lines)

    async def init(self, arguments: str) -> CommandPrompt:
        """Ask the agent for the file."""
        return CommandPrompt(text=f"{_INIT}\n\n{arguments}".strip())

    def _window(self) -> int | None:
        providers = self.talk.opened.session.coordinator.providers
        name = self.talk.provider or next(iter(providers), "")
        if name not in providers:
            return None
        return window_of(providers[name])


def _sizes(seen: Sequence[MessageDict], tools: Mapping[str, Tool]) -> dict[str, int]:
    # counting takes patterns that few commands need
    from amplifier_kit.compaction.meters import built_in_meter, message_tokens

    count = built_in_meter("estimate").count
    sizes: dict[str, int] = {}
    for message in seen:
        source = _source(message)
        sizes[source] = sizes.get(source, 0) + message_tokens(message, count)
    described = (
        (tool.name, tool.description, getattr(tool, "input_schema", None))
        for tool in tools.values()
    )
    if tools:
        texts = (json.dumps(each, default=str) for each in described)
        sizes["definitions of tools"] = sum(map(count, texts))
    return sizes


def _source(message: MessageDict) -> str:
    role = str(message.get("role"))
    if role in ("tool", "function"):
        return f"results of {message.get('name') or 'tools'}"
    return _SOURCES.get(role, role)


def _ranges(
    history: Sequence[MessageDict], left_out: Sequence[tuple[int, int]]
) -> Iterator[str]:
    """Yield what is left out and what is shown, range by range, in the order of the history."""
    edges = [(-1, -1), *left_out, (len(history), len(history))]
    parts = []
    for (_, before), (first, last) in pairwise(edges):
        if before + 1 < first:
            parts.append(("shown", before + 1, first - 1))
        if first < len(history):
            parts.append(("left out", first, last))
    for kind, first, last in parts[:_SHOWN_RANGES]:
        part = history[first : last + 1]
        asked = (message for message in part if message.get("role") == "user")
        words = words_of(next(asked, history[first]))
        yield f"{kind:<9}{first + 1}-{last + 1}: {one_line(words, 50)}"
    if len(parts) > _SHOWN_RANGES:
        yield f"... {len(parts) - _SHOWN_RANGES} more"
