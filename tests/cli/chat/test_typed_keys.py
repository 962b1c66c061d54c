"""What is typed before anybody hears it is kept in its order; Ctrl-C ends what is being opened."""

from __future__ import annotations

import anyio

from amplifier.cli._chat._keys import EnteredLine, Interrupt
from amplifier.cli._chat._typed_keys import TypedKeys
from tests.cli.chat.conftest import Paper


async def test_what_is_typed_early_is_heard_later_in_its_order() -> None:
    paper = Paper()
    typed = TypedKeys(paper, lambda: None)
    async with anyio.create_task_group() as group:
        group.start_soon(typed.listen)
        await anyio.wait_all_tasks_blocked()
        paper.type("one", "two")
        typed.heard.set()
        paper.press_ctrl_c()
        heard = [await typed.received.receive() for _ in range(3)]
        await typed.end()

    assert heard == [EnteredLine("one"), EnteredLine("two"), Interrupt()]


async def test_ctrl_c_is_not_left_to_whoever_hears_later() -> None:
    paper, interrupts = Paper(), list[str]()
    typed = TypedKeys(paper, lambda: interrupts.append("ended"))
    async with anyio.create_task_group() as group:
        group.start_soon(typed.listen)
        await anyio.wait_all_tasks_blocked()
        paper.press_ctrl_c()
        await typed.end()

    assert interrupts == ["ended"]


async def test_whole_lines_are_not_read_before_somebody_hears() -> None:
    paper = Paper(has_live=False)
    typed = TypedKeys(paper, lambda: None)
    async with anyio.create_task_group() as group:
        group.start_soon(typed.listen)
        await anyio.wait_all_tasks_blocked()
        paper.type("one")
        assert typed.received.statistics().current_buffer_used == 0
        typed.heard.set()
        assert await typed.received.receive() == EnteredLine("one")
        await typed.end()
