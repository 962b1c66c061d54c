"""What must hold of a context: what it stores, what it shows, and what survives its session."""

from __future__ import annotations

import copy
import stat
import time
from collections.abc import Mapping, MutableSequence, Sequence
from functools import partial

import anyio
import attrs

from amplifier.validation.behaviors import _limits
from amplifier.validation.behaviors._cancellation import cancel_early
from amplifier.validation.behaviors._context_scenarios import (
    ALL_SHAPES,
    ORPHAN,
    TOLERANCE,
    Filled,
    Store,
    View,
    fill,
    tokens_of,
)
from amplifier.validation.behaviors._messages import exchange, numbered
from amplifier.validation.behaviors.behavior import (
    BehaviorFailed,
    Expectation,
    expect,
    require,
    skip_unless,
)
from amplifier.validation.behaviors.harness import Harness
from amplifier_kit.scripted import ScriptedProvider
from amplifier_sdk.content import ToolCallBlock, ToolResultBlock
from amplifier_sdk.errors import AmplifierError
from amplifier_sdk.history import open_calls
from amplifier_sdk.messages import Message, MessageDict

_FORGED: MessageDict = {"role": "user", "content": "forged"}


# -- what it stores


async def starts_with_instructions(filled: Filled) -> None:
    history = await filled.context.get_messages()
    strange = [
        message
        for message in history
        if message.get("role") not in ("system", "developer")
    ]
    require(not strange, f"It starts with {strange!r:.300}")


async def leaves_added_messages(filled: Filled) -> None:
    given = copy.deepcopy(ALL_SHAPES)
    for message in given:
        await filled.context.add_message(message)
    await filled.view()
    require(given == ALL_SHAPES, "A message that was added was changed")


async def refuses_a_message_without_role(filled: Filled) -> None:
    try:
        await filled.context.add_message({"content": "Who says this?"})
    except ValueError as error:
        require("role" in str(error), f"The error does not name the role: {error}")
    else:
        raise BehaviorFailed("A message without a role was accepted")
    await filled.is_complete()


async def returns_a_sequence(filled: Filled) -> None:
    history = await filled.context.get_messages()
    _is_sequence(expect(history, Sequence, "The history"))
    require(
        len(history) == len(filled.history),
        f"Of {len(filled.history)} messages there are {len(history)}",
    )


async def shows_a_sequence(filled: Filled) -> None:
    _is_sequence(await filled.context.get_messages_for_request(token_budget=700))


def _is_sequence(messages: Sequence[MessageDict]) -> None:
    walked = list(messages)
    require(
        list(messages) == walked and len(walked) == len(messages),
        "It is not the same twice",
    )
    ends = messages[-1] == walked[-1] and messages[0] == walked[0]
    require(ends, "An index leads elsewhere than a walk")
    require(list(messages[:3]) == walked[:3], "A slice leads elsewhere than a walk")


async def gives_out_no_handle(filled: Filled) -> None:
    context = filled.context
    for returned in (
        await context.get_messages(),
        await context.get_messages_for_request(),
    ):
        if isinstance(returned, MutableSequence):
            returned.append(_FORGED)
            del returned[0]
    await filled.is_complete()


async def gives_out_the_present(filled: Filled) -> None:
    history, view = (
        await filled.context.get_messages(),
        await filled.context.get_messages_for_request(),
    )
    before = len(history), len(view)
    await filled.add(numbered(3))
    require(
        (len(history), len(view)) == before, "A returned history grew with the store"
    )


def accepts(*messages: MessageDict) -> Expectation[Filled]:
    async def expectation(filled: Filled) -> None:
        await filled.add(messages)
        await filled.is_complete()

    return expectation


async def takes_its_own_history(filled: Filled) -> None:
    await filled.context.set_messages(await filled.context.get_messages())
    await filled.is_complete()


async def keeps_no_handle(filled: Filled) -> None:
    given = numbered(3)
    await filled.context.set_messages(given)
    given.append(_FORGED)
    await attrs.evolve(filled, history=numbered(3)).is_complete()


async def is_cleared(filled: Filled) -> None:
    """Clear it and expect what it began with."""
    await filled.context.clear()
    # what it began with stays: its configured instructions
    del filled.history[len(filled.history) - len(exchange(1)) :]
    await filled.is_complete()


async def works_when_cleared(filled: Filled) -> None:
    start = list(filled.history)
    await filled.context.clear()
    await fill(filled.context, numbered(3))
    await filled.context.clear()
    await filled.context.clear()
    await fill(filled.context, exchange(2))
    await attrs.evolve(filled, history=[*start, *exchange(2)]).is_complete()
    view = await filled.view()
    require(view[-1] == exchange(2)[-1], f"The view ends with {view[-1:]!r:.200}")


async def stores_a_long_history(filled: Filled) -> None:
    count = _limits.HISTORY_OF
    began = time.perf_counter()
    for number, message in enumerate(numbered(count)):
        await filled.context.add_message(message)
        if number % 100 == 99:
            await filled.view(100 * count)
    took = time.perf_counter() - began
    filled.history.extend(numbered(count))
    await filled.is_complete()
    require(took < _limits.LONG_HISTORY, f"{count} messages took {took:.1f} s")


async def stores_messages_added_at_once(filled: Filled) -> None:
    start, messages = len(filled.history), numbered(50)
    async with anyio.create_task_group() as group:
        for message in messages:
            group.start_soon(filled.context.add_message, message)
    added = list(await filled.context.get_messages())[start:]
    texts = sorted(str(message.get("content")) for message in added)
    require(
        texts == sorted(str(message["content"]) for message in messages),
        f"{len(added)} of 50 messages are there",
    )


async def survives_a_cancelled_add(filled: Filled) -> None:
    start, messages = len(filled.history), numbered(4)
    add = filled.context.add_message
    await cancel_early("Adding", *(partial(add, message) for message in messages))
    await fill(filled.context, exchange(9))
    added = list(await filled.context.get_messages())[start:]
    stored = added[: -len(exchange(9))]
    require(
        added[len(stored) :] == exchange(9),
        "What was added after the cancelled calls is not there",
    )
    require(
        all(message in messages for message in stored),
        f"Half a message is there: {stored!r:.300}",
    )


async def counts_its_tokens(filled: Filled) -> None:
    count = getattr(filled.context, "get_token_count", None)
    skip_unless(callable(count), "it has no get_token_count")
    assert callable(count)
    before: object = await count()
    await filled.add(exchange(1))
    after: object = await count()
    grew = isinstance(before, int) and isinstance(after, int) and 0 <= before < after
    require(grew, f"It counted {before!r} tokens, and {after!r} after a whole turn")


async def shows_no_orphan(filled: Filled) -> None:
    require(
        ORPHAN not in await filled.view(1_000_000),
        "A view shows what the repair took away",
    )


# -- what it shows


async def shows_everything(filled: Filled) -> None:
    view = await filled.view(100_000)
    require(
        view == list(await filled.context.get_messages()),
        f"Of {len(filled.history)} messages: {view!r:.300}",
    )


def fits(
    budget: int | None, provider: ScriptedProvider | None = None, *, limit: int = 0
) -> Expectation[Filled]:
    """Expect a view within a named budget, or within the limit that the provider's window gives."""

    async def expectation(filled: Filled) -> None:
        view = await filled.view(budget, provider)
        tokens, allowed = tokens_of(view), budget or limit
        require(view, "The view is empty")
        require(
            tokens <= allowed * TOLERANCE,
            f"The view takes about {tokens:.0f} tokens; {allowed} are allowed",
        )

    return expectation


def shows_its_end_to(provider: ScriptedProvider) -> Expectation[Filled]:
    async def expectation(filled: Filled) -> None:
        view = await filled.view(provider=provider)
        require(view[-1:] == filled.history[-1:], f"The view is {view!r:.300}")

    return expectation


def is_not_empty(view: View) -> None:
    require(view.messages, f"{view} is empty")


def has(*messages: MessageDict) -> Expectation[View]:
    def expectation(view: View) -> None:
        missing = [message for message in messages if message not in view.messages]
        require(not missing, f"{view} leaves out {missing!r:.200}")

    return expectation


def ends_as_the_history(view: View) -> None:
    require(
        view.messages[-1:] == view.filled.history[-1:],
        f"{view} ends with {view.messages[-1:]!r:.200}",
    )


def is_paired(view: View) -> None:
    called: set[str] = set()
    answered: set[str] = set()
    for message in map(Message.from_dict, view.messages):
        called.update(
            block.id for block in message.blocks if isinstance(block, ToolCallBlock)
        )
        answered.update(
            block.tool_call_id
            for block in message.blocks
            if isinstance(block, ToolResultBlock)
        )
        answered.update([message.tool_call_id] if message.tool_call_id else [])
    require(
        called <= answered,
        f"{view} has calls without a result: {sorted(called - answered)}",
    )
    require(
        answered <= called,
        f"{view} has results without a call: {sorted(answered - called)}",
    )


def can_be_sent(view: View) -> None:
    for message in view.messages:
        Message.from_dict(message)


def is_in_order(view: View) -> None:
    history = view.filled.history
    places = [history.index(message) for message in view.messages if message in history]
    require(places == sorted(places), f"{view} has another order")


async def is_the_same_again(view: View) -> None:
    first, again = (
        await view.filled.view(view.budget),
        await view.filled.view(view.budget),
    )
    require(first == again, f"{view} has {len(first)} messages and then {len(again)}")


async def shows_what_is_added(view: View) -> None:
    added = exchange(99)
    for number, message in enumerate(added, start=1):
        await view.filled.context.add_message(message)
        end = (await view.filled.view(view.budget))[-number:]
        require(
            end == added[:number], f"After {number} messages the view ends {end!r:.300}"
        )


def begins_with_a_prompt(view: View) -> None:
    roles = [
        message["role"]
        for message in view.messages
        if message["role"] not in ("system", "developer")
    ]
    require(roles[:1] == ["user"], f"{view} begins with the role {roles[:1]}")


# -- how it works


async def announces_that_it_shortens(filled: Filled) -> None:
    harness = filled.harness
    await filled.view(2_000)
    names = [
        name
        for name in harness.events
        if name in ("context:pre_compact", "context:post_compact")
    ]
    require(
        names == ["context:pre_compact", "context:post_compact"], f"Heard were {names}"
    )
    (before,), (after,) = (
        harness.data_of("context:pre_compact"),
        harness.data_of("context:post_compact"),
    )
    counts = _message_count(before), _message_count(after)
    require(
        counts[1] < counts[0],
        f"The counts are {counts[0]} before and {counts[1]} after",
    )


def _message_count(data: Mapping[str, object]) -> int:
    value = data.get("message_count")
    if isinstance(value, int):
        return value
    return -1


async def announces_nothing(filled: Filled) -> None:
    await filled.view(100_000)
    names = [name for name in filled.harness.events if name.startswith("context:")]
    require(not names, f"Heard were {names}")


async def shows_views_while_messages_are_added(filled: Filled) -> None:
    async def look() -> None:
        view = await filled.view(700)
        require(view and not open_calls(view), "A view was torn")

    async with anyio.create_task_group() as group:
        for message in numbered(10):
            group.start_soon(filled.context.add_message, message)
            group.start_soon(look)
    # only after all tasks: the views above may show any part
    count = len(await filled.context.get_messages())
    require(count == len(filled.history) + 10, "A message is missing")


async def survives_a_cancelled_view(filled: Filled) -> None:
    undisturbed = await filled.view(700)
    await filled.add(numbered(1))
    look = partial(filled.context.get_messages_for_request, token_budget=700)
    await cancel_early("A view", *[look] * 3)
    view = await filled.view(700)
    require(view[-1:] == numbered(1), f"The view ends with {view[-1:]!r:.200}")
    grown = tokens_of(view) - max(tokens_of(undisturbed), 700 * TOLERANCE)
    require(
        grown <= tokens_of(numbered(1)),
        f"{len(view)} messages are shown; before they were {len(undisturbed)}",
    )
    await filled.is_complete()


async def keeps_its_history_when_compacted(filled: Filled) -> None:
    compact = getattr(filled.context, "compact", None)
    skip_unless(callable(compact), "it has no compact")
    assert callable(compact)
    await compact()
    await filled.is_complete()


async def serves_turns(harness: Harness) -> None:
    await harness.turn("Do it.")
    await harness.turn("And?")
    roles = [
        message.role
        for message in harness.model.requests[-1].messages
        if message.role != "system"
    ]
    require(
        roles == ["user", "assistant", "tool", "assistant", "user"],
        f"The last request has the roles {roles}",
    )


async def serves_a_resumed_session(harness: Harness) -> None:
    await harness.context.set_messages(exchange(1))
    await harness.turn("Do you remember?")
    texts = [message.text for message in harness.model.requests[-1].messages]
    require(
        any(text.startswith("prompt 1") for text in texts),
        f"The model read {texts!r:.300}",
    )


# -- what survives its session


async def adds_after_a_resume(store: Store) -> None:
    for number in (2, 3):
        await store.add(exchange(number))
    await store.resumes()


async def survives_a_kill(store: Store) -> None:
    async with store.open() as harness:
        for number, message in enumerate(exchange(2)):
            await fill(harness.context, [message])
            store.history.append(message)
            await store.copy(f"killed-{number}").resumes()


async def stores_a_given_history(store: Store) -> None:
    fresh = attrs.evolve(store, folder=store.folder.with_name("given"))
    fresh.folder.mkdir()
    async with fresh.open() as harness:
        await harness.context.set_messages(exchange(1))
    await fresh.resumes(exchange(1))


async def prefers_its_own_history(store: Store) -> None:
    async with store.open() as harness:
        await harness.context.set_messages(
            [m for m in store.history if m.get("role") != "system"]
        )
        await Filled(harness=harness, history=store.history).is_complete()
    await store.resumes()


async def stays_cleared(store: Store) -> None:
    start = store.history[: -len(exchange(1))]
    async with store.open() as harness:
        await harness.context.clear()
        await fill(harness.context, numbered(1))
    await store.resumes([*start, *numbered(1)])


async def survives_torn_writes(store: Store) -> None:
    data = store.lines.read_bytes()
    last = len(data) - data.rstrip(b"\n").rfind(b"\n") - 1
    # at the line's end, in its middle, and behind its first byte
    for missing in sorted({1, 2, 3, last // 2, last - 1}):
        await _survives(store, data[:-missing], lost=1)


async def survives_zeros(store: Store) -> None:
    data = store.lines.read_bytes()
    # some file systems grow a file before they write it: a power failure leaves zeros
    for tail in (b"\0", b"\0" * 512, b"\0" * 64 + b"\n"):
        await _survives(store, data + tail, lost=0)


async def survives_flipped_bits(store: Store) -> None:
    data = store.lines.read_bytes()
    begin = data.rstrip(b"\n").rfind(b"\n") + 1
    for part in (0.1, 0.5, 0.9):
        flipped = bytearray(data)
        # the lowest bit: a letter stays a letter, so that only a checksum notices
        flipped[begin + int((len(data) - begin) * part)] ^= 1
        await _survives(store, bytes(flipped), lost=1)


async def _survives(store: Store, damaged: bytes, *, lost: int) -> None:
    """Require that a session opens on damaged files, lost so many messages at most, and stores what it adds."""
    # each kind of damage to files of its own
    hit, added = store.copy("damaged"), exchange(9)
    hit.lines.write_bytes(damaged)
    async with hit.open() as harness:
        found = list(await harness.context.get_messages())
        await fill(harness.context, added)
    strange = [message for message in found if message not in store.history]
    require(
        not strange, f"The history has a message that never went in: {strange!r:.300}"
    )
    missing = len(store.history) - len(found)
    require(missing <= lost, f"{missing} messages are lost; {lost} were damaged")
    await hit.resumes([*found, *added])


async def refuses_a_second_writer(store: Store) -> None:
    async with store.open() as harness:
        began = time.perf_counter()
        await _is_refused(store)
        took = time.perf_counter() - began
        await fill(harness.context, numbered(1))
    require(
        took < _limits.REFUSAL, f"The second session was refused after {took:.1f} s"
    )
    await store.resumes([*store.history, *numbered(1)])


async def _is_refused(store: Store) -> None:
    try:
        async with store.open():
            pass
    except AmplifierError:
        return
    raise BehaviorFailed("Two sessions had the same history open for writing")


def has_private_files(store: Store) -> None:
    files = store.files
    skip_unless(files, "it stores no file in the session's folders")
    folders = {
        folder
        for path in files
        for folder in path.parents
        if store.folder in folder.parents
    }
    for path in (*files, *sorted(folders)):
        mode = stat.S_IMODE(path.stat().st_mode)
        require(
            not mode & 0o077,
            f"{path.relative_to(store.folder)} has the mode {mode:04o}",
        )


async def opens_soon(store: Store) -> None:
    began = time.perf_counter()
    async with store.open() as harness:
        took = time.perf_counter() - began
        await Filled(harness=harness, history=store.history).is_complete()
    require(took < _limits.OPENING, f"It took {took:.2f} s")
