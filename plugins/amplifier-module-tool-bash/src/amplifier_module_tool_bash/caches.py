"""The caches of package managers and compilers, which commands in a sandbox may write: without them none works."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Final

from amplifier_kit.processes.programs import find_program

__all__ = ["tool_caches"]

_CACHES: Final[Mapping[str, tuple[str, ...]]] = {
    "bun": ("~/.bun/install/cache",),
    "bundle": ("~/.bundle/cache",),
    "cargo": ("~/.cargo/registry", "~/.cargo/git"),
    "composer": ("~/.cache/composer",),
    "deno": ("~/.cache/deno",),
    "dotnet": ("~/.nuget/packages",),
    "go": ("~/.cache/go-build", "~/go/pkg"),
    "gradle": ("~/.gradle/caches",),
    "mvn": ("~/.m2/repository",),
    "npm": ("~/.npm",),
    "pip": ("~/.cache/pip",),
    "pip3": ("~/.cache/pip",),
    "pnpm": ("~/.local/share/pnpm/store", "~/.cache/pnpm"),
    "poetry": ("~/.cache/pypoetry",),
    "uv": ("~/.cache/uv",),
    "yarn": ("~/.cache/yarn", "~/.yarn/berry/cache"),
}
"""Where programs keep what they fetched and built; folders of programs that a person starts are not among them."""


def tool_caches() -> Iterator[str]:
    """Yield the caches of the programs that are installed, as far as they are there, with links resolved."""
    found = (
        path
        for program, paths in _CACHES.items()
        if find_program(program)
        for path in paths
    )
    for path in dict.fromkeys(map(os.path.expanduser, found)):
        # a sandbox cannot bind what is not there
        if os.path.isdir(path):
            yield os.path.realpath(path)
