"""A context remembers: what went in comes back, exactly, in order, and only what went in."""

from __future__ import annotations

import copy
import time
from collections.abc import MutableSequence, Sequence
from functools import partial
from typing import Final

import anyio

from amplifier.validation.behaviors._cancelling import cancel_after
from amplifier.validation.behaviors._messages import MESSAGES, exchange, numbered
from amplifier.validation.behaviors._stage import open_stage, skip_unless
from amplifier.validation.behaviors.behavior import Behavior, BehaviorFailed, Suite, expect, require
from amplifier.validation.behaviors.subject import Subject
from amplifier_sdk.contracts import ContextManager
from amplifier_sdk.messages import MessageDict

CONTEXT: Final = Suite("context")

MANY: Final = 10_000
LONGEST: Final = 10.0
"""Seconds for `MANY` messages; a store that walks its history for each takes minutes."""


async def fresh(context: ContextManager) -> list[MessageDict]:
    """Return what a context has before anything is added: instructions of its configuration, or nothing."""
    return list(await context.get_messages())


async def fill(context: ContextManager, messages: Sequence[MessageDict]) -> None:
    """Add messages, each a copy of its own."""
    for message in messages:
        await context.add_message(copy.deepcopy(message))


async def holds(context: ContextManager, wanted: Sequence[MessageDict]) -> None:
    """Go on when the history is exactly this."""
    history = list(await context.get_messages())
    require(len(history) == len(wanted), f"{len(wanted)} messages went in and {len(history)} came back")
    for index, (stored, given) in enumerate(zip(history, wanted, strict=True)):
        require(_same(stored, given), f"Message {index} went in as {given!r:.200} and came back as {stored!r:.200}")


def _same(left: object, right: object) -> bool:
    """Tell whether two JSON values are alike in type, value and order."""
    if isinstance(left, dict) and isinstance(right, dict):
        return list(left) == list(right) and all(_same(left[key], right[key]) for key in left)
    if isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
        return len(left) == len(right) and all(map(_same, left, right))
    return type(left) is type(right) and left == right


@CONTEXT.behavior(fix="Start empty, or with the configured instructions in messages of the role 'system'.")
async def starts_with_instructions_at_most(subject: Subject) -> None:
    """A new context is empty but for messages of the role system or developer."""
    async with open_stage(subject) as stage:
        strange = [m for m in await fresh(stage.context) if m.get("role") not in ("system", "developer")]
    require(not strange, f"It starts with {strange!r:.300}")


async def _keeps(name: str, subject: Subject) -> None:
    message = MESSAGES[name][1]
    async with open_stage(subject) as stage:
        start = await fresh(stage.context)
        await fill(stage.context, [message])
        await holds(stage.context, [*start, message])


CONTEXT.behaviors += [
    Behavior(
        id=f"context.keeps-{name}",
        kind="context",
        says=f"A message with {what} comes back exactly as it went in.",
        fix="Store the message as it is; read it as typed values only for those who ask for them.",
        check=partial(_keeps, name),
    )
    for name, (what, _) in MESSAGES.items()
]


@CONTEXT.behavior(fix="Append messages; give out the history in the order in which they came.")
async def keeps_the_order(subject: Subject) -> None:
    """Messages come back in the order in which they were added."""
    async with open_stage(subject) as stage:
        start, messages = await fresh(stage.context), numbered(50)
        await fill(stage.context, messages)
        await holds(stage.context, [*start, *messages])


@CONTEXT.behavior(fix="Store every message that is added, also one that is there already.")
async def keeps_repeated_messages(subject: Subject) -> None:
    """The same message added three times is there three times."""
    async with open_stage(subject) as stage:
        start, message = await fresh(stage.context), MESSAGES["plain-texts"][1]
        await fill(stage.context, [message] * 3)
        await holds(stage.context, [*start, message, message, message])


@CONTEXT.behavior(fix="Treat every shape of message alike; keep nothing but the list of them.")
async def keeps_a_mixed_history(subject: Subject) -> None:
    """A history of messages of every shape comes back exactly as it went in."""
    async with open_stage(subject) as stage:
        start, messages = await fresh(stage.context), [message for _, message in MESSAGES.values()]
        await fill(stage.context, messages)
        await holds(stage.context, [*start, *messages])


@CONTEXT.behavior(fix="Copy a message before adding to it, and keep figures about it beside it.")
async def leaves_added_messages_alone(subject: Subject) -> None:
    """Adding a message and asking for a view changes nothing in the mapping that was given."""
    async with open_stage(subject) as stage:
        given = [copy.deepcopy(message) for _, message in MESSAGES.values()]
        for message in given:
            await stage.context.add_message(message)
        await stage.context.get_messages_for_request()
    require(given == [message for _, message in MESSAGES.values()], "A message that was added was changed")


@CONTEXT.behavior(fix="Raise ValueError from add_message when 'role' is missing.")
async def refuses_a_message_without_a_role(subject: Subject) -> None:
    """A message without a role is a ValueError that names the role, and is not stored."""
    async with open_stage(subject) as stage:
        start = await fresh(stage.context)
        try:
            await stage.context.add_message({"content": "Who says this?"})
        except ValueError as error:
            require("role" in str(error), f"The error does not name the role: {error}")
        else:
            raise BehaviorFailed("A message without a role was accepted")
        await holds(stage.context, start)


@CONTEXT.behavior(fix="Return a sequence with a length, indexes from both ends, slices and repeated iteration.")
async def returns_a_sequence(subject: Subject) -> None:
    """The history can be counted, indexed from both ends, sliced and walked more than once."""
    async with open_stage(subject) as stage:
        start = len(await fresh(stage.context))
        await fill(stage.context, numbered(6))
        history: Sequence[MessageDict] = expect(
            await stage.context.get_messages(),
            Sequence,
            "The history",
        )
        walked = list(history)
        require(list(history) == walked and len(walked) == len(history) == start + 6, "It is not the same twice")
        require(history[-1] == walked[-1] and history[0] == walked[0], "An index leads elsewhere than a walk")
        require(list(history[1:3]) == walked[1:3], "A slice leads elsewhere than a walk")


@CONTEXT.behavior(fix="Return a copy of the list, or a view that cannot be changed.")
async def gives_out_no_handle_on_its_store(subject: Subject) -> None:
    """What a reader appends to or takes from a returned history is not appended to or taken from the store."""
    async with open_stage(subject) as stage:
        start, messages = await fresh(stage.context), numbered(4)
        await fill(stage.context, messages)
        for returned in (await stage.context.get_messages(), await stage.context.get_messages_for_request()):
            if isinstance(returned, MutableSequence):
                returned.append({"role": "user", "content": "forged"})
                del returned[0]
        await holds(stage.context, [*start, *messages])


@CONTEXT.behavior(fix="Return a copy of the list, or a view with the length of the moment.")
async def gives_out_the_history_of_the_moment(subject: Subject) -> None:
    """A history that was returned does not grow when messages are added later."""
    async with open_stage(subject) as stage:
        await fill(stage.context, numbered(3))
        history, view = await stage.context.get_messages(), await stage.context.get_messages_for_request()
        before = len(history), len(view)
        await fill(stage.context, numbered(3))
        require((len(history), len(view)) == before, "A returned history grew with the store")


@CONTEXT.behavior(fix="Replace the whole history in set_messages, and recount what is counted.")
async def can_be_given_a_history(subject: Subject) -> None:
    """After set_messages the history is exactly what was given."""
    async with open_stage(subject) as stage:
        await fill(stage.context, numbered(5))
        messages = [message for _, message in MESSAGES.values()]
        await stage.context.set_messages(copy.deepcopy(messages))
        await holds(stage.context, messages)


@CONTEXT.behavior(fix="Accept any sequence of messages, an empty one as well.")
async def can_be_given_an_empty_history(subject: Subject) -> None:
    """After set_messages with nothing the history is empty and can be added to."""
    async with open_stage(subject) as stage:
        await fill(stage.context, numbered(5))
        await stage.context.set_messages(())
        await holds(stage.context, [])
        await fill(stage.context, numbered(2))
        await holds(stage.context, numbered(2))


@CONTEXT.behavior(fix="Read the given sequence before the old history is dropped.")
async def can_be_given_its_own_history(subject: Subject) -> None:
    """Giving back what get_messages returned changes nothing."""
    async with open_stage(subject) as stage:
        start, messages = await fresh(stage.context), exchange(1)
        await fill(stage.context, messages)
        await stage.context.set_messages(await stage.context.get_messages())
        await holds(stage.context, [*start, *messages])


@CONTEXT.behavior(fix="Copy the list that set_messages is given.")
async def keeps_no_handle_on_a_given_list(subject: Subject) -> None:
    """What is appended later to the list that set_messages was given is not appended to the history."""
    async with open_stage(subject) as stage:
        given = numbered(3)
        await stage.context.set_messages(given)
        given.append({"role": "user", "content": "forged"})
        await holds(stage.context, numbered(3))


@CONTEXT.behavior(fix="Append to the history that set_messages gave.")
async def goes_on_from_a_given_history(subject: Subject) -> None:
    """Messages that are added after set_messages stand behind what was given."""
    async with open_stage(subject) as stage:
        await stage.context.set_messages(numbered(4))
        await fill(stage.context, exchange(1))
        await holds(stage.context, [*numbered(4), *exchange(1)])


@CONTEXT.behavior(fix="Drop everything in clear but the configured instructions.")
async def can_be_cleared(subject: Subject) -> None:
    """After clear the history is what it was in the beginning."""
    async with open_stage(subject) as stage:
        start = await fresh(stage.context)
        await fill(stage.context, exchange(1))
        await stage.context.clear()
        await holds(stage.context, start)


@CONTEXT.behavior(fix="Let clear leave the context as a new one, twice if need be.")
async def works_after_it_was_cleared(subject: Subject) -> None:
    """A context that was cleared, even twice, works like a new one."""
    async with open_stage(subject) as stage:
        start = await fresh(stage.context)
        await stage.context.clear()
        await fill(stage.context, numbered(3))
        await stage.context.clear()
        await stage.context.clear()
        await fill(stage.context, exchange(2))
        await holds(stage.context, [*start, *exchange(2)])
        view = list(await stage.context.get_messages_for_request())
        require(view[-1] == exchange(2)[-1], f"The view ends with {view[-1:]!r:.200}")


@CONTEXT.behavior(
    fix="Count what is added once, when it is added; never walk the history for each message.", is_timed=True
)
async def keeps_ten_thousand_messages(subject: Subject) -> None:
    """Ten thousand messages, with a view asked for after every hundredth, are kept in ten seconds."""
    async with open_stage(subject) as stage:
        start, messages = await fresh(stage.context), numbered(MANY)
        began = time.perf_counter()
        for number, message in enumerate(messages):
            await stage.context.add_message(message)
            if number % 100 == 99:
                await stage.context.get_messages_for_request(token_budget=100 * MANY)
        took = time.perf_counter() - began
        await holds(stage.context, [*start, *messages])
    require(took < LONGEST, f"{MANY} messages took {took:.1f} s")


@CONTEXT.behavior(fix="Append without awaiting in between, or hold a lock while a message is stored.")
async def keeps_messages_added_at_once(subject: Subject) -> None:
    """Fifty messages that are added at once from as many tasks are all there, once each."""
    async with open_stage(subject) as stage:
        start, messages = await fresh(stage.context), numbered(50)
        async with anyio.create_task_group() as group:
            for message in messages:
                group.start_soon(stage.context.add_message, message)
        added = list(await stage.context.get_messages())[len(start) :]
    texts = sorted(str(message.get("content")) for message in added)
    require(texts == sorted(str(message["content"]) for message in messages), f"{len(added)} of 50 messages are there")


@CONTEXT.behavior(fix="Store a message whole or not at all: put the append behind the last await.", is_timed=True)
async def survives_a_cancelled_add(subject: Subject) -> None:
    """A message whose adding is cancelled is there whole or not at all, and the next one is added as usual."""
    async with open_stage(subject) as stage:
        start, messages = await fresh(stage.context), numbered(4)
        for steps, message in enumerate(messages):
            await cancel_after(steps, partial(stage.context.add_message, message), "Adding")
        await fill(stage.context, exchange(9))
        added = list(await stage.context.get_messages())[len(start) :]
    kept = added[: -len(exchange(9))]
    require(added[len(kept) :] == exchange(9), "What was added after the cancelled calls is not there")
    require(all(message in messages for message in kept), f"Half a message is there: {kept!r:.300}")


@CONTEXT.behavior(fix="Store messages; what they mean is for those who read them.")
async def keeps_roles_it_does_not_know(subject: Subject) -> None:
    """A message of a role that nobody knows comes back exactly as it went in."""
    message: MessageDict = {"role": "critic", "content": "Not bad."}
    async with open_stage(subject) as stage:
        start = await fresh(stage.context)
        await fill(stage.context, [message])
        await holds(stage.context, [*start, message])


@CONTEXT.behavior(fix="Return the tokens of the whole history, estimated when a message is added.")
async def counts_its_tokens(subject: Subject) -> None:
    """Its get_token_count, if it has one, grows with each message and is zero or more."""
    async with open_stage(subject) as stage:
        count = getattr(stage.context, "get_token_count", None)
        skip_unless(callable(count), "it has no get_token_count")
        assert callable(count)
        before: object = await count()
        await fill(stage.context, exchange(1))
        after: object = await count()
    grew = isinstance(before, int) and isinstance(after, int) and 0 <= before < after
    require(grew, f"It counted {before!r} tokens, and {after!r} after a whole turn")
