"""A context at work: it tells what it leaves out, bears what happens meanwhile, and serves turns."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

import anyio

from amplifier.validation.behaviors._cancelling import cancel_after
from amplifier.validation.behaviors._context_storage import fill, fresh, holds
from amplifier.validation.behaviors._context_views import BUDGETS, TOLERANCE, tokens_of, turns
from amplifier.validation.behaviors._messages import exchange, numbered
from amplifier.validation.behaviors._parts import Worker
from amplifier.validation.behaviors._stage import Setting, open_stage, skip_unless
from amplifier.validation.behaviors.behavior import Suite, require
from amplifier.validation.behaviors.subject import Subject
from amplifier_kit.scripted import answer, call
from amplifier_sdk.history import open_calls
from amplifier_sdk.messages import MessageDict

CONTEXT: Final = Suite("context")


@CONTEXT.behavior(fix="Emit context:pre_compact before and context:post_compact after a view is shortened.")
async def announces_that_it_shortens(subject: Subject) -> None:
    """Shortening a view is announced by one context:pre_compact and one context:post_compact with their counts."""
    async with open_stage(subject) as stage:
        await fill(stage.context, turns(60))
        await stage.context.get_messages_for_request(token_budget=2_000)
        names = [name for name in stage.events if name in ("context:pre_compact", "context:post_compact")]
        require(names == ["context:pre_compact", "context:post_compact"], f"Heard were {names}")
        (before,), (after,) = stage.all("context:pre_compact"), stage.all("context:post_compact")
    fewer = _count(after, "message_count") < _count(before, "message_count")
    require(fewer, f"The counts are {before.get('message_count')} before and {after.get('message_count')} after")


def _count(data: Mapping[str, object], key: str) -> int:
    value = data.get(key)
    return value if isinstance(value, int) else -1


@CONTEXT.behavior(fix="Emit events of shortening only when something is left out.")
async def announces_nothing_when_all_fits(subject: Subject) -> None:
    """A view of everything is announced by nothing."""
    async with open_stage(subject) as stage:
        await fill(stage.context, exchange(1))
        await stage.context.get_messages_for_request(token_budget=100_000)
        names = [name for name in stage.events if name.startswith("context:")]
    require(not names, f"Heard were {names}")


@CONTEXT.behavior(fix="Show what is there; a result without its call may come from an older store.")
async def survives_a_broken_history(subject: Subject) -> None:
    """A history with a result that nobody asked for and a call that nobody answered can still be shown."""
    broken: list[MessageDict] = [
        {"role": "tool", "tool_call_id": "call_lost", "content": "42"},
        *exchange(1)[:2],
        {"role": "user", "content": "Go on."},
    ]
    async with open_stage(subject) as stage:
        await stage.context.set_messages([*broken, *turns(10)])
        for budget in BUDGETS:
            view = await stage.context.get_messages_for_request(token_budget=budget)
            require(len(view) > 0, f"With a budget of {budget} the view is empty")


@CONTEXT.behavior(fix="Work out a view without awaiting in between, or from a copy of the history.")
async def shows_a_view_while_messages_are_added(subject: Subject) -> None:
    """Views asked for while other tasks add messages are whole."""
    async with open_stage(subject) as stage:
        await fill(stage.context, turns(10))
        start, added = await fresh(stage.context), numbered(10)

        async def look() -> None:
            view = await stage.context.get_messages_for_request(token_budget=700)
            require(view and not open_calls(list(view)), "A view was torn")

        async with anyio.create_task_group() as group:
            for number in range(10):
                group.start_soon(stage.context.add_message, added[number])
                group.start_soon(look)
        require(len(await stage.context.get_messages()) == len(start) + 10, "A message is missing")


@CONTEXT.behavior(fix="Let nothing of a cancelled view be left: work on a copy, set the result last.", is_timed=True)
async def survives_a_cancelled_view(subject: Subject) -> None:
    """After a view that was cancelled the next one is as it would have been."""
    async with open_stage(subject) as stage:
        await fill(stage.context, turns(20))
        for steps in range(3):
            await cancel_after(steps, partial(stage.context.get_messages_for_request, 700), "A view")
        view = list(await stage.context.get_messages_for_request(token_budget=700))
        require(view[-1] == turns(20)[-1] and tokens_of(view) <= 700 * TOLERANCE, f"{len(view)} messages are shown")


@CONTEXT.behavior(fix="Let compact change what is shown, never what is stored.")
async def keeps_the_history_when_told_to_compact(subject: Subject) -> None:
    """Its compact, if it has one, leaves the history whole."""
    async with open_stage(subject) as stage:
        compact = getattr(stage.context, "compact", None)
        skip_unless(callable(compact), "it has no compact")
        assert callable(compact)
        start, messages = await fresh(stage.context), turns(20)
        await fill(stage.context, messages)
        await compact()
        await holds(stage.context, [*start, *messages])


@CONTEXT.behavior(fix="Store what the loop adds, and show it to the model in the next request.")
async def serves_turns(subject: Subject) -> None:
    """In a session it keeps a turn with a tool call, and the next turn's model reads it."""
    steps = (answer(call("work", {"text": "one"})), "First.", "Second.")
    async with open_stage(subject, Setting(tools=(Worker(),)), *steps) as stage:
        await stage.turn("Do it.")
        await stage.turn("And?")
        roles = [message.role for message in stage.model.requests[-1].messages if message.role != "system"]
    require(roles == ["user", "assistant", "tool", "assistant", "user"], f"The last request has the roles {roles}")


@CONTEXT.behavior(fix="Take a history by set_messages before the first turn.")
async def serves_a_resumed_session(subject: Subject) -> None:
    """A history that the application gives before the first turn is what the model reads."""
    async with open_stage(subject, Setting(is_resumed=True), "Yes.") as stage:
        await stage.context.set_messages(exchange(1))
        await stage.turn("Do you remember?")
        texts = [message.text for message in stage.model.requests[-1].messages]
    require(any(text.startswith("prompt 1") for text in texts), f"The model read {texts!r:.300}")


@CONTEXT.behavior(fix="Keep the messages in the instance, not in the class or the package.")
async def keeps_sessions_apart(subject: Subject) -> None:
    """What one session remembers another does not know."""
    async with open_stage(subject) as first, open_stage(subject) as second:
        await fill(first.context, exchange(1))
        start = await fresh(second.context)
    strange = [message for message in start if message.get("role") not in ("system", "developer")]
    require(not strange, f"Another session's messages are there: {strange!r:.200}")
