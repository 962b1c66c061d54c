"""What a provider answers, and what it raises instead."""

from __future__ import annotations

import json
from typing import Final, get_args

from amplifier.validation.behaviors._stage import Setting, open_stage
from amplifier.validation.behaviors.behavior import NotApplicable, Suite, expect, require
from amplifier.validation.behaviors.subject import Case, ProviderSamples, Subject
from amplifier_sdk.chat import ChatResponse, FinishReason, Usage
from amplifier_sdk.convert import to_json
from amplifier_sdk.messages import Message

PROVIDER: Final = Suite("provider")

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
