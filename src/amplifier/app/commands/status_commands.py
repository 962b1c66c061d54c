"""Commands that show what a session is, has and spent."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Final

import attrs

from amplifier.app.commands.registry import CommandRegistry
from amplifier.app.commands.talk import Talk, TalkCommands
from amplifier.app.text.figures import dollars
from amplifier_kit.commands import CommandAnswer, SessionCommand
from amplifier_kit.terminal import columns_of, cut, one_line
from amplifier_sdk.chat import Usage

__all__ = ["StatusCommands", "answer_of", "rows", "usage_text"]

_NARROW: Final = 60
_LEAST: Final = 20
_LONGEST_CELL: Final = 300
_KINDS: Final = ("input_tokens", "output_tokens", "total_tokens")


@attrs.frozen(eq=False)
class StatusCommands(TalkCommands):
    """The commands that show and change nothing; `registry` has all commands, for `/help`."""

    registry: CommandRegistry

    def commands(self) -> list[SessionCommand]:
        """Return them."""
        return [
            SessionCommand(name="help", make=self.help, description="List the commands, or explain one",
                           argument_hint="[COMMAND]", aliases=("?",)),
            SessionCommand(name="status", make=self.status, description="Show the session, its model and its mode"),
            SessionCommand(name="cost", make=self.cost, description="Show the tokens and what they cost"),
        ]  # fmt: skip

    async def help(self, arguments: str) -> CommandAnswer:
        """List the commands, or say what one does."""
        if arguments:
            command = self.registry.find(arguments.removeprefix("/"))
            head = f"/{command.name} {command.argument_hint}".rstrip()
            other = [f"/{alias}" for alias in command.aliases]
            facts = [("Also", ", ".join(other)), ("From", command.source)]
            lines = [head, f"  {one_line(command.description, 300)}"]
            lines += [f"  {name}: {value}" for name, value in facts if value]
            return answer_of(lines)
        listed = self.registry.listed.items()
        table = [
            (f"/{name} {command.argument_hint}".rstrip(), command.description)
            for name, command in listed
        ]
        return answer_of(rows(table, self.talk.columns, widest=34, wraps=True))

    async def status(self, _: str) -> CommandAnswer:
        """Show who the session is and what the next turn asks."""
        talk, opened = self.talk, self.talk.opened
        name, folder = None, "no"
        if opened.writer is not None:
            name, folder = opened.writer.record.name, str(opened.writer.folder)
        dirs, profile = opened.composition.dirs, opened.composition.profile
        known = ", ".join(opened.session.coordinator.providers) or "none"
        read = ", ".join(map(str, opened.instructions.files))
        facts = [
            ("Session", opened.session.session_id),
            ("Name", name or "none"),
            ("Kept", folder),
            ("Folder", str(dirs.working_dir)),
            ("Profile", "none" if profile is None else profile.name),
            ("Provider", talk.provider or f"chosen by the loop ({known})"),
            ("Model", talk.model or _usual_model(talk)),
            ("Reads", read or "no instructions"),
            ("Mode", talk.modes.current),
            ("Turns", str(len(talk.starts))),
            ("Messages", str(len(await talk.said()))),
        ]
        return answer_of(
            f"{name + ':':<10}{one_line(value, _LONGEST_CELL)}" for name, value in facts
        )

    async def cost(self, _: str) -> CommandAnswer:
        """Show what the session spent, and what it spent since it was opened."""
        writer, now = self.talk.opened.writer, self.talk.opened.spent_since
        lines = [f"Since it was opened: {usage_text(now.usage)}"]
        if now.children:
            lines.append(f"  with {now.children} turns of child sessions")
        if writer is not None:
            record = writer.record
            counted = [
                f"{record.usage[kind]:,} {kind.partition('_')[0]}"
                for kind in _KINDS
                if kind in record.usage
            ]
            message = f"In all: {', '.join(counted)} tokens"
            if not counted:
                message = "In all: nothing is known"
            if record.cost_usd:
                message += f", {dollars(Decimal(record.cost_usd))}"
            lines.append(message)
        return answer_of(lines)


def rows(
    table: Iterable[Sequence[str]],
    width: int,
    *,
    widest: int = 24,
    wraps: bool = False,
) -> list[str]:
    """Write rows as columns; what does not fit a cell stands above the rest of its row.

    On a narrow terminal the last cell of each row stands in lines of its own.

    Args:
        table: the cells.
        width: how many columns the terminal has.
        widest: how wide a cell may be.
        wraps: whether the last cell may take several lines; else it is cut.
    """
    cells = [[one_line(cell, _LONGEST_CELL) for cell in row] for row in table]
    if width < _NARROW:
        return [line for row in cells for line in _stacked(row, width)]
    sizes = zip(*(map(columns_of, row[:-1]) for row in cells), strict=True)
    widths = [max((n for n in each if n <= widest), default=0) for each in sizes]
    return [line for row in cells for line in _row(row, widths, width, wraps=wraps)]


def _row(
    row: Sequence[str], widths: Sequence[int], width: int, *, wraps: bool
) -> Iterator[str]:
    line = ""
    for cell, room in zip(row[:-1], widths, strict=False):
        if columns_of(cell) > room:
            yield (line + cell).rstrip()
            line = " " * (columns_of(line) + room + 2)
        else:
            line += cell + " " * (room - columns_of(cell) + 2)
    left = max(_LEAST, width - columns_of(line))
    if not wraps:
        yield (line + cut(row[-1], left)).rstrip()
        return
    for part in textwrap.wrap(row[-1], left) or [""]:
        yield (line + part).rstrip()
        line = " " * columns_of(line)


def _stacked(row: Sequence[str], width: int) -> Iterator[str]:
    yield from textwrap.wrap(
        "  ".join(filter(None, row[:-1])), width, subsequent_indent="    "
    )
    for part in textwrap.wrap(row[-1], max(_LEAST, width - 2)):
        yield f"  {part}"


def usage_text(usage: Usage | None) -> str:
    """Write tokens and their cost in a line."""
    if usage is None:
        return "no tokens are known"
    parts = [f"{usage.input_tokens:,} in", f"{usage.output_tokens:,} out"]
    if usage.cache_read_tokens:
        parts.append(f"{usage.cache_read_tokens:,} cached")
    if usage.reasoning_tokens:
        parts.append(f"{usage.reasoning_tokens:,} thinking")
    message = f"{', '.join(parts)} tokens"
    if usage.cost_usd is not None:
        message += f", {dollars(usage.cost_usd)}"
    return message


def _usual_model(talk: Talk) -> str:
    for loop in talk.opened.session.plan.modules["orchestrator"]:
        model = loop.config.get("model")
        if isinstance(model, str):
            return model
    return "the provider's own"


def answer_of(lines: Iterable[str]) -> CommandAnswer:
    """Return lines as an answer."""
    return CommandAnswer(text="\n".join(lines))
