"""A chat in this process: a session, a screen that remembers, and a keyboard that a test types on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import Final, Protocol

import anyio
import attrs
import pytest

from amplifier.app.commands.builtin import make_registry
from amplifier.app.commands.talk import Talk
from amplifier.app.sessions.opened import open_session
from amplifier.cli._chat._commands import ChatCommands
from amplifier.cli._chat._conversation import ChatLoop
from amplifier.cli._chat._keys import EndOfInput, EnteredLine, Interrupt, Key
from amplifier.cli._chat._markdown import Rendering
from amplifier.cli._chat._screen import ChatScreen
from amplifier.cli._chat._typed_keys import TypedKeys
from amplifier.cli._interrupts import Interrupts
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from tests.app.projects import composed

LOOP: Final = "loop-streaming"


class Paper:
    """A board: what is written stays in `text`, what is live in `above` and `below`."""

    def __init__(self, *, has_live: bool = True) -> None:
        self.has_live = has_live
        self.text = ""
        self.above = ""
        self.below = ""
        self.closed: Exception | None = None
        self._changed = anyio.Event()
        self._typed: list[Key] = []
        self._take: Callable[[Key], object] = self._typed.append

    async def listen(self, take: Callable[[Key], object]) -> None:
        self._take = take
        for key in self._typed:
            take(key)
        await anyio.sleep_forever()

    @asynccontextmanager
    async def away(self) -> AsyncIterator[None]:
        yield

    def write(self, text: str) -> None:
        if self.closed is not None:
            raise self.closed
        self.text += text
        self._change()

    def show(self, above: str, below: str) -> None:
        self.above, self.below = above, below
        self._change()

    def type(self, *lines: str) -> None:
        """Enter lines."""
        for line in lines:
            self._take(EnteredLine(line))

    def press_ctrl_c(self) -> None:
        """Press it."""
        self.press(Interrupt())

    def press(self, key: Key) -> None:
        """Press any key."""
        self._take(key)

    def end(self) -> None:
        """Press Ctrl-D."""
        self._take(EndOfInput())

    async def until(self, condition: Callable[[Paper], object]) -> None:
        """Wait until something is on the screen."""
        with anyio.fail_after(10):
            while not condition(self):
                await self._changed.wait()

    async def until_written(self, *texts: str) -> None:
        """Wait until texts stand on the screen, in this order."""

        def is_written(screen: Paper) -> bool:
            at = 0
            for text in texts:
                at = screen.text.find(text, at)
                if at < 0:
                    return False
                at += len(text)
            return True

        await self.until(is_written)

    def _change(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


@attrs.frozen
class Chat:
    """A running chat."""

    screen: Paper
    conversation: ChatLoop
    ended: anyio.Event

    @property
    def talk(self) -> Talk:
        """Its conversation."""
        return self.conversation.talk


class OpenChat(Protocol):
    """Opens a chat whose provider is scripted; it ends with the block."""

    def __call__(
        self,
        responses: Sequence[JSONValue],
        *modules: str,
        loop: str = LOOP,
        live: bool = True,
        debug: bool = False,
        agents: JSONObject | None = None,
    ) -> AbstractAsyncContextManager[Chat]: ...


@pytest.fixture
def open_chat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OpenChat:
    """Return a function that opens a chat whose provider is scripted; it ends with the block."""
    (tmp_path / "shop" / ".amplifier").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "80")

    @asynccontextmanager
    async def opened(
        responses: Sequence[JSONValue],
        *modules: str,
        loop: str = LOOP,
        live: bool = True,
        debug: bool = False,
        agents: JSONObject | None = None,
    ) -> AsyncIterator[Chat]:
        plan: JSONObject = {
            "session": {"orchestrator": loop, "context": "context-simple"},
            "providers": [
                {"module": "provider-scripted", "config": {"responses": [*responses]}}
            ],
            "tools": [name for name in modules if name.startswith("tool-")],
            "hooks": [name for name in modules if name.startswith("hooks-")],
            "agents": agents or {},
        }
        board = Paper(has_live=live)
        async with (
            open_session(composed(plan, tmp_path / "shop")) as session,
            anyio.create_task_group() as group,
        ):
            session.offer_background()
            talk = Talk.of(session)
            shown = ChatScreen(
                board, Rendering(is_rich=False, has_colour=False), talk, debug
            )
            conversation = ChatLoop(
                talk, shown, Interrupts(group), session.composition.display
            )
            commands = ChatCommands(conversation)
            conversation.registry, _ = await make_registry(
                talk, commands.waiting(), at_once=commands.at_once()
            )
            ended = anyio.Event()

            async def run() -> None:
                typed = TypedKeys(board, lambda: None)
                typed.heard.set()
                async with anyio.create_task_group() as listening:
                    listening.start_soon(typed.listen)
                    try:
                        await conversation.run(typed)
                    finally:
                        listening.cancel_scope.cancel()
                ended.set()

            group.start_soon(run)
            yield Chat(board, conversation, ended)
            # `/exit` may have ended it already
            with suppress(anyio.ClosedResourceError):
                board.end()
            with anyio.fail_after(10):
                await ended.wait()

    return opened
