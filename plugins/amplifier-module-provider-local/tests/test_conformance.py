"""The module has every behaviour of its type: all of them without the model, the telling ones with it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import ClassVar, Final

import anyio
import anyio.lowlevel
import attrs
import pytest

from amplifier.testing.conformance import (
    Case,
    ProviderBehaviorTests,
    ProviderSamples,
    Samples,
)
from amplifier.validation.behaviors import Subject, behaviors, check_behavior
from amplifier_module_provider_local import LocalConfig, LocalProvider
from amplifier_module_provider_local.wire import AnswerEnd, AnswerItem, Piece
from amplifier_sdk import provider
from amplifier_sdk.chat import Usage
from amplifier_sdk.jsontypes import JSONObject, JSONValue

CONFIG: Final[JSONObject] = {"max_output_tokens": 24, "n_ctx": 1024}
ADD: Final[JSONObject] = {
    "name": "add",
    "description": "Add two numbers.",
    "parameters": {
        "type": "object",
        "properties": {"a": {"enum": [2]}},
        "required": ["a"],
    },
}
LIST: Final[JSONObject] = {
    "type": "array",
    "items": {"type": "integer"},
    "minItems": 1000,
}
"""A grammar that keeps the model writing for half a minute."""


def _json(schema: JSONObject, **more: JSONValue) -> JSONObject:
    return {"response_format": {"type": "json_schema", "schema": schema}, **more}


SAMPLES: Final = ProviderSamples(
    talks=Case(prompt="Is water wet?", request=_json({"type": "boolean"})),
    calls=Case(
        prompt="Add 2 to it.",
        request={"tools": [ADD], "tool_choice": {"type": "tool", "name": "add"}},
    ),
    is_cut=Case(prompt="Count to a hundred.", request={"max_output_tokens": 2}),
    fails=Case(prompt="Hello.", request={"model": "no-such-model"}),
    waits=Case(prompt="Write a list.", request=_json(LIST, max_output_tokens=400)),
    bad_config={"threads": 0},
)


@attrs.frozen
class Wire:
    """Counts a token for each character."""

    async def tokenize(self, text: str) -> tuple[bytes, ...]:
        return tuple(character.encode("utf-8", "replace") for character in text)


@attrs.frozen
class Server:
    """A server that is always there."""

    wire: Wire = Wire()


class Engine:
    """Writes what the model would, without one."""

    async def ready(self) -> AsyncGenerator[Server, None]:
        await anyio.lowlevel.checkpoint()
        yield Server()

    async def answer(
        self, body: Mapping[str, JSONValue]
    ) -> AsyncGenerator[AnswerItem, None]:
        await anyio.lowlevel.checkpoint()
        if body["max_tokens"] == 400:
            await anyio.sleep_forever()
        for piece in (
            ('{"a"', ": 2}")
            if "response_format" in body and body["max_tokens"] != 2
            else ("tr", "ue")
        ):
            yield Piece(piece)
        usage = Usage(input_tokens=3, output_tokens=2, total_tokens=5)
        yield AnswerEnd(
            finish_reason="length" if body["max_tokens"] == 2 else "stop", usage=usage
        )

    async def aclose(self) -> None:
        """End nothing."""


@provider
class WithoutModel(LocalProvider):
    """The module without its process."""

    def __init__(self, config: LocalConfig) -> None:
        super().__init__(config)
        self._engine = Engine()  # type: ignore[assignment]  # all that the provider asks of one


class TestLocalProvider(ProviderBehaviorTests):
    """The whole suite."""

    module: ClassVar[object] = WithoutModel
    config: ClassVar[Mapping[str, JSONValue]] = CONFIG
    samples: ClassVar[Samples | None] = SAMPLES


@pytest.mark.process
@pytest.mark.model
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "name",
    [
        "module.leaves-nothing-open-when-cancelled",
        "provider.calls-tools",
        "provider.ends-while-the-vendor-is-silent",
        "provider.says-that-an-answer-is-cut",
        "provider.serves-turns",
        "provider.streams-into-a-turn",
        "provider.survives-broken-characters",
    ],
)
async def test_the_embedded_model_behaves(name: str) -> None:
    subject = Subject(
        kind="provider", module=LocalProvider, config=CONFIG, samples=SAMPLES
    )
    behavior = next(found for found in behaviors("provider") if found.id == name)

    outcome = await check_behavior(behavior, subject, timeout=60)

    assert outcome.status == "passed", outcome.detail
