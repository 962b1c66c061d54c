"""A context shows: a view that fits, that a provider accepts, and that leaves the history whole."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from amplifier.validation.behaviors._context_storage import fill, fresh, holds
from amplifier.validation.behaviors._messages import exchange
from amplifier.validation.behaviors._stage import open_stage
from amplifier.validation.behaviors.behavior import Suite, require
from amplifier.validation.behaviors.subject import Subject
from amplifier_kit.scripted import ScriptedProvider
from amplifier_sdk.chat import ProviderInfo
from amplifier_sdk.content import ToolCallBlock, ToolResultBlock
from amplifier_sdk.messages import Message, MessageDict

CONTEXT: Final = Suite("context")

BUDGETS: Final = (0, 1, 50, 200, 700, 2_000, 5_000)
"""Budgets in tokens for a history of some 5,000."""
TOLERANCE: Final = 1.5
"""How far a view may be above its budget by the estimate of four characters a token."""


def tokens_of(messages: Sequence[MessageDict]) -> float:
    return sum(len(json.dumps(message)) for message in messages) / 4


def turns(count: int, *, calls: int = 1, in_blocks: bool = False) -> list[MessageDict]:
    return [message for number in range(count) for message in exchange(number, calls, in_blocks=in_blocks)]


@CONTEXT.behavior(fix="Return all messages while they fit the budget.")
async def shows_everything_that_fits(subject: Subject) -> None:
    """A history that fits the budget is shown whole and in order."""
    async with open_stage(subject) as stage:
        await fill(stage.context, exchange(1))
        view = list(await stage.context.get_messages_for_request(token_budget=100_000))
        require(
            view == list(await stage.context.get_messages()), f"Of {len(exchange(1))} messages it shows {view!r:.300}"
        )


@CONTEXT.behavior(fix="Return a sequence with a length, indexes from both ends, slices and repeated iteration.")
async def shows_a_sequence(subject: Subject) -> None:
    """A view can be counted, indexed from both ends and walked more than once."""
    async with open_stage(subject) as stage:
        await fill(stage.context, turns(10))
        view = await stage.context.get_messages_for_request(token_budget=700)
        walked = list(view)
        require(list(view) == walked and len(view) == len(walked), "It is not the same twice")
        require(view[-1] == walked[-1] and list(view[:2]) == walked[:2], "An index leads elsewhere than a walk")


@CONTEXT.behavior(fix="Leave messages out of the view, or show others in their place; never touch the history.")
async def keeps_the_history_when_it_shortens(subject: Subject) -> None:
    """The history is the same after views that fit any budget."""
    async with open_stage(subject) as stage:
        start, messages = await fresh(stage.context), turns(20)
        await fill(stage.context, messages)
        for budget in BUDGETS:
            await stage.context.get_messages_for_request(token_budget=budget)
            await holds(stage.context, [*start, *messages])


@CONTEXT.behavior(fix="Leave out the oldest messages, or summarise them, until the view fits the budget.")
async def stays_within_its_budget(subject: Subject) -> None:
    """A view of a long history fits the budget that the caller names."""
    await _fits(subject, 2_000, None)


@CONTEXT.behavior(fix="Take the budget from the provider: context_window less max_output_tokens, less a margin.")
async def stays_within_the_window_of_the_provider(subject: Subject) -> None:
    """A view of a long history fits the window of the provider that will read it."""
    provider = ScriptedProvider(context_window=4_000, max_output_tokens=1_000)
    await _fits(subject, None, provider, 3_000)


@CONTEXT.behavior(fix="Let token_budget count before what the provider says.")
async def prefers_the_budget_that_is_named(subject: Subject) -> None:
    """A named budget counts, although the provider's window is larger."""
    await _fits(subject, 2_000, ScriptedProvider(context_window=1_000_000, max_output_tokens=1_000))


async def _fits(subject: Subject, budget: int | None, provider: ScriptedProvider | None, limit: int = 0) -> None:
    async with open_stage(subject) as stage:
        await fill(stage.context, turns(60))
        view = await stage.context.get_messages_for_request(token_budget=budget, provider=provider)
        tokens = tokens_of(view)
    require(view, "The view is empty")
    allowed = (budget or limit) * TOLERANCE
    require(tokens <= allowed, f"The view takes about {tokens:.0f} tokens; {budget or limit} are allowed")


class _Speechless(ScriptedProvider):
    """A provider that cannot say what it is."""

    def get_info(self) -> ProviderInfo:
        raise OSError("no network")


class _Vague(ScriptedProvider):
    """A provider that names no window."""

    def get_info(self) -> ProviderInfo:
        return ProviderInfo(id="vague", display_name="Vague")


@CONTEXT.behavior(fix="Fall back to the configured budget when get_info raises.")
async def survives_a_provider_that_cannot_say_what_it_is(subject: Subject) -> None:
    """A provider whose get_info raises does not keep the model from being asked."""
    await _shows_something(subject, _Speechless())


@CONTEXT.behavior(fix="Fall back to the configured budget when the provider names no window.")
async def survives_a_provider_without_a_window(subject: Subject) -> None:
    """A provider that names no window gets a view as well."""
    await _shows_something(subject, _Vague())


async def _shows_something(subject: Subject, provider: ScriptedProvider) -> None:
    async with open_stage(subject) as stage:
        await fill(stage.context, exchange(1))
        view = list(await stage.context.get_messages_for_request(provider=provider))
        require(view[-1:] == exchange(1)[-1:], f"The view is {view!r:.300}")


@CONTEXT.behavior(fix="Show at least the latest prompt, however small the budget; the provider says what is too long.")
async def survives_any_budget(subject: Subject) -> None:
    """A budget of nothing, or one smaller than any message, still gives a view with something in it."""
    async with open_stage(subject) as stage:
        await fill(stage.context, turns(20))
        for budget in BUDGETS:
            view = list(await stage.context.get_messages_for_request(token_budget=budget))
            require(view, f"With a budget of {budget} the view is empty")


@CONTEXT.behavior(fix="Always keep messages of the role 'system' in the view.")
async def always_shows_its_instructions(subject: Subject) -> None:
    """Messages of the role system are in every view."""
    rules: MessageDict = {"role": "system", "content": "Never delete files."}
    async with open_stage(subject) as stage:
        await fill(stage.context, [rules, *turns(20)])
        for budget in BUDGETS:
            view = await stage.context.get_messages_for_request(token_budget=budget)
            require(rules in list(view), f"With a budget of {budget} the instructions are left out")


@CONTEXT.behavior(fix="Always keep the latest prompt in the view.")
async def always_shows_the_latest_prompt(subject: Subject) -> None:
    """The prompt that waits for an answer is in every view, at its end."""
    prompt: MessageDict = {"role": "user", "content": "And now?"}
    async with open_stage(subject) as stage:
        await fill(stage.context, [*turns(20), prompt])
        for budget in BUDGETS:
            view = list(await stage.context.get_messages_for_request(token_budget=budget))
            require(view[-1:] == [prompt], f"With a budget of {budget} the view ends with {view[-1:]!r:.200}")


@CONTEXT.behavior(fix="Keep the prompt and the last step of the running turn in the view.")
async def always_shows_the_running_step(subject: Subject) -> None:
    """In the middle of a turn the prompt, the last calls and their results are in every view."""
    running = exchange(99)[:-1]
    async with open_stage(subject) as stage:
        await fill(stage.context, [*turns(20), *running])
        for budget in BUDGETS:
            view = list(await stage.context.get_messages_for_request(token_budget=budget))
            missing = [message for message in running if message not in view]
            require(not missing, f"With a budget of {budget} {len(missing)} messages of the running step are missing")


@CONTEXT.behavior(fix="Leave out a call and its results together.")
async def keeps_calls_with_their_results(subject: Subject) -> None:
    """No view holds a tool call without its result, or a result without its call."""
    await _is_paired(subject, turns(20))


@CONTEXT.behavior(fix="Read calls among the content blocks like those beside the content.")
async def keeps_calls_in_blocks_with_their_results(subject: Subject) -> None:
    """No view holds half of a pair when the calls stand among the content blocks."""
    await _is_paired(subject, turns(20, in_blocks=True))


@CONTEXT.behavior(fix="Treat an answer with several calls and all their results as one piece.")
async def keeps_parallel_calls_with_their_results(subject: Subject) -> None:
    """No view holds only a part of an answer's calls and results."""
    await _is_paired(subject, turns(15, calls=3))


@CONTEXT.behavior(fix="Look at the calls' ids: what hooks inject may stand between a call and its result.")
async def keeps_pairs_across_injected_messages(subject: Subject) -> None:
    """No view holds half of a pair when a hook's message stands between call and result."""
    note: MessageDict = {"role": "system", "content": "A note.", "metadata": {"source": "hook", "hook_name": "h"}}
    messages: list[MessageDict] = []
    for number in range(20):
        prompt, made, result, last = exchange(number)
        messages += [prompt, made, note, result, last]
    await _is_paired(subject, messages)


async def _is_paired(subject: Subject, messages: Sequence[MessageDict]) -> None:
    async with open_stage(subject) as stage:
        await fill(stage.context, messages)
        for budget in BUDGETS:
            view = await stage.context.get_messages_for_request(token_budget=budget)
            called, answered = _ids(view)
            require(called <= answered, f"With a budget of {budget} without a result: {sorted(called - answered)}")
            require(answered <= called, f"With a budget of {budget} without a call: {sorted(answered - called)}")


def _ids(messages: Sequence[MessageDict]) -> tuple[set[str], set[str]]:
    """Return the ids of the calls that messages make, and of those that they answer."""
    called: set[str] = set()
    answered: set[str] = set()
    for message in map(Message.from_dict, messages):
        called.update(block.id for block in message.blocks if isinstance(block, ToolCallBlock))
        answered.update(block.tool_call_id for block in message.blocks if isinstance(block, ToolResultBlock))
        answered.update([message.tool_call_id] if message.tool_call_id else [])
    return called, answered


@CONTEXT.behavior(fix="Show only messages of the roles and shapes that a request can carry.")
async def shows_what_a_request_can_carry(subject: Subject) -> None:
    """Every message of a view can be read as a Message."""
    async with open_stage(subject) as stage:
        await fill(stage.context, [*turns(5, in_blocks=True), *turns(5)])
        for budget in BUDGETS:
            for message in await stage.context.get_messages_for_request(token_budget=budget):
                Message.from_dict(message)


@CONTEXT.behavior(fix="Keep the order of the history in every view.")
async def shows_messages_in_their_order(subject: Subject) -> None:
    """The messages of a view that stand in the history stand there in the same order."""
    async with open_stage(subject) as stage:
        await fill(stage.context, turns(20))
        history = list(await stage.context.get_messages())
        for budget in BUDGETS:
            view = await stage.context.get_messages_for_request(token_budget=budget)
            places = [history.index(message) for message in view if message in history]
            require(places == sorted(places), f"With a budget of {budget} the order is another")


@CONTEXT.behavior(fix="Let a view depend on the history and the budget alone, so that a vendor's cache stays warm.")
async def shows_the_same_twice(subject: Subject) -> None:
    """Two views with one budget and nothing added between them are alike."""
    async with open_stage(subject) as stage:
        await fill(stage.context, turns(20))
        for budget in reversed(BUDGETS):
            first = list(await stage.context.get_messages_for_request(token_budget=budget))
            again = list(await stage.context.get_messages_for_request(token_budget=budget))
            require(first == again, f"With a budget of {budget} {len(first)} messages and then {len(again)}")


@CONTEXT.behavior(fix="Append what is added to the view, also when older messages were left out before.")
async def shows_what_is_added_after_it_shortened(subject: Subject) -> None:
    """What is added after a view was shortened stands at the end of the next one."""
    async with open_stage(subject) as stage:
        await fill(stage.context, turns(20))
        await stage.context.get_messages_for_request(token_budget=700)
        added = exchange(99)
        for number, message in enumerate(added, start=1):
            await stage.context.add_message(message)
            view = list(await stage.context.get_messages_for_request(token_budget=700))
            require(view[-number:] == added[:number], f"After {number} messages the view ends {view[-number:]!r:.300}")


@CONTEXT.behavior(fix="Begin a view with a prompt: some vendors refuse one that begins with an answer.")
async def begins_with_a_prompt(subject: Subject) -> None:
    """Behind the instructions a shortened view begins with a message of the person."""
    async with open_stage(subject) as stage:
        await fill(stage.context, [*turns(20), {"role": "user", "content": "And now?"}])
        for budget in BUDGETS:
            view = await stage.context.get_messages_for_request(token_budget=budget)
            roles = [message["role"] for message in view if message["role"] not in ("system", "developer")]
            require(roles[:1] == ["user"], f"With a budget of {budget} the view begins with the role {roles[:1]}")
