"""What must hold of a provider, of its answers and of its streams."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Coroutine, Sequence
from typing import Final, TypeAlias, get_args, overload

import anyio
import attrs

from amplifier.validation.behaviors._cancellation import cancel_when, ends_in_time
from amplifier.validation.behaviors._provider_scenarios import (
    Asked,
    Streamed,
    answer_or_refusal,
    case_of,
)
from amplifier.validation.behaviors.behavior import (
    BehaviorFailed,
    expect,
    require,
    skip_unless,
)
from amplifier.validation.behaviors.harness import Harness
from amplifier.validation.leftovers import Leftovers, settle
from amplifier_sdk.arguments import read_arguments
from amplifier_sdk.chat import (
    ChatResponse,
    FinishReason,
    ModelInfo,
    ProviderInfo,
    ToolCall,
    Usage,
)
from amplifier_sdk.content import TextBlock, ThinkingBlock, ToolCallBlock
from amplifier_sdk.contracts import Provider
from amplifier_sdk.convert import to_json
from amplifier_sdk.errors import LLMError
from amplifier_sdk.messages import Message
from amplifier_sdk.streaming import (
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    TurnFinished,
)

_Info: TypeAlias = tuple[Provider, ProviderInfo]
_Models: TypeAlias = tuple[Provider, list[ModelInfo]]
_Slice: TypeAlias = "slice[int | None, int | None, int | None]"

HISTORY: Final = (
    Message(role="system", content="Answer briefly."),
    Message(role="user", content="What is in notes.txt?"),
    Message(
        role="assistant",
        content=[
            ThinkingBlock(thinking="I must look.", signature="EqQBCkgI=="),
            ToolCallBlock(id="call_1", name="read", input={"path": "notes.txt"}),
        ],
    ),
    Message(role="tool", name="read", tool_call_id="call_1", content="three lines"),
    Message(role="assistant", content="Three lines."),
)
"""A conversation with everything that a history may hold."""


# -- what it says of itself


def says_what_it_is(harness: Harness) -> None:
    info: object = harness.provider.get_info()
    # closed, or Python warns of it and hides the finding
    if inspect.iscoroutine(info):
        info.close()
    expect(info, ProviderInfo, "What get_info returns")


def names_itself(said: _Info) -> None:
    info = said[1]
    require(
        info.id and info.display_name.strip(),
        f"The id is {info.id!r}, the name {info.display_name!r}",
    )


def has_its_own_name(harness: Harness) -> None:
    (mounted,) = harness.coordinator.providers
    own = harness.provider.name
    require(mounted == own, f"The provider {own!r} is mounted as {mounted!r}")


def says_the_same_again(said: _Info) -> None:
    provider, info = said
    require(
        provider.get_info() == info, "Two calls of get_info returned different things"
    )


def is_json(said: _Info) -> None:
    json.dumps(to_json(said[1]), allow_nan=False)


def names_its_window(said: _Info) -> None:
    defaults = said[1].defaults
    window, output = defaults.get("context_window"), defaults.get("max_output_tokens")
    good = isinstance(window, int) and isinstance(output, int) and 0 < output < window
    require(good, f"context_window is {window!r} and max_output_tokens {output!r}")


def names_its_model(said: _Info) -> None:
    model = said[1].defaults.get("model")
    require(isinstance(model, str) and model, f"The default model is {model!r}")


def streams_as_it_says(said: _Info) -> None:
    provider, info = said
    has = callable(getattr(provider, "stream", None))
    if has:
        there = "there"
    else:
        there = "missing"
    says = "streaming" in info.capabilities
    require(has == says, f"stream is {there}; its capabilities are {info.capabilities}")


def names_credentials(said: _Info) -> None:
    names = said[1].credential_env_vars
    skip_unless(names, "it needs no credentials")
    odd = [name for name in names if not re.fullmatch(r"[A-Z][A-Z0-9_]*", name)]
    require(
        not odd, f"{len(odd)} of {len(names)} are no names of environment variables"
    )


def asks_for_each_setting_once(said: _Info) -> None:
    fields = said[1].config_fields
    skip_unless(fields, "it asks a person for nothing")
    ids = [field.id for field in fields]
    require(len(set(ids)) == len(ids), f"The ids are {ids}")
    bare = [
        field.id
        for field in fields
        if field.field_type == "choice" and not field.choices
    ]
    require(not bare, f"Without choices: {bare}")


def has_a_number_as_priority(harness: Harness) -> None:
    priority = getattr(harness.provider, "priority", None)
    skip_unless(priority is not None, "it names no priority")
    good = isinstance(priority, (int, float)) and not isinstance(priority, bool)
    require(good, f"The priority is {priority!r}")


async def lists_models(harness: Harness) -> None:
    for model in expect(
        await harness.provider.list_models(), list, "What list_models returns"
    ):
        expect(model, ModelInfo, "An item of list_models")


def have_ids_of_their_own(listed: _Models) -> None:
    ids = [model.id for model in listed[1]]
    require(all(ids) and len(set(ids)) == len(ids), f"The ids are {ids}")


def have_possible_windows(listed: _Models) -> None:
    odd = [
        model.id
        for model in listed[1]
        if not 0 < model.max_output_tokens <= model.context_window
    ]
    require(not odd, f"With impossible windows: {', '.join(odd)}")


def include_the_default(listed: _Models) -> None:
    provider, models = listed
    default = provider.get_info().defaults.get("model")
    skip_unless(default, "it names no default model")
    ids = [model.id for model in models]
    require(default in ids, f"The default {default!r} is not among {ids}")


async def are_the_same_again(listed: _Models) -> None:
    provider, models = listed
    again = [model.id for model in await provider.list_models()]
    require(
        again == [model.id for model in models],
        f"First {len(models)}, then {len(again)} models were listed",
    )


def reads_calls(count: int) -> Callable[[Harness], None]:
    """Expect exactly the calls of an answer from parse_tool_calls."""
    made = [
        ToolCall(id=f"call_{n}", name="work", arguments={"n": n}) for n in range(count)
    ]
    blocks = [
        ToolCallBlock(id=call.id, name=call.name, input=call.arguments) for call in made
    ]
    response = ChatResponse(content=blocks, tool_calls=made, finish_reason="tool_calls")
    if not made:
        response = ChatResponse(
            content=[TextBlock(text="No call.")], finish_reason="stop"
        )

    def expectation(harness: Harness) -> None:
        calls = expect(
            harness.provider.parse_tool_calls(response),
            list,
            "What parse_tool_calls returns",
        )
        require(calls == made, f"Read were {calls!r:.300}")

    return expectation


# -- its answers


def has_text(response: ChatResponse) -> None:
    require(response.text, f"The answer is {response!r:.300}")


def has_a_known_reason(response: ChatResponse) -> None:
    require(
        response.finish_reason in get_args(FinishReason),
        f"The reason is {response.finish_reason!r}",
    )


def is_complete(response: ChatResponse) -> None:
    require(
        response.is_complete and not response.tool_calls,
        f"The reason is {response.finish_reason!r}",
    )


def counts_tokens(response: ChatResponse) -> None:
    usage = expect(response.usage, Usage, "The answer's usage")
    counts = (usage.input_tokens, usage.output_tokens, usage.total_tokens)
    require(min(counts) >= 0, f"The counts are {counts}")


def adds_up_tokens(response: ChatResponse) -> None:
    usage = expect(response.usage, Usage, "The answer's usage")
    total, parts = usage.total_tokens, usage.input_tokens + usage.output_tokens
    require(total >= parts, f"The total is {total}, the parts are {parts}")


def is_plain_data(response: ChatResponse) -> None:
    json.dumps(to_json(response), allow_nan=False)


def can_be_stored(response: ChatResponse) -> None:
    stored = json.loads(json.dumps(response.to_message()))
    require(
        Message.from_dict(stored).text == response.text,
        f"Read again is {stored!r:.300}",
    )


# -- its requests


async def leaves_the_request(asked: Asked) -> None:
    request = attrs.evolve(
        asked.case.build(*HISTORY),
        metadata={"tags": ["a"]},
        extras={"vendor": {"x": [1]}},
    )
    before = to_json(request)
    await answer_or_refusal(asked.provider, request)
    require(to_json(request) == before, "The request was changed")


def is_an_answer(returned: object) -> None:
    if isinstance(returned, LLMError):
        raise returned
    expect(returned, ChatResponse, "What complete returns")


def is_an_answer_or_refusal(returned: object) -> None:
    expect(returned, (ChatResponse, LLMError), "What complete returns")


async def reads_an_empty_list_of_tools(asked: Asked) -> None:
    response = await asked.complete(attrs.evolve(asked.case.build(), tools=[]))
    require(
        response.text and not response.tool_calls, f"The answer is {response!r:.300}"
    )


# No `list`, and nothing that a list has besides: a provider that relies on more
# than a sequence fails here and not in a long session.
class _View(Sequence[Message]):
    def __init__(self, messages: Sequence[Message]) -> None:
        self._messages = messages

    def __len__(self) -> int:
        return len(self._messages)

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: _Slice) -> Sequence[Message]: ...
    def __getitem__(self, index: int | _Slice) -> Message | Sequence[Message]:
        return self._messages[index]


async def reads_a_view(asked: Asked) -> None:
    request = asked.case.build()
    has_text(
        await asked.complete(attrs.evolve(request, messages=_View(request.messages)))
    )


async def answers_several_at_once(asked: Asked) -> None:
    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(asked.require_answer)


async def serves_turns(asked: Asked) -> None:
    harness, prompt = asked.harness, asked.case.prompt
    texts = [await harness.turn(prompt), await harness.turn(prompt)]
    roles = harness.memory.roles
    require(all(texts), f"The turns answered {texts!r:.300}")
    require(roles == ["user", "assistant"] * 2, f"Stored are the roles {roles}")


# -- the calls of its answers


def calls_tools(response: ChatResponse) -> None:
    require(response.tool_calls, f"The answer is {response!r:.300}")
    require(
        response.finish_reason == "tool_calls",
        f"The reason is {response.finish_reason!r}",
    )


def has_ids(response: ChatResponse) -> None:
    ids = [call.id for call in response.tool_calls or ()]
    require(ids and all(ids) and len(set(ids)) == len(ids), f"The ids are {ids}")


async def calls_what_is_offered(asked: Asked) -> None:
    offered = {tool.name for tool in asked.case.build().tools or ()}
    skip_unless(offered, "the sample 'calls' offers no tools")
    names = [call.name for call in (await asked.complete()).tool_calls or ()]
    require(set(names) <= offered, f"Called are {names}, offered {sorted(offered)}")


def has_readable_arguments(response: ChatResponse) -> None:
    for call in response.tool_calls or ():
        require(
            call.problem is None,
            f"The arguments of {call.name!r} have a problem: {call.problem}",
        )
        json.dumps(
            expect(call.arguments, dict, "The arguments of a call"), allow_nan=False
        )


async def reads_its_own_calls(asked: Asked) -> None:
    response = await asked.complete()
    calls = asked.provider.parse_tool_calls(response)
    require(list(calls) == list(response.tool_calls or ()), f"Read were {calls!r:.300}")


def keeps_unreadable_arguments(response: ChatResponse) -> None:
    calls = list(response.tool_calls or ())
    require(calls, f"The answer is {response!r:.300}")
    for call in calls:
        is_kept = bool(call.problem) and bool(call.raw_arguments) and not call.arguments
        require(
            is_kept,
            f"problem is {call.problem!r}, raw_arguments {call.raw_arguments!r:.200}",
        )


def is_cut(response: ChatResponse) -> None:
    cut = response.finish_reason == "length" and not response.is_complete
    require(cut, f"The reason is {response.finish_reason}")


def calls_nothing(response: ChatResponse) -> None:
    require(not response.tool_calls, f"The turn would run {response.tool_calls!r:.300}")


# -- its errors


def names_the_provider(error: LLMError) -> None:
    require(error.provider, f"{type(error).__name__} names no provider: {error}")


def says_what_happened(error: LLMError) -> None:
    require(
        str(error).strip() and isinstance(error.retryable, bool),
        f"{type(error).__name__}: {error}",
    )
    plain = error.status_code is None or isinstance(error.status_code, int)
    require(plain, f"The status code is {error.status_code!r}")


async def hides_secrets(asked: Asked) -> None:
    if asked.case.config is None:
        config = asked.harness.subject.config
    else:
        config = asked.case.config
    secrets = [
        v
        for k, v in config.items()
        if isinstance(v, str) and len(v) > 3 and ("key" in k or "token" in k)
    ]
    skip_unless(secrets, "its configuration holds no key or token")
    returned = await answer_or_refusal(asked.provider, asked.case.build())
    text = str(expect(returned, LLMError, "What complete raises"))
    require(not any(secret in text for secret in secrets), "The error repeats a secret")


async def answers_after_an_error(asked: Asked) -> None:
    if not isinstance(
        await answer_or_refusal(asked.provider, asked.case.build()), LLMError
    ):
        raise BehaviorFailed("The request of the sample 'fails' was answered")
    has_text(await asked.complete(case_of(asked.harness.subject, "talks").build()))


# -- its streams


def ends_with_one_answer(streamed: Streamed) -> None:
    require(streamed.count == 1, f"Of the items {streamed.count} are whole answers")


def has_deltas(streamed: Streamed) -> None:
    require(streamed.deltas, "Nothing came before the whole answer")
    for delta in streamed.deltas:
        expect(delta, (TextDelta, ThinkingDelta, ToolCallDelta), "A delta")


def streams_its_text(streamed: Streamed) -> None:
    text = "".join(
        delta.text for delta in streamed.deltas if isinstance(delta, TextDelta)
    )
    wanted = streamed.response.text
    require(
        text == wanted, f"Streamed was {text!r:.200}, the answer is {wanted!r:.200}"
    )


def streams_its_thinking(streamed: Streamed) -> None:
    text = "".join(
        delta.text for delta in streamed.deltas if isinstance(delta, ThinkingDelta)
    )
    thought = streamed.response.thinking
    require(
        thought and text == thought,
        f"Streamed was {text!r:.200}, the answer thinks {thought!r:.200}",
    )


def streams_its_calls(streamed: Streamed) -> None:
    pieces: dict[str, list[ToolCallDelta]] = {}
    for delta in streamed.deltas:
        if isinstance(delta, ToolCallDelta):
            pieces.setdefault(delta.id, []).append(delta)
    for call in streamed.response.tool_calls or ():
        parts = pieces.pop(call.id, [])
        require(
            parts and {part.name for part in parts} == {call.name},
            f"Of {call.name!r} was streamed {parts!r:.300}",
        )
        read = read_arguments("".join(part.arguments for part in parts))
        require(
            read.values == call.arguments,
            f"Streamed was {read!r:.200}; called with {call.arguments!r:.200}",
        )
    require(
        not pieces, f"Streamed were calls that the answer does not have: {list(pieces)}"
    )


def streams_in_order(streamed: Streamed) -> None:
    indexes = [delta.index for delta in streamed.deltas]
    require(indexes == sorted(indexes), f"The indexes are {indexes}")


def are_alike(answers: tuple[ChatResponse, ChatResponse]) -> None:
    kinds = [
        [type(block).__name__ for block in response.content] for response in answers
    ]
    completed, streamed = (response.finish_reason for response in answers)
    same = kinds[0] == kinds[1] and completed == streamed
    require(
        same, f"complete gives {kinds[0]} ({completed}), stream {kinds[1]} ({streamed})"
    )


async def streams_into_a_turn(asked: Asked) -> None:
    skip_unless(asked.stream, "it does not stream")
    async with asked.harness.session.stream(asked.case.prompt) as events:
        seen = [event async for event in events]
    text = "".join(event.text for event in seen if isinstance(event, TextDelta))
    require(
        text == expect(seen[-1], TurnFinished, "The last event").text,
        f"Seen was {text!r:.300}",
    )


async def fails_when_it_streams(asked: Asked) -> None:
    try:
        async with asked.stream(asked.case.build()) as items:
            async for _ in items:
                pass
    except LLMError as error:
        names_the_provider(error)
        return
    raise BehaviorFailed("The stream of the sample 'fails' raised nothing")


async def may_be_left(asked: Asked) -> None:
    with ends_in_time("The stream", "its reader had left"):
        async with asked.stream(asked.case.build()) as items:
            async for _ in items:
                break
    await asked.require_answer()


async def ends_when_its_stream_is_cancelled(asked: Asked) -> None:
    stream, began = asked.stream, anyio.Event()

    async def read() -> None:
        async with stream(asked.case.build()) as items:
            async for _ in items:
                began.set()
                await anyio.sleep_forever()

    await _cancelled(asked, read, began)


async def ends_when_its_request_is_cancelled(asked: Asked) -> None:
    began = anyio.Event()

    async def complete() -> None:
        began.set()
        await asked.complete()

    await _cancelled(asked, complete, began)


async def _cancelled(
    asked: Asked,
    work: Callable[[], Coroutine[object, object, None]],
    began: anyio.Event,
) -> None:
    """Run something until it has begun, cancel it, and ask once more."""
    await cancel_when(began.wait, work, "The request")
    await asked.require_answer()


async def ends_in_silence(asked: Asked) -> None:
    before = Leftovers.baseline()
    # long enough for the request to be on its way
    with ends_in_time("The request", "it was cancelled"), anyio.move_on_after(0.1):
        await asked.complete()
    # connections of a client that is pooled may stay open
    left = [thing for thing in await settle(before) if thing.startswith("the task")]
    require(not left, f"Left are {', '.join(left)}")
