"""The person is asked before a model's call writes what they trusted: it runs, in this session and the next."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Final

import attrs

from amplifier.kernel.coordinator import ModuleCoordinator
from amplifier_kit.rules import Call, RuleSet, touched_paths
from amplifier_kit.rules.rule import Rule
from amplifier_kit.trust import TrustStore, covered_paths
from amplifier_sdk.effects import ONLY_READS, effects_of
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
        # another handler may have put anything there
        arguments: object = data["tool_input"]
        if not isinstance(arguments, Mapping):
            return None
        effects = effects_of(data.get("tool_obj"), name=data["tool_name"])
        if effects is not None and (effects <= ONLY_READS or "write" not in effects):
            return None
        told = coordinator.get_capability("session.working_dir")
        if isinstance(told, (str, Path)):
            directory = Path(told)
        else:
            directory = Path.cwd()
        call = Call(
            tool_name=data["tool_name"],
            arguments=arguments,
            directory=directory,
            effects=effects,
        )
        named = await run_blocking(partial(self._written, call), name="trust.covered")
        if named is None:
            return None
        return HookResult.ask(
            f"{data['tool_name']} changes {named!a}, which you trusted: what it holds runs"
        )

    def _written(self, call: Call) -> str | None:
        """Return what was trusted that a call may write to."""
        if not touched_paths(call):
            return None
        for path in self._covered():
            literal = path.translate(_LITERAL)
            rule = Rule(decision="deny", paths=(literal, f"{literal}/**"))
            if RuleSet((rule,), "allow").evaluate(call).decision != "allow":
                return path
        return None

    def _covered(self) -> Iterator[str]:
        for folder in sorted(self.folders):
            yield from (
                os.path.join(folder, name) for name in covered_paths(self.store, folder)
            )


_LITERAL: Final = str.maketrans({"*": "?"})
"""What makes a pattern of a path: a star in a name stands for itself, or for another character."""
