"""Contexts that keep their history in a file and break what holds of such: each fails what it stands under."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from amplifier.validation.behaviors import Subject
from amplifier_sdk import Coordinator
from amplifier_sdk.messages import MessageDict
from tests.validation.behaviors.sound import Notebook

__all__ = ["FAULTY"]


class Diary(Notebook):
    """A context that writes a line for each message, and does no more for its file than that."""

    def __init__(self, coordinator: Coordinator) -> None:
        super().__init__(coordinator)
        folder = Path(str(coordinator.get_capability("session.dir") or Path.home()))
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / "diary.jsonl"
        self.loads()

    def loads(self) -> None:
        """Read what is there, if anything is."""
        if self.path.exists():
            self.messages = [
                json.loads(line) for line in self.path.read_text("utf-8").splitlines()
            ]

    def write(self, messages: Sequence[MessageDict], mode: str = "a") -> None:
        with self.path.open(mode, encoding="utf-8") as file:
            file.writelines(f"{json.dumps(message)}\n" for message in messages)

    async def add_message(self, message: MessageDict, /) -> None:
        await super().add_message(message)
        self.write([message])

    async def set_messages(self, messages: Sequence[MessageDict], /) -> None:
        await super().set_messages(messages)
        self.write(self.messages, "w")

    async def clear(self) -> None:
        await super().clear()
        self.write((), "w")


class Abridging(Diary):
    """Writes what it takes for the message."""

    def write(self, messages: Sequence[MessageDict], mode: str = "a") -> None:
        super().write(
            [
                {"role": message["role"], "content": message.get("content")}
                for message in messages
            ],
            mode,
        )


class Beginning(Diary):
    """Begins its file anew in each session."""

    def loads(self) -> None:
        super().loads()
        self.path.write_text("", "utf-8")


class Late(Diary):
    """Writes when the session ends."""

    async def add_message(self, message: MessageDict, /) -> None:
        await Notebook.add_message(self, message)

    async def aclose(self) -> None:
        self.write(self.messages, "w")


class Fleeting(Diary):
    """Keeps what it is given for the session alone."""

    async def set_messages(self, messages: Sequence[MessageDict], /) -> None:
        await Notebook.set_messages(self, messages)


class Remembering(Diary):
    """Clears its memory and not its file."""

    async def clear(self) -> None:
        await Notebook.clear(self)


def _of(cls: type[Diary]) -> Subject:
    return Subject(kind="context", module=cls)


FAULTY: Final[dict[str, Subject]] = {
    "context.goes-on-where-its-session-ended": _of(Abridging),
    "context.goes-on-adding-after-a-resume": _of(Beginning),
    "context.survives-a-kill": _of(Late),
    "context.keeps-a-given-history-for-the-next-session": _of(Fleeting),
    "context.keeps-its-history-before-a-transcript": _of(Diary),
    "context.stays-cleared": _of(Remembering),
    "context.survives-a-torn-write": _of(Diary),
    "context.survives-a-tail-of-zeros": _of(Diary),
    "context.survives-a-flipped-bit": _of(Diary),
    "context.refuses-a-second-writer": _of(Diary),
    "context.keeps-its-files-private": _of(Diary),
    "context.opens-a-long-history-at-once": _of(Diary),
}
