from __future__ import annotations

import anyio
from anyio.lowlevel import checkpoint

from amplifier.testing import VirtualClock
from amplifier_kit.vendors.slots import Slots


async def take(slots: Slots) -> int:
    """Take a slot and count the signs of life until it was had."""
    return len([sign async for sign in slots.take()])


async def test_without_a_limit_a_slot_is_always_free() -> None:
    slots = Slots(None)

    for _ in range(3):
        assert await take(slots) == 0
    slots.give_back()


def test_who_waits_shows_that_it_lives_and_is_served_in_turn(
    anyio_backend_name: str,
) -> None:
    async def main() -> None:
        slots, order = Slots(1), list[str]()
        assert await take(slots) == 0

        async def wait(name: str) -> None:
            signs = await take(slots)
            order.append(f"{name} after {signs}")
            slots.give_back()

        async with anyio.create_task_group() as group:
            group.start_soon(wait, "first")
            await checkpoint()
            await anyio.sleep(1)
            group.start_soon(wait, "second")
            await anyio.sleep(11)
            slots.give_back()

        assert order == ["first after 2", "second after 2"]
        assert await take(slots) == 0

    VirtualClock().run(main, backend=anyio_backend_name)


def test_who_is_cancelled_leaves_the_queue(anyio_backend_name: str) -> None:
    async def main() -> None:
        slots = Slots(1)
        await take(slots)
        with anyio.move_on_after(7):
            await take(slots)
        slots.give_back()

        assert await take(slots) == 0

    VirtualClock().run(main, backend=anyio_backend_name)


def test_a_slot_that_comes_to_who_just_left_is_given_back(
    anyio_backend_name: str,
) -> None:
    async def main() -> None:
        slots = Slots(1)
        await take(slots)
        waiting = slots.take()
        await anext(waiting)
        slots.give_back()
        await waiting.aclose()

        assert await take(slots) == 0

    VirtualClock().run(main, backend=anyio_backend_name)
