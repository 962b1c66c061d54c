"""How a model is asked for an answer of a schema: by the vendor's mode, by a tool that it has to call, or in words.

Whichever it is, the loop sees an answer of text, which is the JSON object.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Final, Literal, TypeAlias, cast, get_args

import attrs

from amplifier_sdk.chat import ChatRequest, ChatResponse, ToolCall, ToolSpec
from amplifier_sdk.content import TextBlock, ToolCallBlock
from amplifier_sdk.contracts import Provider
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.messages import Message

__all__ = ["ANSWER_TOOL", "OutputRequest", "OutputStrategy"]

OutputStrategy: TypeAlias = Literal["schema", "tool", "text"]
"""`schema` is the vendor's own mode, `tool` one that the model has to call, `text` a request in words."""

ANSWER_TOOL: Final = "final_answer"
"""What the tool is called that takes the answer; of a session that has one of that name, with an underscore more."""

_ORDER: Final = get_args(OutputStrategy)
_DESCRIPTION: Final = (
    "Gives the final answer. Call it alone, when all other work is done."
)
_IN_WORDS: Final = """Answer with nothing but a JSON object of this JSON Schema:

{schema}"""


@attrs.define(eq=False)
class OutputRequest:
    """What the answers of one turn have to be, and the ways to ask for that which are left, the best one first."""

    name: str
    schema: JSONObject
    strategies: list[OutputStrategy]

    @classmethod
    def of(
        cls,
        metadata: Mapping[str, JSONValue],
        providers: Iterable[Provider],
        *,
        has_tools: bool,
    ) -> OutputRequest | None:
        """Read what an application wants of a turn.

        Args:
            metadata: the turn's: `response_format` is the form, `output_mode` the first strategy, `auto` for the best
                one that all providers say they have; default `schema`.
            providers: whom the turn may ask.
            has_tools: whether the model has tools besides.
        """
        form = metadata.get("response_format")
        if not isinstance(form, Mapping) or form.get("type") != "json_schema":
            return None
        able = [set(provider.get_info().capabilities) for provider in providers]
        has = {
            "schema": all(_writes_schemas(each, has_tools=has_tools) for each in able),
            "tool": all("tools" in each for each in able),
            "text": True,
        }
        mode = metadata.get("output_mode", "schema")
        # what is asked for by name is tried whatever a provider says of itself
        left = [each for each in _ORDER if has[each] or each == mode]
        first = left.index(cast("OutputStrategy", mode)) if mode in left else 0
        name, schema = form.get("name"), form.get("schema")
        return cls(
            name if isinstance(name, str) else "answer",
            schema if isinstance(schema, dict) else {},
            left[first:],
        )

    @property
    def strategy(self) -> OutputStrategy:
        """The way that is used now."""
        return self.strategies[0]

    def asked(
        self, request: partial[ChatRequest], specs: Sequence[ToolSpec]
    ) -> partial[ChatRequest]:
        """Return what builds the request with the wish for such an answer.

        Args:
            request: what builds it without.
            specs: the tools that the model has besides.
        """
        if self.strategy == "schema":
            form = {"type": "json_schema", "name": self.name, "schema": self.schema}
            return partial(request, response_format=form)
        if self.strategy == "text":
            schema = json.dumps(self.schema, ensure_ascii=False)
            return partial(_with_words, request, _IN_WORDS.format(schema=schema))
        name = _tool_name(specs)
        spec = ToolSpec(name=name, description=_DESCRIPTION, parameters=self.schema)
        return partial(
            request,
            tools=(*specs, spec),
            # with others it may call those first, until it has what it needs
            tool_choice="required" if specs else {"type": "tool", "name": name},
        )

    def read(self, response: ChatResponse, specs: Sequence[ToolSpec]) -> ChatResponse:
        """Return an answer as the loop sees it: what the model gave to the tool is its text."""
        if self.strategy != "tool" or not response.tool_calls:
            return response
        name = _tool_name(specs)
        given = [call for call in response.tool_calls if call.name == name]
        others = [call for call in response.tool_calls if call.name != name]
        # other calls come first: the loop runs them, and the next answer may have it
        if not given:
            return response
        if others:
            # an answer that was made before the others' results were there
            return _without(response, given, others)
        # thinking stays: the vendor wants it back with the next request
        content = [
            block
            for block in response.content
            if not isinstance(block, (TextBlock, ToolCallBlock))
        ]
        return attrs.evolve(
            response,
            content=(*content, TextBlock(text=_text_of(given[0]))),
            tool_calls=None,
            finish_reason="stop",
        )


def _writes_schemas(capabilities: set[str], *, has_tools: bool) -> bool:
    """Whether a provider writes answers of a schema; those that say `json_mode` do so where there are no tools."""
    return "json_schema" in capabilities or (
        "json_mode" in capabilities and not has_tools
    )


def _tool_name(specs: Sequence[ToolSpec]) -> str:
    name, taken = ANSWER_TOOL, {spec.name for spec in specs}
    # a tool of the session keeps its name
    while name in taken:
        name += "_"
    return name


def _text_of(call: ToolCall) -> str:
    if call.problem is not None and call.raw_arguments is not None:
        return call.raw_arguments  # whoever reads the answer says what is wrong with it
    return json.dumps(call.arguments, ensure_ascii=False)


def _without(
    response: ChatResponse, calls: Sequence[ToolCall], left: Sequence[ToolCall]
) -> ChatResponse:
    ids = {call.id for call in calls}
    content = tuple(
        block
        for block in response.content
        if not isinstance(block, ToolCallBlock) or block.id not in ids
    )
    return attrs.evolve(response, content=content, tool_calls=tuple(left))


def _with_words(
    request: partial[ChatRequest],
    words: str,
    *,
    messages: Sequence[Message],
    model: str | None = None,
) -> ChatRequest:
    """Build a request that ends with words of the application."""
    asked = request(messages=[*messages, Message(role="system", content=words)])
    return asked if model is None else attrs.evolve(asked, model=model)
