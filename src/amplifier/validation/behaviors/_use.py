"""Using a module the plain way, whatever its type: what the checks of every module do with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from amplifier.validation.behaviors._examples import example_arguments
from amplifier.validation.behaviors._payloads import PAYLOADS, payload
from amplifier.validation.behaviors._stage import Stage
from amplifier.validation.behaviors.subject import ProviderSamples, Subject, ToolSamples
from amplifier_sdk.contracts import Tool
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.loops import schema_of


async def use(subject: Subject, stage: Stage) -> None:
    """Run a turn with the module, and what else it is there for."""
    if not stage.model.steps:
        stage.model.steps += ["Done.", "Done."]
    prompt = subject.told(ProviderSamples).talks.prompt if subject.kind == "provider" else "Begin."
    await stage.turn(prompt)
    if subject.kind == "tool":
        for tool, arguments in calls_of(subject, stage.tools):
            await stage.call(tool.name, arguments)
    elif subject.kind == "hook":
        for event, data in PAYLOADS.items():
            await stage.coordinator.hooks.emit(event, payload(data))


def calls_of(subject: Subject, tools: Mapping[str, Tool]) -> Iterator[tuple[Tool, JSONObject]]:
    """Yield a call of each tool: the author's samples, else arguments made up from the schema."""
    samples = subject.told(ToolSamples).arguments
    for name, tool in tools.items():
        given = samples.get(name) or (example_arguments(schema_of(tool)),)
        yield from ((tool, dict(arguments)) for arguments in given)
