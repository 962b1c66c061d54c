"""Installed modules as a package manager leaves them: a package and the metadata of its distribution."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

__all__ = ["install"]


def install(
    folder: Path, distribution: str, modules: dict[str, str], files: dict[str, str], *, ending: str = "dist-info"
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
        ["[console_scripts]", "x = y:z", "", "[amplifier.modules]", "# ours", *lines, "", "[other]", "a = b"]
    )
    (metadata / "entry_points.txt").write_text(text)
    for path, source in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(dedent(source))
