"""Installed modules as a package manager leaves them: a package and the metadata of its distribution."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

__all__ = ["conventional", "install", "project", "tool_source"]


def install(
    folder: Path,
    distribution: str,
    modules: dict[str, str],
    files: dict[str, str],
    *,
    ending: str = "dist-info",
) -> None:
    """Write a distribution into a folder of the search path.

    Args:
        folder: stands in for a `site-packages`.
        distribution: its name, with hyphens.
        modules: what the entry points name, by module id.
        files: the texts of its files by path.
        ending: of the metadata's folder.
    """
    metadata = folder / f"{distribution.replace('-', '_')}-1.0.{ending}"
    metadata.mkdir(parents=True)
    lines = [f"{name} = {target}" for name, target in modules.items()]
    text = "\n".join(
        [
            "[console_scripts]",
            "x = y:z",
            "",
            "[amplifier.modules]",
            "# ours",
            *lines,
            "",
            "[other]",
            "a = b",
        ]
    )
    (metadata / "entry_points.txt").write_text(text)
    for path, source in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(dedent(source))


def conventional(module_id: str) -> str:
    """Return the package name that a module of this id has by convention."""
    return f"amplifier_module_{module_id.replace('-', '_')}"


def tool_source(name: str, *, imports: str = "") -> str:
    """Return the source of a package with one tool and its `mount`."""
    return f"""
{imports}
from amplifier_sdk import ToolResult

class Tool:
    name = {name!r}
    description = "A tool."

    async def execute(self, input):
        return ToolResult(output="done")

async def mount(coordinator, config):
    return Tool()
"""


def project(
    folder: Path, files: dict[str, str], modules: dict[str, str] | None = None
) -> Path:
    """Write a project's folder, with a `pyproject.toml` when it names modules, and return it.

    Args:
        folder: where it goes.
        files: the texts of its files by path.
        modules: what the entry points name, by module id.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for path, source in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(dedent(source))
    if modules is not None:
        lines = [f"{name} = {target!r}" for name, target in modules.items()]
        text = "\n".join(
            [
                "[project]",
                f'name = "{folder.name}"',
                '[project.entry-points."amplifier.modules"]',
                *lines,
            ]
        )
        (folder / "pyproject.toml").write_text(text)
    return folder
