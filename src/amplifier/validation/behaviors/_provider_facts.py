"""What a provider says of itself and its models."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from amplifier.validation.behaviors._stage import open_stage, skip_unless
from amplifier.validation.behaviors.behavior import Suite, expect, require
from amplifier.validation.behaviors.subject import Subject
from amplifier_sdk.chat import ChatResponse, ModelInfo, ProviderInfo, ToolCall
from amplifier_sdk.content import TextBlock, ToolCallBlock
from amplifier_sdk.contracts import Provider
from amplifier_sdk.convert import to_json

PROVIDER: Final = Suite("provider")


@asynccontextmanager
async def _info(subject: Subject) -> AsyncIterator[tuple[Provider, ProviderInfo]]:
    async with open_stage(subject) as stage:
        yield stage.provider, expect(stage.provider.get_info(), ProviderInfo, "What get_info returns")


@asynccontextmanager
async def _models(subject: Subject) -> AsyncIterator[tuple[Provider, list[ModelInfo]]]:
    async with open_stage(subject) as stage:
        models = expect(await stage.provider.list_models(), list, "What list_models returns")
        skip_unless(models, "it lists no models")
        yield stage.provider, [expect(model, ModelInfo, "An item of list_models") for model in models]


@PROVIDER.behavior(fix="Write get_info as a plain method that returns a ProviderInfo.")
async def says_what_it_is(subject: Subject) -> None:
    """Its get_info returns a ProviderInfo without being awaited."""
    async with open_stage(subject) as stage:
        info: object = stage.provider.get_info()
        if inspect.iscoroutine(info):
            info.close()
        expect(info, ProviderInfo, "What get_info returns")


@PROVIDER.behavior(fix="Give ProviderInfo an id for programs and a display_name for people.")
async def names_itself(subject: Subject) -> None:
    """It has an id and a name for people."""
    async with _info(subject) as (_, info):
        require(info.id and info.display_name.strip(), f"The id is {info.id!r}, the name {info.display_name!r}")


@PROVIDER.behavior(fix="Mount the provider under its own name.")
async def is_mounted_under_its_name(subject: Subject) -> None:
    """It is mounted under the name that it gives itself."""
    async with open_stage(subject) as stage:
        (mounted,) = stage.coordinator.providers
        require(mounted == stage.provider.name, f"The provider {stage.provider.name!r} is mounted as {mounted!r}")


@PROVIDER.behavior(fix="Build ProviderInfo from the configuration; ask the vendor in list_models.")
async def says_the_same_each_time(subject: Subject) -> None:
    """Its get_info returns the same each time."""
    async with _info(subject) as (provider, info):
        require(provider.get_info() == info, "Two calls of get_info returned different things")


@PROVIDER.behavior(fix="Keep to texts, numbers, lists and mappings in ProviderInfo.")
async def can_be_shown_as_json(subject: Subject) -> None:
    """What it says of itself can be written as JSON."""
    async with _info(subject) as (_, info):
        json.dumps(to_json(info), allow_nan=False)


@PROVIDER.behavior(
    fix="Put context_window and max_output_tokens into ProviderInfo.defaults: contexts fit views to them."
)
async def names_its_window(subject: Subject) -> None:
    """Its defaults name the tokens that it takes and writes, so that contexts can fit what it reads."""
    async with _info(subject) as (_, info):
        window, most = info.defaults.get("context_window"), info.defaults.get("max_output_tokens")
        good = isinstance(window, int) and isinstance(most, int) and 0 < most < window
        require(good, f"context_window is {window!r} and max_output_tokens {most!r}")


@PROVIDER.behavior(fix="Put the default model's id into ProviderInfo.defaults['model'].")
async def names_its_default_model(subject: Subject) -> None:
    """Its defaults name the model that is asked when a request names none."""
    async with _info(subject) as (_, info):
        model = info.defaults.get("model")
        require(isinstance(model, str) and model, f"The default model is {model!r}")


@PROVIDER.behavior(fix="Offer stream, or leave 'streaming' out of the capabilities.")
async def streams_if_it_says_so(subject: Subject) -> None:
    """It has stream exactly when 'streaming' is among its capabilities."""
    async with _info(subject) as (provider, info):
        has = callable(getattr(provider, "stream", None))
        says = "streaming" in info.capabilities
        require(has == says, f"stream is {'there' if has else 'missing'}; its capabilities are {info.capabilities}")


@PROVIDER.behavior(fix="Name environment variables in credential_env_vars, not their values.")
async def names_its_credentials(subject: Subject) -> None:
    """Its credentials are named by environment variables."""
    async with _info(subject) as (_, info):
        skip_unless(info.credential_env_vars, "it needs no credentials")
        odd = [name for name in info.credential_env_vars if not re.fullmatch(r"[A-Z][A-Z0-9_]*", name)]
        require(not odd, f"{len(odd)} of {len(info.credential_env_vars)} are no names of environment variables")


@PROVIDER.behavior(fix="Give each ConfigField an id of its own, and choices to a field of the type 'choice'.")
async def asks_for_each_setting_once(subject: Subject) -> None:
    """The settings that it asks a person for have ids of their own and their choices."""
    async with _info(subject) as (_, info):
        skip_unless(info.config_fields, "it asks a person for nothing")
        ids = [field.id for field in info.config_fields]
        require(len(set(ids)) == len(ids), f"The ids are {ids}")
        bare = [field.id for field in info.config_fields if field.field_type == "choice" and not field.choices]
        require(not bare, f"Without choices: {bare}")


@PROVIDER.behavior(fix="Give the priority as a number; the lowest is asked first.")
async def has_a_number_as_priority(subject: Subject) -> None:
    """Its priority, if it has one, is a number."""
    async with open_stage(subject) as stage:
        priority = getattr(stage.provider, "priority", None)
        skip_unless(priority is not None, "it names no priority")
        good = isinstance(priority, (int, float)) and not isinstance(priority, bool)
        require(good, f"The priority is {priority!r}")


@PROVIDER.behavior(fix="Return a list of ModelInfo from list_models; an empty one when the vendor tells nothing.")
async def lists_models(subject: Subject) -> None:
    """Its list_models returns a list of ModelInfo."""
    async with open_stage(subject) as stage:
        for model in expect(await stage.provider.list_models(), list, "What list_models returns"):
            expect(model, ModelInfo, "An item of list_models")


@PROVIDER.behavior(fix="List each model once.")
async def lists_each_model_once(subject: Subject) -> None:
    """Its models have ids of their own."""
    async with _models(subject) as (_, models):
        ids = [model.id for model in models]
        require(all(ids) and len(set(ids)) == len(ids), f"The ids are {ids}")


@PROVIDER.behavior(fix="Give each model its true context_window and max_output_tokens.")
async def lists_models_with_windows(subject: Subject) -> None:
    """Its models take and write a number of tokens above zero, and write no more than they take."""
    async with _models(subject) as (_, models):
        odd = [model.id for model in models if not 0 < model.max_output_tokens <= model.context_window]
        require(not odd, f"With impossible windows: {', '.join(odd)}")


@PROVIDER.behavior(fix="List the default model too, under the id that the defaults name.")
async def lists_its_default_model(subject: Subject) -> None:
    """The model that its defaults name is among those it lists."""
    async with _models(subject) as (provider, models):
        default = provider.get_info().defaults.get("model")
        skip_unless(default, "it names no default model")
        ids = [model.id for model in models]
        require(default in ids, f"The default {default!r} is not among {ids}")


@PROVIDER.behavior(fix="List what the configuration and the vendor say; change nothing by listing.")
async def lists_the_same_models_twice(subject: Subject) -> None:
    """Its list_models returns the same models when it is called again."""
    async with _models(subject) as (provider, models):
        again = [model.id for model in await provider.list_models()]
        require(again == [model.id for model in models], f"First {len(models)}, then {len(again)} models were listed")


@PROVIDER.behavior(fix="Return list(response.tool_calls or ()) from parse_tool_calls.")
async def reads_no_calls_from_a_plain_answer(subject: Subject) -> None:
    """From an answer without calls parse_tool_calls reads none."""
    response = ChatResponse(content=[TextBlock(text="No call.")], finish_reason="stop")
    async with open_stage(subject) as stage:
        calls = expect(stage.provider.parse_tool_calls(response), list, "What parse_tool_calls returns")
    require(not calls, f"Read were {calls!r:.300}")


@PROVIDER.behavior(fix="Return list(response.tool_calls or ()) from parse_tool_calls.")
async def reads_the_calls_of_an_answer(subject: Subject) -> None:
    """From an answer with calls parse_tool_calls reads exactly those, in their order."""
    made = [ToolCall(id=f"call_{n}", name="work", arguments={"n": n}) for n in range(3)]
    blocks = [ToolCallBlock(id=call.id, name=call.name, input=call.arguments) for call in made]
    response = ChatResponse(content=blocks, tool_calls=made, finish_reason="tool_calls")
    async with open_stage(subject) as stage:
        calls = expect(stage.provider.parse_tool_calls(response), list, "What parse_tool_calls returns")
    require(calls == made, f"Read were {calls!r:.300}")
