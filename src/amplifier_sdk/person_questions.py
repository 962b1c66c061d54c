"""What a running tool asks a person: a text, a choice or a form, told apart by the schema of the answer.

A tool asks with `ToolContext.ask`. Whoever asks people for a session, its approval system or an approval provider, may
be a `QuestionProvider` as well; one that is not is asked what has a few answers, as it is asked to approve.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final, NoReturn, Protocol, runtime_checkable

import attrs

from amplifier_sdk.bounds import seconds
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = [
    "PersonQuestion",
    "QuestionProvider",
    "StoredQuestionProvider",
    "answer_of",
    "answer_schema",
    "answer_text",
    "choices_of",
    "misfit_of",
]

_TEXT: Final[Mapping[str, JSONValue]] = {"type": "string"}
_MAX_SCHEMA: Final = 20_000
_MAX_ANSWER: Final = 100_000


@attrs.frozen(kw_only=True)
class PersonQuestion:
    """What a running tool call asks a person.

    Args:
        tool_name: the tool.
        prompt: all that the person reads.
        schema: the JSON Schema of the answer.
        details: the call, who made it, and the tool's own words; JSON data where the asker has it so.
        timeout: seconds to wait for an answer; `None` means as long as it takes.
        is_repeatable: whether the call may be left while the person thinks, since it can run again from its beginning.
    """

    tool_name: str
    prompt: str
    schema: Mapping[str, JSONValue] = attrs.field(factory=lambda: _TEXT)
    details: Mapping[str, object] = attrs.field(factory=dict)
    timeout: float | None = attrs.field(
        default=None, validator=attrs.validators.optional(seconds)
    )
    is_repeatable: bool = False


@runtime_checkable
class QuestionProvider(Protocol):
    """Asks a person what a tool wants to know."""

    async def ask_person(self, question: PersonQuestion, /) -> JSONValue:
        """Return the answer, as the question's schema has it; `None` where the person declined.

        Raises:
            ApprovalTimeoutError: nobody answered in time.
            ApprovalUnavailableError: nobody can be asked; the message says why.
            ApprovalPendingError: the question is stored and its answer comes later; for a `StoredQuestionProvider`.
        """


@runtime_checkable
class StoredQuestionProvider(QuestionProvider, Protocol):
    """Stores what a tool wants to know, and its answer comes later.

    The turn of a call that can be repeated is suspended until then; any other call waits in `wait_for_person`.
    """

    async def wait_for_person(self, question: PersonQuestion, /) -> JSONValue:
        """Return the answer to a question that is stored, once it is there.

        Raises:
            ApprovalTimeoutError: it takes no answer any more.
        """


def answer_schema(
    options: Sequence[str], schema: Mapping[str, JSONValue] | None
) -> Mapping[str, JSONValue]:
    """Return the schema of an answer: one of `options`, what `schema` says, or a text.

    Raises:
        ValueError: both are given, the schema is not valid, or it is longer than a person would answer.
    """
    if schema is None:
        return {**_TEXT, "enum": [*options]} if options else _TEXT
    if options:
        raise ValueError("name the options or a schema of the answer, not both")
    if len(json.dumps(schema, default=repr)) > _MAX_SCHEMA:
        raise ValueError(f"its schema is longer than {_MAX_SCHEMA} characters")
    misfit_of(schema, None)
    return schema


def choices_of(schema: Mapping[str, JSONValue]) -> Mapping[str, JSONValue]:
    """Return the answers that a schema has by what a person chooses; none where they have to write."""
    if schema.get("type") == "boolean":
        return {"Yes": True, "No": False}
    listed = schema.get("enum")
    if not isinstance(listed, Sequence) or isinstance(listed, str):
        return {}
    names = {each: each for each in listed if isinstance(each, str)}
    return names if len(names) == len(listed) else {}


def misfit_of(schema: Mapping[str, JSONValue], answer: JSONValue) -> str | None:
    """Say what of an answer does not fit its schema; `None` where it fits, or is the `None` of who declined.

    Raises:
        ValueError: the schema is not valid.
    """
    from amplifier_sdk.arguments import ArgumentSchema  # few tools ask

    inner = {key: value for key, value in schema.items() if key != "$defs"}
    wrapped: JSONObject = {
        "type": "object",
        "properties": {"answer": inner},
        "required": ["answer"],
    }
    if "$defs" in schema:  # where references look for them
        wrapped["$defs"] = schema["$defs"]
    checked = ArgumentSchema(wrapped, "answer")
    checked.compile()
    if answer is None:
        return None
    problem = checked.problem({"answer": answer})
    if problem is None:
        return None
    # its first line speaks of a tool's arguments
    return "; ".join(line.strip("- ") for line in problem.splitlines()[1:]) or problem


def answer_text(answer: JSONValue) -> str:
    """Write an answer as stores have it: the same one has the same text."""
    shape = (",", ":")
    text = json.dumps(answer, ensure_ascii=False, sort_keys=True, separators=shape)
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a pair, which no store takes
        return json.dumps(answer, sort_keys=True, separators=shape)
    return text


def answer_of(text: str) -> JSONValue:
    """Read an answer that stores have.

    Raises:
        ValueError: it is none, or longer than a person's.
    """
    if len(text) > _MAX_ANSWER:
        raise ValueError(f"it is longer than {_MAX_ANSWER} characters")
    try:
        read: JSONValue = json.loads(text, parse_constant=_refuse)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    return read


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")
