"""The slot of a call that waits for children, between its children."""

from __future__ import annotations

import anyio

from amplifier.kernel.turn.slots import CallSlot


async def test_a_call_with_a_new_child_takes_no_slot_again() -> None:
    """It had waited for one after the child before, while another call had it."""
    slots = anyio.Semaphore(1)
    slot = CallSlot(slots, lambda: None)
    ended = [anyio.Event(), anyio.Event()]

    async def child(number: int) -> None:
        async with slot.released():
            await ended[number].wait()

    with anyio.fail_after(5):
        async with slot, anyio.create_task_group() as group:
            group.start_soon(child, 0)
            await anyio.wait_all_tasks_blocked()
            slots.acquire_nowait()  # another call's
            ended[0].set()
            await anyio.wait_all_tasks_blocked()
            group.start_soon(child, 1)
            await anyio.wait_all_tasks_blocked()
            slots.release()
            await anyio.wait_all_tasks_blocked()
            assert slots.value == 1

            ended[1].set()
            await anyio.wait_all_tasks_blocked()
            assert slots.value == 0

    assert slots.value == 1


async def test_a_call_with_two_children_takes_its_slot_once() -> None:
    """Both had waited for one, each as the last child."""
    slots = anyio.Semaphore(2)
    slot = CallSlot(slots, lambda: None)

    async def child(ended: anyio.Event) -> None:
        async with slot.released():
            await ended.wait()

    with anyio.fail_after(5):
        async with slot, anyio.create_task_group() as group:
            for _ in range(2):
                ended = anyio.Event()
                group.start_soon(child, ended)
                await anyio.wait_all_tasks_blocked()
                while slots.value:
                    slots.acquire_nowait()  # other calls'
                ended.set()
                await anyio.wait_all_tasks_blocked()
            slots.release()
            slots.release()
            await anyio.wait_all_tasks_blocked()
            assert slots.value == 1

    assert slots.value == 2


async def test_a_call_that_ends_without_its_slot_gives_none_back() -> None:
    slots = anyio.Semaphore(1)
    slot = CallSlot(slots, lambda: None)

    with anyio.CancelScope() as scope:
        async with slot, slot.released():
            slots.acquire_nowait()  # another call's
            scope.cancel()

    assert slots.value == 0
