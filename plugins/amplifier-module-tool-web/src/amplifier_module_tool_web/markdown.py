"""HTML as Markdown, made in a process of its own.

The converter holds the interpreter while it works: a page of 2 MB would stop every other task for more than half a
second, and a thread cannot be stopped. A process costs some 60 ms, is killed with its call, and takes no more memory
than it is given, whatever the page was made to do to the converter.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import AsyncIterable, Sequence
from contextlib import suppress
from importlib.util import find_spec
from math import ceil
from pathlib import Path
from typing import Final

import anyio

from amplifier_kit.processes import open_python, python_argv
from amplifier_sdk.errors import ToolError

__all__ = ["to_markdown"]

_PROGRAM: Final = str(Path(__file__).with_name("_convert.py"))
_MEMORY: Final = 1 << 30
# Relative links are written out in full only where that cannot make a page of many small links huge.
_MAX_ADDED: Final = 1 << 20
_SHOWN: Final = 300


async def to_markdown(html: str, base_url: str, *, limit: int, seconds: float) -> str:
    """Return a page's text as Markdown.

    Args:
        html: the page.
        base_url: its address, which relative links start from.
        limit: characters of the result; the rest is left out.
        seconds: of processor time that the conversion may take.

    Raises:
        ToolError: the page cannot be converted.
    """
    links = html.count("href") + html.count("src")
    order = {
        "html": html,
        "base_url": base_url if links * len(base_url) <= _MAX_ADDED else None,
        "most": limit,
    }
    # With an empty environment: what reads the page knows no secrets.
    command = python_argv(_PROGRAM, _packages(), str(ceil(seconds)), str(_MEMORY))
    try:
        status, text, errors = await _run(command, json.dumps(order).encode() + b"\n")
    except OSError as error:
        raise ToolError(
            f"the process that converts HTML cannot be run ({error}); set extract_text to false"
        ) from error
    if status != 0:
        reason = errors.decode("utf-8", "replace").strip().rpartition("\n")[2][:_SHOWN]
        raise ToolError(
            f"the page's HTML cannot be converted ({reason or f'the converter ended with {status}'});"
            " save it with save_to_file, or fetch another page"
        )
    return text.decode("utf-8")


async def _run(command: Sequence[str], order: bytes) -> tuple[int, bytes, bytes]:
    """Run the converter and return its status, its answer and its errors; it is killed with its call."""
    answer, errors = bytearray(), bytearray()
    async with (
        await open_python(
            command, stderr=subprocess.PIPE, new_session=False
        ) as process,
        anyio.create_task_group() as group,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        group.start_soon(_drain, process.stdout, answer)
        group.start_soon(_drain, process.stderr, errors)
        # one that died reads no order: its status and errors say why
        with suppress(anyio.BrokenResourceError):
            await process.stdin.send(order)
        await process.stdin.aclose()
        status = await process.wait()
    return status, bytes(answer), bytes(errors)


async def _drain(stream: AsyncIterable[bytes], taken: bytearray) -> None:
    async for chunk in stream:
        taken += chunk


def _packages() -> str:
    spec = find_spec("html_to_markdown")
    if spec is None or spec.origin is None:
        raise ToolError(
            "html-to-markdown is not installed; install amplifier-module-tool-web with what it needs"
        )
    return str(Path(spec.origin).parent.parent)
