"""What a provider answers, and what it raises instead."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final, TypeAlias, get_args, overload

import anyio
import attrs

from amplifier.validation.behaviors._parts import Worker
from amplifier.validation.behaviors._stage import Setting, Stage, open_stage, skip_unless
from amplifier.validation.behaviors.behavior import BehaviorFailed, NotApplicable, Suite, expect, require
from amplifier.validation.behaviors.subject import Case, ProviderSamples, Subject
from amplifier_sdk.chat import ChatRequest, ChatResponse, FinishReason, Usage
from amplifier_sdk.content import (
    ContentBlock,
    ImageBlock,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    VendorBlock,
)
from amplifier_sdk.convert import to_json
from amplifier_sdk.errors import LLMError
from amplifier_sdk.messages import Message

PROVIDER: Final = Suite("provider")

_Slice: TypeAlias = "slice[int | None, int | None, int | None]"
_REASONS: Final = frozenset(get_args(FinishReason))


def talking(subject: Subject) -> Case:
    """Return the case in which the provider answers with text."""
    return subject.told(ProviderSamples).talks


def given(case: Case | None, name: str) -> Case:
    """Return a case that the author may have given.

    Raises:
        NotApplicable: they have not.
    """
    if case is None:
        raise NotApplicable(f"no sample {name!r} is given")
    return case


def setting_of(case: Case, subject: Subject) -> Setting:
    """Configure the module for a case."""
    return Setting(config=subject.config if case.config is None else case.config)


async def ask(subject: Subject, case: Case, *messages: Message) -> ChatResponse:
    """Ask the provider once, in a session of its own."""
    async with open_stage(subject, setting_of(case, subject)) as stage:
        return expect(await stage.provider.complete(case.build(*messages)), ChatResponse, "What complete returns")


@PROVIDER.behavior(fix="Return a ChatResponse with a text block from complete.")
async def answers_with_text(subject: Subject) -> None:
    """A plain request is answered with text."""
    response = await ask(subject, talking(subject))
    require(response.text, f"The answer is {response!r:.300}")


@PROVIDER.behavior(fix="Map the vendor's reason to one of stop, tool_calls, length, content_filter, error.")
async def says_why_it_stopped(subject: Subject) -> None:
    """An answer says why it ended, in one of the contract's words."""
    response = await ask(subject, talking(subject))
    require(response.finish_reason in _REASONS, f"The reason is {response.finish_reason!r}")


@PROVIDER.behavior(fix="Give the reason 'stop' to an answer that is whole and calls nothing.")
async def ends_a_plain_answer_as_whole(subject: Subject) -> None:
    """A plain answer is complete and calls no tool."""
    response = await ask(subject, talking(subject))
    require(response.is_complete and not response.tool_calls, f"The reason is {response.finish_reason!r}")


@PROVIDER.behavior(fix="Fill in Usage from what the vendor reports.")
async def counts_what_it_used(subject: Subject) -> None:
    """An answer says how many tokens it used."""
    usage = expect((await ask(subject, talking(subject))).usage, Usage, "The answer's usage")
    counts = (usage.input_tokens, usage.output_tokens, usage.total_tokens)
    require(min(counts) >= 0, f"The counts are {counts}")


@PROVIDER.behavior(fix="Let total_tokens be at least the sum of input_tokens and output_tokens.")
async def adds_up_what_it_used(subject: Subject) -> None:
    """The total of tokens is at least what was read and written."""
    usage = expect((await ask(subject, talking(subject))).usage, Usage, "The answer's usage")
    total, parts = usage.total_tokens, usage.input_tokens + usage.output_tokens
    require(total >= parts, f"The total is {total}, the parts are {parts}")


@PROVIDER.behavior(fix="Keep to plain data in answers: vendor objects belong nowhere in them.")
async def answers_with_plain_data(subject: Subject) -> None:
    """An answer can be written as JSON."""
    json.dumps(to_json(await ask(subject, talking(subject))), allow_nan=False)


@PROVIDER.behavior(fix="Keep to the content blocks of the SDK; what is new becomes a VendorBlock.")
async def answers_with_what_can_be_stored(subject: Subject) -> None:
    """An answer can be stored as a message and read again with the same text."""
    response = await ask(subject, talking(subject))
    stored = json.loads(json.dumps(response.to_message()))
    require(Message.from_dict(stored).text == response.text, f"Read again is {stored!r:.300}")


@PROVIDER.behavior(fix="Copy what is to be changed: messages, schemas and metadata belong to the caller.")
async def leaves_the_request_alone(subject: Subject) -> None:
    """A request is the same after it was answered as before."""
    case = talking(subject)
    async with open_stage(subject, setting_of(case, subject)) as stage:
        request = attrs.evolve(case.build(*_history()), metadata={"tags": ["a"]}, extras={"vendor": {"x": [1]}})
        before = to_json(request)
        await _answer_or_refusal(stage, request)
    require(to_json(request) == before, "The request was changed")


def _history() -> list[Message]:
    """Return a conversation with everything that a history may hold."""
    return [
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
    ]


async def _answer_or_refusal(stage: Stage, request: ChatRequest) -> None:
    """Ask; a provider that cannot take the request says so with an LLMError."""
    try:
        expect(await stage.provider.complete(request), ChatResponse, "What complete returns")
    except LLMError:
        return


async def _reads(subject: Subject, *messages: Message) -> None:
    case = talking(subject)
    async with open_stage(subject, setting_of(case, subject)) as stage:
        await _answer_or_refusal(stage, case.build(*messages))


@PROVIDER.behavior(fix="Translate every role: system, developer, user, assistant and tool.")
async def reads_a_history_with_tool_calls(subject: Subject) -> None:
    """A history with instructions, tool calls and results is read."""
    case = talking(subject)
    async with open_stage(subject, setting_of(case, subject)) as stage:
        expect(await stage.provider.complete(case.build(*_history())), ChatResponse, "What complete returns")


@PROVIDER.behavior(fix="Send developer messages as the vendor has them, as system messages where it has none.")
async def reads_developer_messages(subject: Subject) -> None:
    """A message of the role developer is read."""
    case = talking(subject)
    async with open_stage(subject, setting_of(case, subject)) as stage:
        request = case.build(Message(role="developer", content="Answer briefly."))
        expect(await stage.provider.complete(request), ChatResponse, "What complete returns")


@PROVIDER.behavior(fix="Leave out blocks of other vendors, or refuse them with an LLMError.")
async def survives_unknown_blocks(subject: Subject) -> None:
    """Blocks of other vendors in the history, encrypted thinking among them, do not break it."""
    encrypted, foreign = RedactedThinkingBlock(data="Emw=="), VendorBlock(type="other_vendor", extras={"x": 1})
    blocks: list[ContentBlock] = [encrypted, foreign]
    await _reads(subject, Message(role="user", content="Hi."), Message(role="assistant", content=blocks))


@PROVIDER.behavior(fix="Refuse images with InvalidRequestError when the model cannot see.")
async def survives_images(subject: Subject) -> None:
    """An image in the history does not break it."""
    source = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
    await _reads(subject, Message(role="user", content=[ImageBlock(source=source), TextBlock(text="What is this?")]))


@PROVIDER.behavior(fix="Send a message without content as the vendor allows, or leave it out.")
async def survives_empty_messages(subject: Subject) -> None:
    """Messages without content in the history do not break it."""
    await _reads(subject, Message(role="user", content=""), Message(role="assistant", content=()))


@PROVIDER.behavior(fix="Encode requests so that lone surrogates are replaced, or refuse them with an LLMError.")
async def survives_broken_characters(subject: Subject) -> None:
    """Half of a surrogate pair, NUL and control characters in the history do not break it."""
    await _reads(subject, Message(role="user", content="broken \ud83d text \x00 \x1b[31m"))


@PROVIDER.behavior(fix="Write no-tools and an empty list of tools alike.")
async def reads_a_request_with_an_empty_list_of_tools(subject: Subject) -> None:
    """An empty list of tools is like none."""
    case = talking(subject)
    async with open_stage(subject, setting_of(case, subject)) as stage:
        response = await stage.provider.complete(attrs.evolve(case.build(), tools=[]))
    require(response.text and not response.tool_calls, f"The answer is {response!r:.300}")


class _View(Sequence[Message]):
    """Messages that are no list: what the kernel hands to providers."""

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


@PROVIDER.behavior(fix="Read request.messages as a sequence: walk it, do not add to it or write it as it is.")
async def reads_messages_from_a_view(subject: Subject) -> None:
    """Messages may be any sequence, not only a list."""
    case = talking(subject)
    async with open_stage(subject, setting_of(case, subject)) as stage:
        request = case.build()
        response = await stage.provider.complete(attrs.evolve(request, messages=_View(request.messages)))
    require(response.text, f"The answer is {response!r:.300}")


@PROVIDER.behavior(fix="Keep nothing of a request in the provider.")
async def answers_again(subject: Subject) -> None:
    """A second request in the same session is answered like the first."""
    case = talking(subject)
    async with open_stage(subject, setting_of(case, subject)) as stage:
        for _ in range(2):
            response = await stage.provider.complete(case.build())
            require(response.text, f"The answer is {response!r:.300}")


@PROVIDER.behavior(fix="Keep what belongs to one request in local names; a client may be shared.")
async def answers_several_at_once(subject: Subject) -> None:
    """Three requests at once are each answered."""
    case = talking(subject)
    answers: list[str] = []
    async with open_stage(subject, setting_of(case, subject)) as stage:

        async def run() -> None:
            answers.append((await stage.provider.complete(case.build())).text)

        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(run)
    require(len(answers) == 3 and all(answers), f"The answers are {answers!r:.300}")


@PROVIDER.behavior(fix="Answer a session's request with a ChatResponse that the loop can end its turn with.")
async def serves_turns(subject: Subject) -> None:
    """In a session it answers one turn after the other."""
    case = talking(subject)
    async with open_stage(subject, setting_of(case, subject)) as stage:
        texts = [await stage.turn(case.prompt), await stage.turn(case.prompt)]
        stored = [message["role"] for message in stage.memory.messages]
    require(all(texts), f"The turns answered {texts!r:.300}")
    require(stored == ["user", "assistant"] * 2, f"Stored are the roles {stored}")


# -- calls


@PROVIDER.behavior(fix="Read the vendor's calls into ChatResponse.tool_calls and end with the reason 'tool_calls'.")
async def calls_tools(subject: Subject) -> None:
    """When the model calls a tool the answer has the call and the reason tool_calls."""
    response = await ask(subject, given(subject.told(ProviderSamples).calls, "calls"))
    require(response.tool_calls, f"The answer is {response!r:.300}")
    require(response.finish_reason == "tool_calls", f"The reason is {response.finish_reason!r}")


@PROVIDER.behavior(fix="Take the vendor's ids, or make unique ones where it gives none.")
async def gives_every_call_an_id(subject: Subject) -> None:
    """Every call has an id, which no other call of the answer has."""
    response = await ask(subject, given(subject.told(ProviderSamples).calls, "calls"))
    ids = [call.id for call in response.tool_calls or ()]
    require(ids and all(ids) and len(set(ids)) == len(ids), f"The ids are {ids}")


@PROVIDER.behavior(fix="Call only what the request offers.")
async def calls_what_is_offered(subject: Subject) -> None:
    """Every call names a tool that the request offers."""
    case = given(subject.told(ProviderSamples).calls, "calls")
    offered = {tool.name for tool in case.build().tools or ()}
    skip_unless(offered, "the sample 'calls' offers no tools")
    names = [call.name for call in (await ask(subject, case)).tool_calls or ()]
    require(set(names) <= offered, f"Called are {names}, offered {sorted(offered)}")


@PROVIDER.behavior(fix="Read argument texts with amplifier_sdk.arguments.read_arguments.")
async def reads_the_arguments_of_calls(subject: Subject) -> None:
    """Arguments that can be read are an object of plain JSON."""
    response = await ask(subject, given(subject.told(ProviderSamples).calls, "calls"))
    for call in response.tool_calls or ():
        require(call.problem is None, f"The arguments of {call.name!r} have a problem: {call.problem}")
        json.dumps(expect(call.arguments, dict, "The arguments of a call"), allow_nan=False)


@PROVIDER.behavior(fix="Return from parse_tool_calls what the answer's tool_calls are.")
async def reads_its_own_calls(subject: Subject) -> None:
    """What parse_tool_calls reads from its answer are the calls of the answer."""
    case = given(subject.told(ProviderSamples).calls, "calls")
    async with open_stage(subject, setting_of(case, subject)) as stage:
        response = await stage.provider.complete(case.build())
        calls = stage.provider.parse_tool_calls(response)
    require(list(calls) == list(response.tool_calls or ()), f"Read were {calls!r:.300}")


@PROVIDER.behavior(fix="Put unreadable text into raw_arguments and what is wrong into problem: read_arguments tells.")
async def keeps_unreadable_arguments(subject: Subject) -> None:
    """Arguments that cannot be read are kept as text, with what is wrong, and never become an empty object alone."""
    response = await ask(subject, given(subject.told(ProviderSamples).garbles, "garbles"))
    calls = list(response.tool_calls or ())
    require(calls, f"The answer is {response!r:.300}")
    for call in calls:
        told = bool(call.problem) and bool(call.raw_arguments) and not call.arguments
        require(told, f"problem is {call.problem!r}, raw_arguments {call.raw_arguments!r:.200}")


@PROVIDER.behavior(fix="Give the reason 'length' to an answer that the limit of tokens cut off.")
async def says_that_an_answer_is_cut(subject: Subject) -> None:
    """An answer that was cut at the limit of tokens is not complete and says 'length'."""
    response = await ask(subject, given(subject.told(ProviderSamples).is_cut, "is_cut"))
    require(response.finish_reason == "length" and not response.is_complete, f"The reason is {response.finish_reason}")


@PROVIDER.behavior(fix="Give the reason 'length' to an answer that the limit of tokens cut off: nothing of it is run.")
async def lets_nothing_of_a_cut_answer_run(subject: Subject) -> None:
    """In a turn no tool runs from an answer that was cut."""
    case = given(subject.told(ProviderSamples).is_cut, "is_cut")
    tools = tuple(Worker(name=tool.name, input_schema={"type": "object"}) for tool in case.build().tools or ())
    async with open_stage(subject, attrs.evolve(setting_of(case, subject), tools=tools)) as stage:
        host, request = stage.coordinator.host, case.build()
        await stage.context.add_message({"role": "user", "content": case.prompt})
        response = await host.complete(
            stage.provider, lambda *, messages: attrs.evolve(request, messages=messages), context=stage.context
        )
    require(not response.tool_calls, f"The turn would run {response.tool_calls!r:.300}")


# -- errors


async def _failure(subject: Subject) -> LLMError:
    """Return what the provider raises when the vendor refuses."""
    case = given(subject.told(ProviderSamples).fails, "fails")
    async with open_stage(subject, setting_of(case, subject)) as stage:
        try:
            response = await stage.provider.complete(case.build())
        except Exception as error:  # foreign code: what it raises is looked at
            return expect(error, LLMError, "What complete raises")
    raise BehaviorFailed(f"Instead of an error there was the answer {response!r:.300}")


@PROVIDER.behavior(fix="Map what the vendor's library raises to the LLMError family, with 'raise … from error'.")
async def fails_with_an_llm_error(subject: Subject) -> None:
    """When the vendor refuses an LLMError is raised."""
    await _failure(subject)


@PROVIDER.behavior(fix="Give every LLMError the provider's name.")
async def names_itself_in_errors(subject: Subject) -> None:
    """An error names the provider it comes from."""
    error = await _failure(subject)
    require(error.provider, f"{type(error).__name__} names no provider: {error}")


@PROVIDER.behavior(fix="Say in the message what happened.")
async def says_what_went_wrong(subject: Subject) -> None:
    """An error says what happened, and whether trying again may help."""
    error = await _failure(subject)
    require(str(error).strip() and isinstance(error.retryable, bool), f"{type(error).__name__}: {error}")
    plain = error.status_code is None or isinstance(error.status_code, int)
    require(plain, f"The status code is {error.status_code!r}")


@PROVIDER.behavior(fix="Keep keys and headers out of error messages.")
async def hides_secrets_from_its_errors(subject: Subject) -> None:
    """An error does not repeat a secret of the configuration."""
    case = given(subject.told(ProviderSamples).fails, "fails")
    config = subject.config if case.config is None else case.config
    secrets = [v for k, v in config.items() if isinstance(v, str) and len(v) > 3 and ("key" in k or "token" in k)]
    skip_unless(secrets, "its configuration holds no key or token")
    text = str(await _failure(subject))
    require(not any(secret in text for secret in secrets), "The error repeats a secret")


@PROVIDER.behavior(fix="Keep nothing of a failed request.")
async def answers_after_an_error(subject: Subject) -> None:
    """After a request that failed the next one is answered."""
    case = given(subject.told(ProviderSamples).fails, "fails")
    async with open_stage(subject, setting_of(case, subject)) as stage:
        try:
            await stage.provider.complete(case.build())
        except LLMError:
            response = await stage.provider.complete(talking(subject).build())
            require(response.text, f"The answer is {response!r:.300}")
            return
    raise BehaviorFailed("The request of the sample 'fails' was answered")
