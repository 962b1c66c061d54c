"""What a person reads of a question that waits, and how what they type becomes its answer."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

import click

from amplifier.app.questions.answer_commands import SHOWN_ID, answer_command
from amplifier.cli._terminal import notice, one_line

if TYPE_CHECKING:
    from amplifier_sdk.jsontypes import JSONObject, JSONValue
    from amplifier_sdk.stores import StoredQuestion

__all__ = ["SHOWN_ID", "answer_from", "report_question", "value_from"]

_ALLOWS: Final = "allow"


def report_question(event: JSONObject) -> None:
    """Report what becomes of a question, and the command that answers it."""
    id_ = str(event["approval_id"])[:SHOWN_ID]
    match event["type"]:
        case "approval_requested":
            notice(f"question {id_} waits: {one_line(str(event['prompt']), 200)}")
            command = answer_command(id_, is_approval="schema" not in event)
            notice(f"{command} continues the turn")
        case "approval_answered":
            notice(f"question {id_} was answered {one_line(str(event['option']), 200)}")
        case _:
            notice(f"question {id_} was withdrawn")


def answer_from(question: StoredQuestion, text: str | None) -> str:
    """Return what a person typed as stores have it; `None` declines what a tool asks.

    Raises:
        click.UsageError: it is no answer to the question.
    """
    from amplifier_sdk.person_questions import answer_text  # with the runtime

    if question.schema is not None:
        return answer_text(None if text is None else value_from(question.schema, text))
    if text is None:
        raise click.UsageError("--decline is for what a tool asks; use deny")
    chosen = _option(question.options, text)
    if chosen is None:
        known = ", ".join(map(repr, question.options))
        raise click.UsageError(f"{text!r:.80} is none of {known}")
    return chosen


def _option(options: Iterable[str], text: str) -> str | None:
    """Return the option that a text means: its own, or the one that begins so; `allow` allows once."""
    word = text.strip().casefold()
    named = {option.strip().casefold(): option for option in options}
    if word in named:
        return named[word]
    begun = [option for name, option in named.items() if word and name.startswith(word)]
    once = named.get(f"{_ALLOWS} once")
    if word == _ALLOWS and once is not None:
        return once
    return begun[0] if len(begun) == 1 else None


def value_from(schema: Mapping[str, JSONValue], text: str) -> JSONValue:
    """Return the value of a schema that a text means: a choice, a text, or JSON.

    Raises:
        click.UsageError: it does not fit.
    """
    from amplifier_sdk.person_questions import choices_of, misfit_of

    choices = choices_of(schema)
    chosen = _option(choices, text)
    value: JSONValue = text
    if chosen is not None:
        value = choices[chosen]
    elif schema.get("type") != "string" and not choices:
        try:
            value = json.loads(text)
        except ValueError as error:
            reason = f"the answer is JSON of {json.dumps(dict(schema))}: {error}"
            raise click.UsageError(reason) from error
    problem = misfit_of(schema, value)
    if problem is not None:
        raise click.UsageError(f"the answer does not fit: {problem}")
    return value
