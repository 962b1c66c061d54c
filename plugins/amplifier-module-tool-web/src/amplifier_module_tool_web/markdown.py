"""HTML as Markdown, made in a process of its own.

The converter holds the interpreter while it works: a page of 2 MB would stop every other task for more than half a
second, and a thread cannot be stopped. A process costs some 60 ms, is killed with its call, and takes no more memory
than it is given, whatever the page was made to do to the converter.
"""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from math import ceil
from pathlib import Path
from typing import Final

import anyio

from amplifier_sdk.errors import ToolError

__all__ = ["to_markdown"]

_PROGRAM: Final = str(Path(__file__).with_name("_convert.py"))
_MEMORY: Final = 1 << 30
# Relative links are written out in full only where that cannot make a page of many small links huge.
_MOST_ADDED: Final = 1 << 20
_SHOWN: Final = 300


async def to_markdown(html: str, base_url: str, *, most: int, seconds: float) -> str:
    """Return a page's text as Markdown.

    Args:
        html: the page.
        base_url: its address, which relative links start from.
        most: characters of the result; the rest is left out.
        seconds: of processor time that the conversion may take.

    Raises:
        ToolError: the page cannot be converted.
    """
    links = html.count("href") + html.count("src")
    order = {"html": html, "base_url": base_url if links * len(base_url) <= _MOST_ADDED else None, "most": most}
    # Isolated and with an empty environment: what reads the page knows no secrets.
    command = [sys.executable, "-I", "-S", _PROGRAM, _packages(), str(ceil(seconds)), str(_MEMORY)]
    try:
        ended = await anyio.run_process(
            command, input=json.dumps(order).encode() + b"\n", env={}, cwd="/", check=False, stderr=subprocess.PIPE
        )
    except (OSError, anyio.BrokenResourceError) as error:
        raise ToolError(f"the process that converts HTML cannot be run ({error}); set extract_text to false") from error
    if ended.returncode != 0:
        reason = ended.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2][:_SHOWN]
        raise ToolError(
            f"the page's HTML cannot be converted ({reason or f'the converter ended with {ended.returncode}'});"
            " save it with save_to_file, or fetch another page"
        )
    return ended.stdout.decode("utf-8")


def _packages() -> str:
    spec = find_spec("html_to_markdown")
    if spec is None or spec.origin is None:
        raise ToolError("html-to-markdown is not installed; install amplifier-module-tool-web with what it needs")
    return str(Path(spec.origin).parent.parent)
