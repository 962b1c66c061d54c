"""An application adds a module type of its own.

    python examples/own_module_type.py

A glossary explains words. Its type is a hookspec and a `ModuleKind`: from then on the mount plan has a section
`glossaries`, the coordinator a mount point of that name, and packages can offer glossaries as they offer tools.
A tool looks words up in whatever glossaries the session has.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol, runtime_checkable

import anyio

from amplifier import AmplifierSession, ModuleLoader
from amplifier_sdk import Coordinator, JSONValue, ModuleKind, ToolError, hookspec, tool
from amplifier_sdk.hookspecs import KINDS, Config


@runtime_checkable
class Glossary(Protocol):
    """What every module of the new type mounts."""

    @property
    def name(self) -> str:
        """The name under which it is mounted."""
        ...

    def explain(self, word: str, /) -> str | None:
        """Explain a word, or return `None`."""
        ...


@hookspec
async def amplifier_glossary(coordinator: Coordinator, config: Config) -> object:
    """Mount a glossary: return it."""
    raise NotImplementedError


GLOSSARY: Final = ModuleKind(
    name="glossary",
    section="glossaries",
    mount_point="glossaries",
    spec=amplifier_glossary,
    protocol=Glossary,
)


class SailorsWords:
    """A glossary of a few words, and of those that its configuration adds."""

    name = "sailing"

    def __init__(self, words: Mapping[str, JSONValue]) -> None:
        self._words = {
            "port": "the left side of a ship",
            "starboard": "the right side of a ship",
            **words,
        }

    def explain(self, word: str, /) -> str | None:
        """Explain a word, or return `None`."""
        text = self._words.get(word.lower())
        return None if text is None else str(text)


class SailorsModule:
    """The module: a package would name such an object, or its class's instance, in its entry point."""

    @amplifier_glossary.impl
    async def mount(self, coordinator: Coordinator, config: Config) -> object:
        """Mount the sailors' words."""
        return SailorsWords(config)


@tool
def explain(word: str, coordinator: Coordinator) -> str:
    """Explain a word.

    Args:
        word: the word.
    """
    glossaries = coordinator.get("glossaries")
    if isinstance(glossaries, Mapping):
        for glossary in glossaries.values():
            text = glossary.explain(word)
            if text is not None:
                return f"{word}: {text}"
    raise ToolError(f"No glossary knows {word!r}")


PLAN: Final[Mapping[str, JSONValue]] = {
    "session": {"orchestrator": "loop-basic", "context": "context-simple"},
    "providers": [
        {
            "module": "provider-scripted",
            "config": {
                "responses": [
                    {
                        "tool_calls": [
                            {"name": "explain", "arguments": {"word": "starboard"}},
                            {"name": "explain", "arguments": {"word": "knot"}},
                            {"name": "explain", "arguments": {"word": "keel"}},
                        ]
                    },
                    "Starboard is on the right.",
                ]
            },
        }
    ],
    "tools": ["explain"],
    "glossaries": [
        {"module": "glossary-sailing", "config": {"knot": "one nautical mile an hour"}}
    ],
}


async def main() -> None:
    """Run one turn and print what the tool found and what the model said."""
    loader = ModuleLoader(
        modules={"explain": explain, "glossary-sailing": SailorsModule()},
        kinds=(*KINDS, GLOSSARY),
    )
    async with AmplifierSession(PLAN, loader) as session:
        answer = await session.execute("What is starboard?")
        for message in await session.coordinator.context.get_messages():
            if message["role"] == "tool":
                print(message["content"])
        print(answer)


if __name__ == "__main__":
    anyio.run(main)
