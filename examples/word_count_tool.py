"""A tool in a few lines, and a session that uses it.

    python examples/word_count_tool.py

The answers come from a script, so that it runs anywhere; name another provider in the plan for a real model.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import anyio

from amplifier import AmplifierSession, ModuleLoader
from amplifier_sdk import JSONValue, tool


@tool
def count_words(text: str) -> int:
    """Count the words of a text.

    Args:
        text: the text whose words are counted.
    """
    return len(text.split())


PLAN: Final[Mapping[str, JSONValue]] = {
    "session": {"orchestrator": "loop-basic", "context": "context-simple"},
    "providers": [
        {
            "module": "provider-scripted",
            "config": {
                "responses": [
                    {
                        "tool_calls": [
                            {
                                "name": "count_words",
                                "arguments": {"text": "to be or not to be"},
                            }
                        ]
                    },
                    "It has 6 words.",
                ]
            },
        }
    ],
    "tools": ["count_words"],
}


async def main() -> None:
    """Run one turn and print its answer."""
    loader = ModuleLoader(modules={"count_words": count_words})
    async with AmplifierSession(PLAN, loader) as session:
        print(await session.execute("How many words has 'to be or not to be'?"))


if __name__ == "__main__":
    anyio.run(main)
