"""Writes the commands that install Amplifier into the pages that name one: `python -m scripts.installation`.

Which form they have is said by `amplifier_kit.installation.PUBLISHED`; a test compares every page.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from shlex import quote
from typing import Final

from amplifier_kit.installation import PUBLISHED, clone_arguments

__all__ = ["COMMANDS", "ROOT", "found_commands", "pages", "rewritten"]

ROOT: Final = Path(__file__).resolve().parents[1]

COMMANDS: Final[Mapping[str, tuple[str, ...]]] = {
    "docs/get-started/first-ten-minutes.md": ("amplifier[default]",),
    "docs/index.md": ("amplifier[default]",),
    "docs/how-to/coming-from-amplifier-core.md": ("amplifier[default,compat]",),
    "docs/how-to/engines.md": ("amplifier-module-engine-dbos",),
    "docs/how-to/from-one-machine-to-many.md": (
        "amplifier[cli,server]",
        "amplifier-module-engine-dbos",
    ),
    "docs/how-to/postgresql.md": ("amplifier-module-store-postgres",),
    "docs/how-to/telemetry.md": ("amplifier-module-hooks-otel[otlp]",),
    "docs/how-to/vendors.md": ("amplifier[anthropic]",),
    "plugins/amplifier-module-hooks-otel/README.md": (
        "amplifier-module-hooks-otel[otlp]",
    ),
    "plugins/amplifier-module-provider-anthropic/README.md": ("amplifier[anthropic]",),
    "plugins/amplifier-module-provider-azure-openai/README.md": (
        "amplifier[azure-openai]",
    ),
    "plugins/amplifier-module-provider-chat-completions/README.md": (
        "amplifier[chat-completions]",
    ),
    "plugins/amplifier-module-provider-ollama/README.md": ("amplifier[ollama]",),
    "plugins/amplifier-module-provider-openai/README.md": ("amplifier[openai]",),
    **{
        f"plugins/amplifier-module-{name}/README.md": (f"amplifier-module-{name}",)
        for name in (
            *("engine-dbos", "hooks-shell", "hooks-status-context"),
            *("hooks-streaming-ui", "hooks-todo-reminder", "store-postgres"),
            *("tool-bash", "tool-mcp", "tool-skills", "tool-task", "tool-todo"),
            "tool-web",
        )
    },
}
"""What each page installs, in the order in which it says so."""

_COMMAND: Final = re.compile(
    r"pip install (?:'amplifier[^`\n]*'|amplifier-module[^`\n]*|-e '?(?:\.(?!\[dev\])|\./|plugins/)[^`\n]*)"
)


def pages() -> Iterator[Path]:
    """Yield every page that may name such a command; what its clone needs, `README.md` says itself."""
    yield from sorted((ROOT / "docs").rglob("*.md"))
    yield from sorted((ROOT / "plugins").glob("*/README.md"))


def found_commands(text: str) -> list[str]:
    """Return the commands that a page names."""
    return [match[0].rstrip() for match in _COMMAND.finditer(text)]


def rewritten(text: str, requirements: tuple[str, ...]) -> str:
    """Return a page's text with its commands as they are now."""
    left = iter(requirements)
    return _COMMAND.sub(lambda _: _command(next(left)), text)


def _command(requirement: str) -> str:
    if PUBLISHED:
        return f"pip install {quote(requirement)}"
    arguments = " ".join(clone_arguments(requirement))
    return f"pip install {arguments}"


def main() -> None:
    """Write every page."""
    for name, requirements in COMMANDS.items():
        page = ROOT / name
        page.write_text(rewritten(page.read_text("utf-8"), requirements), "utf-8")


if __name__ == "__main__":
    main()
