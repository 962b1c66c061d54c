"""What must hold of a loop's turns: what they answered, asked, stored, ran and emitted."""

from __future__ import annotations

import inspect

from amplifier.validation.behaviors._doubles import RecordingTool
from amplifier.validation.behaviors._orchestrator_scenarios import (
    LOST_LINE,
    TurnsOutcome,
    waiting,
)
from amplifier.validation.behaviors.behavior import (
    Expectation,
    contains,
    equals,
    expect,
    require,
)
from amplifier.validation.behaviors.harness import Harness
from amplifier_sdk.streaming import TextDelta, ToolFinished, ToolStarted, TurnFinished

_PARAMETERS = ["prompt", "context", "providers", "tools", "hooks"]


def answered(text: str) -> Expectation[TurnsOutcome]:
    return equals(lambda turns: turns.texts[-1:], [text], "The answer")


def says(words: str) -> Expectation[TurnsOutcome]:
    return contains(lambda turns: turns.text, words, "The answer or error")


def asked(count: int) -> Expectation[TurnsOutcome]:
    return equals(lambda turns: len(turns.requests), count, "The number of requests")


def asked_at_most(count: int) -> Expectation[TurnsOutcome]:
    return equals(
        lambda turns: turns.requests[count:],
        [],
        f"What was asked beyond {count} requests",
    )


def read(*texts: str) -> Expectation[TurnsOutcome]:
    """Expect these texts, and no others, in the last request."""
    return equals(lambda turns: turns.read, list(texts), "What the model read")


def read_last(words: str) -> Expectation[TurnsOutcome]:
    """Expect words in the last message of the last request."""
    return contains(
        lambda turns: "".join(turns.read[-1:]), words, "What the model read last"
    )


def read_among(text: str, *, request: int = -1) -> Expectation[TurnsOutcome]:
    return contains(lambda turns: turns.read_in(request), text, "What the model read")


def never_read(words: str) -> Expectation[TurnsOutcome]:
    return equals(
        lambda turns: [text for text in turns.read if words in text],
        [],
        f"What the model read of {words!r}",
    )


def stored(*roles: str) -> Expectation[TurnsOutcome]:
    return equals(lambda turns: turns.memory.roles, list(roles), "The stored roles")


def stored_last(words: str) -> Expectation[TurnsOutcome]:
    return contains(
        lambda turns: str(turns.memory.messages[-1]), words, "The stored answer"
    )


def never_stored(words: str) -> Expectation[TurnsOutcome]:
    return equals(
        lambda turns: [m for m in turns.memory.messages if words in str(m)],
        [],
        f"What has {words!r}",
    )


def stored_results(*texts: str) -> Expectation[TurnsOutcome]:
    return equals(
        lambda turns: [text for _, text in turns.memory.results],
        list(texts),
        "The stored results",
    )


def has_results(count: int) -> Expectation[TurnsOutcome]:
    return equals(
        lambda turns: len(turns.memory.results), count, "The number of stored results"
    )


def ran(*texts: str) -> Expectation[TurnsOutcome]:
    """Expect the tool to have run with these texts, in any order."""
    inputs = [{"text": text} for text in texts]
    return equals(
        lambda turns: sorted(turns.tool.inputs, key=str),
        inputs,
        "What the tool was called with",
    )


def ran_at_most(count: int) -> Expectation[TurnsOutcome]:
    return equals(
        lambda turns: turns.tool.inputs[count:], [], f"What ran beyond {count} calls"
    )


def heard(*events: str) -> Expectation[TurnsOutcome]:
    """Expect these events of a tool or provider in this order."""
    prefix = events[0].partition(":")[0]
    watched = {
        f"{prefix}:{name}" for name in ("pre", "post", "error", "request", "response")
    }
    return equals(
        lambda turns: [name for name in turns.harness.events if name in watched],
        list(events),
        "The events",
    )


def counted(**counts: int) -> Expectation[TurnsOutcome]:
    """Expect each event as often; in a name the first underscore stands for the colon."""
    names = {name: name.replace("_", ":", 1) for name in counts}
    return equals(
        lambda turns: {
            name: len(turns.harness.data_of(event)) for name, event in names.items()
        },
        counts,
        "How often each event was heard",
    )


def carried(event: str, key: str, value: str) -> Expectation[TurnsOutcome]:
    found = f"The {key} of {event}"
    return equals(
        lambda turns: [data.get(key) for data in turns.harness.data_of(event)],
        [value],
        found,
    )


def begins_with_the_prompt(turns: TurnsOutcome) -> None:
    events = turns.harness.events
    require(
        events.index("prompt:submit") < events.index("provider:request"),
        f"The order is {events}",
    )


def asked_the_person(prompt: str) -> Expectation[TurnsOutcome]:
    return equals(
        lambda turns: [prompt in asked for asked in turns.questions],
        [True],
        f"The question {prompt!r}",
    )


# -- how a loop is called


async def takes_arguments_by_name(harness: Harness) -> None:
    text = await harness.loop.execute(
        prompt="Begin.",
        context=harness.context,
        providers=dict(harness.coordinator.providers),
        tools=dict(harness.tools),
        hooks=harness.coordinator.hooks,
    )
    require(text == "Yes.", f"It returned {text!r:.200}")


def takes_arguments_in_order(harness: Harness) -> None:
    names = list(inspect.signature(harness.loop.execute).parameters)
    require(names[:5] == _PARAMETERS or "args" in names, f"Its parameters are {names}")


async def leaves_its_arguments(harness: Harness) -> None:
    providers, tools = dict(harness.coordinator.providers), dict(harness.tools)
    before = dict(providers), dict(tools)
    await harness.loop.execute(
        "Begin.", harness.context, providers, tools, harness.coordinator.hooks
    )
    require(
        (providers, tools) == before,
        f"Left are providers {list(providers)} and tools {list(tools)}",
    )


# -- what it stores and asks


def stored_the_prompt(turns: TurnsOutcome) -> None:
    first = turns.memory.messages[0]
    is_prompt = first.get("role") == "user" and first.get("content") == "Is it so?"
    require(is_prompt, f"Stored first is {first!r:.200}")


def asked_the_context(turns: TurnsOutcome) -> None:
    asked = len(turns.memory.asked)
    require(asked >= 2, f"For two requests it was asked {asked} times")


def named_the_provider(turns: TurnsOutcome) -> None:
    named = [provider for _, provider in turns.memory.asked]
    require(named and None not in named, "The context was asked without a provider")


def offered(*names: str) -> Expectation[TurnsOutcome]:
    return equals(
        lambda turns: sorted(spec.name for spec in turns.requests[-1].tools or ()),
        list(names),
        "The offered tools",
    )


def offered_as_described(turns: TurnsOutcome) -> None:
    tool = RecordingTool()
    specs = [
        (spec.description, spec.parameters) for spec in turns.requests[-1].tools or ()
    ]
    require(
        specs == [(tool.description, tool.input_schema)], f"Offered is {specs!r:.400}"
    )


def paired_the_result(turns: TurnsOutcome) -> None:
    memory = turns.memory
    made = memory.messages[1].get("tool_calls")
    paired = isinstance(made, list) and made[0].get("id") == memory.results[0][0]
    require(paired, "The result's tool_call_id is not the id of the call")


def answered_once(turns: TurnsOutcome) -> None:
    require(turns.text in ("One.", "Other."), f"It returned {turns.text!r:.100}")


def raised_the_error(turns: TurnsOutcome) -> None:
    error = turns.error
    require(error is LOST_LINE, f"The caller got {type(error).__name__}: {error}")


# -- what a reader sees


def seen_text(text: str) -> Expectation[TurnsOutcome]:
    def expectation(turns: TurnsOutcome) -> None:
        pieces = [event.text for event in turns.seen if isinstance(event, TextDelta)]
        require("".join(pieces) == text, f"Seen was {pieces!r:.300}")
        end = expect(turns.seen[-1], TurnFinished, "The last event")
        require(end.text == text, f"The turn ended with {end.text!r:.200}")

    return expectation


def seen_one_call(turns: TurnsOutcome) -> None:
    kinds = [type(event) for event in turns.seen]
    names = [kind.__name__ for kind in kinds]
    require(
        kinds.count(ToolStarted) == kinds.count(ToolFinished) == 1, f"Seen were {names}"
    )


def counted_tokens(total: int) -> Expectation[TurnsOutcome]:
    def expectation(turns: TurnsOutcome) -> None:
        usage = expect(turns.seen[-1], TurnFinished, "The last event").usage
        require(
            usage is not None and usage.total_tokens == total, f"Counted is {usage}"
        )

    return expectation


# -- how it ends


def ended_the_tool(turns: TurnsOutcome) -> None:
    require(not waiting(turns.harness).is_finished, "The tool came to its end")


def finished_the_tool(turns: TurnsOutcome) -> None:
    require(waiting(turns.harness).is_finished, "The tool was not let finish")
