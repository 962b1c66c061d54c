"""The person is asked before a model's call writes what they trusted: it runs, in this session and the next."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

import attrs

from amplifier.kernel.coordinator import ModuleCoordinator
from amplifier_kit.files.session_folders import working_directory
from amplifier_kit.rules import RuledCall, TouchedPath, touched_paths
from amplifier_kit.rules.called import call_of
from amplifier_kit.rules.paths import PathPattern
from amplifier_kit.trust import TrustStore, covered_paths
from amplifier_sdk.effects import Effect
from amplifier_sdk.events import TOOL_PRE, ToolPre
from amplifier_sdk.results import HookResult
from amplifier_sdk.threads import run_blocking

__all__ = ["TrustedFiles"]

_NAME: Final = "trust"
_FIRST: Final = -500


@attrs.frozen
class TrustedFiles:
    """Asks about calls that change what was trusted in some folders.

    Args:
        folders: the project's folder, and where the person works.
        store: what was trusted; default the person's own.
    """

    folders: frozenset[Path]
    store: TrustStore = attrs.field(factory=TrustStore.in_home)

    def register(self, coordinator: ModuleCoordinator) -> None:
        """Hear every call of a session and of those that work for it."""
        coordinator.hooks.register(
            TOOL_PRE, partial(self._evaluate, coordinator), _FIRST, _NAME, decides=True
        )

    async def _evaluate(
        self, coordinator: ModuleCoordinator, _: str, data: ToolPre
    ) -> HookResult | None:
        directory = working_directory(coordinator)
        call = await call_of(data, coordinator, directory)
        # Most calls only read: they must not pay for a look at what was trusted.
        if call is None or not _may_write(call.effects):
            return None
        named = await run_blocking(partial(self._written, call), name="trust.covered")
        if named is None:
            return None
        return HookResult.ask(
            f"{data['tool_name']} changes {named!a}, which you trusted: what it holds runs"
        )

    def _written(self, call: RuledCall) -> str | None:
        written = [path for path in touched_paths(call) if _is_written(path, call)]
        if not written:
            return None
        for covered in self._covered():
            literal = covered.translate(_LITERAL)
            # Itself and what lies below: covered are files and folders alike.
            for pattern in (PathPattern(literal), PathPattern(f"{literal}/**")):
                if any(
                    pattern.catches(path.value, call.directory, deep=True)
                    for path in written
                ):
                    return covered
        return None

    def _covered(self) -> Iterator[str]:
        for folder in sorted(self.folders):
            yield from (
                os.path.join(folder, name) for name in covered_paths(self.store, folder)
            )


def _may_write(effects: frozenset[Effect] | None) -> bool:
    return effects is None or not effects.isdisjoint(("write", "exec"))


def _is_written(path: TouchedPath, call: RuledCall) -> bool:
    """Whether a call may change a path; a command that says what it does changes what its words name for that."""
    if call.effects is None:
        return True
    if path.is_of_command:
        # A formatter goes through all of a folder, and leaves most of it as it is.
        return path.change in ("possible", "replaced")
    return "write" in call.effects


_LITERAL: Final = str.maketrans({"*": "?"})
"""What makes a pattern of a path: a star in a name stands for itself, or for another character."""
