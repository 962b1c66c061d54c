"""Module packages as an author's folder holds them, sound but for what a test changes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent
from typing import Final

from amplifier.validation import CheckResult, Report

__all__ = ["SOUND", "only", "write_project"]

SOUND: Final[Mapping[str, str]] = {
    "tool-sound": """
        import attrs
        from amplifier_sdk import tool, toolset

        @attrs.frozen
        class Config:
            size: int = 1

        @toolset
        class Main:
            def __init__(self, config: Config) -> None:
                self.size = config.size

            @tool
            async def repeat(self, text: str) -> str:
                '''Repeat a text.

                Args:
                    text: what is repeated.
                '''
                return text * self.size
    """,
    "provider-sound": """
        from amplifier_sdk import BaseProvider, ChatResponse, ProviderInfo, TextBlock, provider

        @provider
        class Main(BaseProvider):
            name = "sound"

            def get_info(self):
                return ProviderInfo(id="sound", display_name="Sound")

            async def deltas(self, request):
                yield ChatResponse(content=[TextBlock(text="yes")], finish_reason="stop")
    """,
    "hooks-sound": """
        from amplifier_sdk import HookResult, hook, on

        @hook
        class Main:
            def __init__(self, coordinator) -> None:
                self._hooks = coordinator.hooks
                coordinator.register_contributor("observability.events", "hooks-sound", lambda: ["sound:heard"])

            @on("tool:pre")
            async def hear(self, event, data):
                await self._hooks.emit("sound:heard", {"event": event})
                return HookResult()
    """,
    "loop-sound": """
        from amplifier_sdk import Loop, orchestrator

        @orchestrator
        class Main(Loop):
            name = "loop-sound"

            async def run(self, turn):
                return (await turn.complete()).text
    """,
    "context-sound": """
        from amplifier_sdk import context

        @context
        class Main:
            def __init__(self) -> None:
                self.messages = []

            async def add_message(self, message, /):
                self.messages.append(message)

            async def get_messages(self):
                return list(self.messages)

            async def get_messages_for_request(self, token_budget=None, provider=None):
                return list(self.messages)

            async def set_messages(self, messages, /):
                self.messages = list(messages)

            async def clear(self):
                self.messages = []
    """,
}
"""The source of a sound module of each type, by its id."""

_PYPROJECT: Final = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "{distribution}"
version = "1.0"
readme = "README.md"
requires-python = ">=3.11"
dependencies = ["amplifier"]

[project.entry-points."amplifier.modules"]
{module} = "{target}"
"""


def write_project(
    folder: Path,
    module: str = "tool-sound",
    source: str | None = None,
    *,
    target: str | None = None,
    more: str = "",
    without: str = "",
    files: Mapping[str, str] | None = None,
) -> Path:
    """Write the project of one module; return its folder.

    Args:
        folder: where the project's folder is made.
        module: the module's id.
        source: of its package; default that of the sound module of this id.
        target: what the entry point names; default the package's `Main`.
        more: lines at the end of `pyproject.toml`.
        without: a text that is taken out of `pyproject.toml`.
        files: further files, or other texts for those there are.
    """
    root = folder / f"amplifier-module-{module}"
    package = f"amplifier_module_{module.replace('-', '_')}"
    metadata = _PYPROJECT.format(
        distribution=f"amplifier-module-{module}",
        module=module,
        target=target or f"{package}:Main",
    )
    assert without in metadata
    texts = {
        "pyproject.toml": metadata.replace(without, "") + dedent(more),
        "README.md": "# A module\n",
        "tests/test_it.py": "",
        f"src/{package}/py.typed": "",
        f"src/{package}/__init__.py": dedent(
            SOUND[module] if source is None else source
        ),
        **(files or {}),
    }
    for path, text in texts.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, "utf-8")
    return root


def only(report: Report, check: str) -> CheckResult:
    """Return the one result of a check."""
    (result,) = (result for result in report.all_results if result.check == check)
    return result
