"""A loop asks the model and stores what was said."""

from __future__ import annotations

import inspect
from typing import Final

from amplifier.validation.behaviors._parts import Worker
from amplifier.validation.behaviors._stage import Setting, Stage, open_stage
from amplifier.validation.behaviors.behavior import Suite, expect, require
from amplifier.validation.behaviors.subject import Subject
from amplifier_kit.scripted import ScriptedProvider, Step, answer, call
from amplifier_sdk.chat import ChatRequest, ChatResponse, ModelInfo, ProviderInfo, ToolCall, Usage
from amplifier_sdk.content import TextBlock, ThinkingBlock, VendorBlock
from amplifier_sdk.history import open_calls
from amplifier_sdk.streaming import StreamEvent, TextDelta, ToolFinished, ToolStarted, TurnFinished

ORCHESTRATOR: Final = Suite("orchestrator")


async def require_closed(stage: Stage) -> None:
    """Go on when every tool call of the history has its result."""
    calls = open_calls(await stage.context.get_messages())
    require(not calls, f"Calls without a result: {[made.name for made in calls]}")


def roles(stage: Stage) -> list[object]:
    """Return the roles of the stored messages."""
    return [message["role"] for message in stage.memory.messages]


def last_texts(stage: Stage) -> list[str]:
    """Return the texts of the last request's messages."""
    return [message.text for message in stage.model.requests[-1].messages]


@ORCHESTRATOR.behavior(fix="Return the text of the model's last answer from execute.")
async def returns_the_answer(subject: Subject) -> None:
    """A turn returns the text of the model's answer."""
    async with open_stage(subject, None, "The answer.") as stage:
        text = await stage.turn()
    require(text == "The answer.", f"It returned {text!r:.200}")


@ORCHESTRATOR.behavior(fix="Return the empty text when the model said nothing.")
async def returns_an_empty_answer(subject: Subject) -> None:
    """A turn in which the model says nothing returns an empty text and ends."""
    async with open_stage(subject, None, ChatResponse(finish_reason="stop"), "more") as stage:
        text = await stage.turn()
        require(text == "" and len(stage.model.requests) == 1, f"It returned {text!r:.200}")


@ORCHESTRATOR.behavior(fix="Name the five parameters prompt, context, providers, tools, hooks and require no other.")
async def takes_its_arguments_by_name(subject: Subject) -> None:
    """Its execute can be called with the contract's five arguments by their names."""
    async with open_stage(subject, None, "Yes.") as stage:
        text = await stage.loop.execute(
            prompt="Begin.",
            context=stage.context,
            providers=dict(stage.coordinator.providers),
            tools=dict(stage.tools),
            hooks=stage.coordinator.hooks,
        )
    require(text == "Yes.", f"It returned {text!r:.200}")


@ORCHESTRATOR.behavior(fix="Keep the five parameters in the order prompt, context, providers, tools, hooks.")
async def takes_its_arguments_in_order(subject: Subject) -> None:
    """Its execute has the contract's five parameters in their order."""
    async with open_stage(subject) as stage:
        names = list(inspect.signature(stage.loop.execute).parameters)
    wanted = ["prompt", "context", "providers", "tools", "hooks"]
    require(names[:5] == wanted or "args" in names, f"Its parameters are {names}")


@ORCHESTRATOR.behavior(fix="Copy the mappings before changing them.")
async def leaves_its_arguments_alone(subject: Subject) -> None:
    """The mappings of providers and tools are the same after a turn as before."""
    async with open_stage(subject, Setting(tools=(Worker(),)), "Yes.") as stage:
        providers, tools = dict(stage.coordinator.providers), dict(stage.tools)
        before = dict(providers), dict(tools)
        await stage.loop.execute("Begin.", stage.context, providers, tools, stage.coordinator.hooks)
    require((providers, tools) == before, f"Left are providers {list(providers)} and tools {list(tools)}")


@ORCHESTRATOR.behavior(fix="Add the prompt to the context, as a message of the role 'user', before the model is asked.")
async def stores_the_prompt(subject: Subject) -> None:
    """The prompt is stored before the model is asked."""
    async with open_stage(subject, None, "Yes.") as stage:
        await stage.turn("Is it so?")
        first = stage.memory.messages[0]
    require(first.get("role") == "user" and first.get("content") == "Is it so?", f"Stored first is {first!r:.200}")


@ORCHESTRATOR.behavior(fix="Add the model's answer to the context; ChatResponse.to_message writes it.")
async def stores_the_answer(subject: Subject) -> None:
    """The answer is stored behind the prompt, once."""
    async with open_stage(subject, None, "Yes.") as stage:
        await stage.turn()
        require(roles(stage) == ["user", "assistant"], f"Stored are the roles {roles(stage)}")


@ORCHESTRATOR.behavior(fix="Store whole answers: ChatResponse.to_message keeps every block as it is.")
async def stores_signed_thinking(subject: Subject) -> None:
    """Thinking and its signature are stored with the answer, since the vendor wants them back."""
    thinking = ThinkingBlock(thinking="Let me see.", signature="EqQBCkgI==")
    async with open_stage(subject, None, answer(thinking, "Yes.")) as stage:
        await stage.turn()
        require("EqQBCkgI==" in str(stage.memory.messages[-1]), f"Stored is {stage.memory.messages[-1]!r:.300}")


@ORCHESTRATOR.behavior(fix="Store whole answers: ChatResponse.to_message keeps every block as it is.")
async def stores_unknown_blocks(subject: Subject) -> None:
    """A block of a type that nobody knows is stored with the answer."""
    block = VendorBlock(type="server_tool_use", extras={"id": "s1"})
    response = ChatResponse(content=[block, TextBlock(text="Yes.")], finish_reason="stop")
    async with open_stage(subject, None, response) as stage:
        await stage.turn()
        require("server_tool_use" in str(stage.memory.messages[-1]), f"Stored is {stage.memory.messages[-1]!r:.300}")


@ORCHESTRATOR.behavior(fix="Put the messages of the context into the request.")
async def asks_with_the_prompt(subject: Subject) -> None:
    """The model reads the prompt."""
    async with open_stage(subject, None, "Yes.") as stage:
        await stage.turn("Is it so?")
        require(last_texts(stage)[-1:] == ["Is it so?"], f"The model read {last_texts(stage)!r:.300}")


@ORCHESTRATOR.behavior(fix="Put all messages of the context's view into the request, in their order.")
async def asks_with_earlier_turns(subject: Subject) -> None:
    """In the second turn the model reads the first."""
    async with open_stage(subject, None, "First.", "Second.") as stage:
        await stage.turn("One?")
        await stage.turn("Two?")
        require(last_texts(stage) == ["One?", "First.", "Two?"], f"The model read {last_texts(stage)!r:.300}")


@ORCHESTRATOR.behavior(fix="Ask the context by get_messages_for_request before each request, with the provider.")
async def asks_the_context_for_a_view(subject: Subject) -> None:
    """Before each request the context is asked for a view that fits."""
    steps = (answer(call("work", {"text": "a"})), "Done.")
    async with open_stage(subject, Setting(tools=(Worker(),)), *steps) as stage:
        await stage.turn()
        asked = len(stage.memory.asked)
    require(asked >= 2, f"For two requests it was asked {asked} times")


@ORCHESTRATOR.behavior(fix="Tell the context which provider will read the view.")
async def names_the_provider_to_the_context(subject: Subject) -> None:
    """The context is told which provider will read the view, so that it fits that one's window."""
    async with open_stage(subject, None, "Yes.") as stage:
        await stage.turn()
        told = [provider for _, provider in stage.memory.asked]
    require(told and None not in told, "The context was asked without a provider")


@ORCHESTRATOR.behavior(fix="Describe every tool in the request: amplifier_sdk.loops.tool_spec does.")
async def offers_the_tools(subject: Subject) -> None:
    """The request offers every mounted tool by its name."""
    async with open_stage(subject, Setting(tools=(Worker("one"), Worker("two"))), "Yes.") as stage:
        await stage.turn()
        offered = [spec.name for spec in stage.model.requests[-1].tools or ()]
    require(sorted(offered) == ["one", "two"], f"Offered are {offered}")


@ORCHESTRATOR.behavior(fix="Describe every tool with its description and input_schema.")
async def offers_tools_with_their_schema(subject: Subject) -> None:
    """The request describes each tool as the tool describes itself."""
    tool = Worker()
    async with open_stage(subject, Setting(tools=(tool,)), "Yes.") as stage:
        await stage.turn()
        specs = list(stage.model.requests[-1].tools or ())
    require(len(specs) == 1, f"Offered are {specs!r:.300}")
    fits = specs[0].description == tool.description and specs[0].parameters == tool.input_schema
    require(fits, f"The tool is described as {specs[0]!r:.400}")


@ORCHESTRATOR.behavior(fix="Leave out the tools when there are none.")
async def offers_nothing_when_there_is_nothing(subject: Subject) -> None:
    """Without a mounted tool the request offers none."""
    async with open_stage(subject, None, "Yes.") as stage:
        await stage.turn()
        require(not stage.model.requests[-1].tools, f"Offered are {stage.model.requests[-1].tools!r:.200}")


@ORCHESTRATOR.behavior(fix="End the turn with the first answer that calls no tool.")
async def asks_once_when_no_tool_is_called(subject: Subject) -> None:
    """A plain answer ends the turn: the model is asked once."""
    async with open_stage(subject, None, "Yes.", "Again.") as stage:
        await stage.turn()
        require(len(stage.model.requests) == 1, f"The model was asked {len(stage.model.requests)} times")


class _Plain:
    """A provider that cannot stream."""

    name = "plain"

    def get_info(self) -> ProviderInfo:
        return ProviderInfo(id=self.name, display_name="Plain")

    async def list_models(self) -> list[ModelInfo]:
        return []

    async def complete(self, request: ChatRequest, /) -> ChatResponse:
        return ChatResponse(content=[TextBlock(text="Plain.")], finish_reason="stop")

    def parse_tool_calls(self, response: ChatResponse, /) -> list[ToolCall]:
        return list(response.tool_calls or ())


@ORCHESTRATOR.behavior(fix="Ask through the host, which streams where the provider can; else call complete.")
async def works_with_a_provider_that_cannot_stream(subject: Subject) -> None:
    """A provider without stream is asked by complete."""
    async with open_stage(subject, Setting(provider=_Plain())) as stage:
        text = await stage.turn()
    require(text == "Plain.", f"It returned {text!r:.200}")


async def _events(subject: Subject, setting: Setting | None, *steps: Step) -> list[StreamEvent]:
    """Return what somebody sees who reads a turn."""
    async with open_stage(subject, setting, *steps) as stage, stage.session.stream("Begin.") as events:
        return [event async for event in events]


@ORCHESTRATOR.behavior(fix="Ask through the host (Loop.complete or hooks.host.complete), which streams.")
async def streams_the_answer(subject: Subject) -> None:
    """Who reads the turn sees the text as the model writes it."""
    seen = await _events(subject, None, answer("One ", "two ", "three."))
    texts = [event.text for event in seen if isinstance(event, TextDelta)]
    require("".join(texts) == "One two three.", f"Seen was {texts!r:.300}")
    end = expect(seen[-1], TurnFinished, "The last event")
    require(end.text == "One two three.", f"The turn ended with {end.text!r:.200}")


@ORCHESTRATOR.behavior(fix="Run tools through the host or the tools that execute is given, which tell the reader.")
async def streams_tool_calls(subject: Subject) -> None:
    """Who reads the turn sees each call begin and end."""
    steps = (answer(call("work", {"text": "a"})), "Done.")
    kinds = list(map(type, await _events(subject, Setting(tools=(Worker(),)), *steps)))
    names = [kind.__name__ for kind in kinds]
    require(kinds.count(ToolStarted) == kinds.count(ToolFinished) == 1, f"Seen were {names}")


@ORCHESTRATOR.behavior(fix="Ask through the host, which counts what each answer used.")
async def accounts_for_what_was_used(subject: Subject) -> None:
    """The tokens of all the turn's answers are in the turn's result."""
    usage = Usage(input_tokens=10, output_tokens=5, total_tokens=15)
    steps = (answer(call("work", {"text": "a"}), usage=usage), answer("Done.", usage=usage))
    seen = await _events(subject, Setting(tools=(Worker(),)), *steps)
    end = expect(seen[-1], TurnFinished, "The last event")
    require(end.usage is not None and end.usage.total_tokens == 30, f"Counted is {end.usage}")


@ORCHESTRATOR.behavior(fix="Choose one provider for a request: the configured one, or that with the lowest priority.")
async def asks_one_provider(subject: Subject) -> None:
    """Of several providers a plain turn asks one."""
    other = ScriptedProvider("Other.", name="other")
    async with open_stage(subject, None, "One.") as stage:
        await stage.coordinator.mount("providers", other)
        text = await stage.turn()
        asked = len(stage.model.requests) + len(other.requests)
    require(asked == 1 and text in ("One.", "Other."), f"{asked} requests were made; it returned {text!r:.100}")


@ORCHESTRATOR.behavior(fix="Keep nothing of a turn in the loop: what a turn needs is in the context.")
async def keeps_turns_apart(subject: Subject) -> None:
    """Two sessions that run turns with one module do not see each other's prompts."""
    async with open_stage(subject, None, "One.") as first, open_stage(subject, None, "Two.") as second:
        await first.turn("For the first.")
        await second.turn("For the second.")
        texts = last_texts(second)
    require(texts == ["For the second."], f"The second session's model read {texts!r:.300}")
