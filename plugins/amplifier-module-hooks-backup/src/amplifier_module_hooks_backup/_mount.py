"""What the entry point names, and the hook: before a call changes files, they are copied."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

import attrs

from amplifier_kit.commands import COMMANDS
from amplifier_kit.files.session_folders import session_folder, working_directory
from amplifier_kit.rules.called import call_of
from amplifier_kit.rules.calls import RuledCall
from amplifier_kit.rules.touched import TouchedPath, touched_paths
from amplifier_module_hooks_backup._capture import BackupConfig, Depth, PathsToCopy
from amplifier_module_hooks_backup._commands import commands_of
from amplifier_module_hooks_backup.backups import BACKUPS, Backups
from amplifier_module_hooks_backup.entries import BackupError
from amplifier_sdk import Coordinator, HookResult, JSONValue
from amplifier_sdk.configuration import read_config
from amplifier_sdk.effects import read_only_of
from amplifier_sdk.events import EXECUTION_START, TOOL_PRE, ExecutionStart, ToolPre

__all__ = ["mount"]

_NAME: Final = "hooks-backup"


async def mount(coordinator: Coordinator, config: Mapping[str, JSONValue]) -> None:
    """Copies files before tools change them; a child's copies are its parent's.

    Raises:
        ConfigError: the configuration does not fit.
    """
    settings = read_config(BackupConfig, config, subject=f"configuration of {_NAME}")
    parent = Backups.OPEN.get(coordinator.parent_id or "")
    # One store for a family: the person undoes a turn, whichever agent changed the
    # file.
    folder = session_folder(coordinator) / "backups"
    backups = parent or Backups(folder, settings, coordinator.session_id)
    hook = _Hook(coordinator, settings, backups)
    Backups.OPEN[coordinator.session_id] = backups
    coordinator.register_capability(BACKUPS, backups)
    coordinator.register_contributor(
        COMMANDS, _NAME, lambda: commands_of(backups, hook.directory, hook.redact)
    )
    coordinator.register_cleanup(
        backups.aclose if parent is None else lambda: _forget(coordinator.session_id)
    )
    hooks = coordinator.hooks
    coordinator.register_cleanup(
        hooks.register(TOOL_PRE, hook.keep, settings.priority, _NAME, decides=True)
    )
    if parent is None:
        coordinator.register_cleanup(
            hooks.register(EXECUTION_START, hook.begin, 0, _NAME, decides=False)
        )


@attrs.define(eq=False)
class _Hook:
    """Keeps what a call may change."""

    coordinator: Coordinator
    config: BackupConfig
    backups: Backups
    _warned: set[str] = attrs.field(factory=set)

    @property
    def directory(self) -> Path:
        """Where relative paths of tools start."""
        configured = os.path.expanduser(self.config.working_dir or "")
        return Path(os.path.realpath(working_directory(self.coordinator) / configured))

    def redact(self, text: str) -> str:
        """Take secrets out of what is shown."""
        # its rules take a while to load
        from amplifier_kit.redaction import redactor_of

        return redactor_of(self.coordinator).redact_text(text)

    def begin(self, _: str, data: ExecutionStart) -> None:
        """Note the turn to which copies belong."""
        self.backups.turn = data.get("turn_id", "")

    async def keep(self, _: str, data: ToolPre) -> HookResult | None:
        """Keep what a call may change, or deny it."""
        # not every loop reports that a turn begins
        # A child's turns belong to the turn of its parent that they work for.
        if self.backups.session_id == self.coordinator.session_id:
            self.backups.turn = data.get("turn_id", self.backups.turn)
        warnings: list[str] = []
        for wanted in await self._wanted(data):
            try:
                copied = await self.backups.keep(
                    wanted,
                    directory=self.directory,
                    tool=data["tool_name"],
                    call=data.get("tool_call_id", ""),
                    session=self.coordinator.session_id,
                )
            except BackupError as error:
                if wanted.is_needed and self.config.on_failure == "deny":
                    return HookResult.deny(
                        f"{error}. It is not changed without a backup (on_failure of hooks-backup)"
                    )
                warnings += self._new({str(error): f"No backup: {error}"})
            else:
                states = [entry.state for entry in copied]
                reasons = {
                    state.path: f"No backup of {state.shown}: {state.reason}"
                    for state in states
                    if state.kind == "left out"
                }
                warnings += self._new(reasons)
        if not warnings:
            return None
        return HookResult(
            user_message="; ".join(warnings), user_message_level="warning"
        )

    def _new(self, warnings: Mapping[str, str]) -> list[str]:
        """Return the warnings that the person has not had in this session, by what they are about."""
        new = {key: text for key, text in warnings.items() if key not in self._warned}
        self._warned.update(new)
        return list(new.values())

    async def _wanted(self, data: ToolPre) -> list[PathsToCopy]:
        """Return what a call may change."""
        if (
            data["tool_name"] in self.config.exclude_tools
            or read_only_of(data.get("tool_obj")) is True
        ):
            return []
        call = await call_of(data, self.coordinator, self.directory)
        if call is None:
            return []
        effects = call.effects
        found: list[PathsToCopy] = []
        if effects is None or "write" in effects:
            named = [path for path in touched_paths(call) if not path.is_of_command]
            # A tool that does not say what it does names folders that it may only read.
            depth: Depth = "none"
            if effects is not None:
                depth = "all"
            found.append(PathsToCopy(paths=_values(named), depth=depth))
        if effects is None or "exec" in effects:
            found += _of_commands(call)
        if effects is not None and "exec" in effects:
            found.append(PathsToCopy(paths=self.config.snapshot_paths))
        return [wanted for wanted in found if wanted.paths]


def _of_commands(call: RuledCall) -> Iterator[PathsToCopy]:
    """Yield what the shell texts of a call change.

    What an unknown program or a formatter does with the words it is given is not certain: where that cannot be copied,
    it runs.
    """
    paths = [path for path in touched_paths(call) if path.is_of_command]
    by_change = {
        change: _values(path for path in paths if path.change == change)
        for change in ("replaced", "formatted", "possible")
    }
    yield PathsToCopy(paths=by_change["replaced"])
    yield PathsToCopy(paths=by_change["formatted"], depth="sources", is_needed=False)
    yield PathsToCopy(paths=by_change["possible"], depth="none", is_needed=False)


def _values(paths: Iterable[TouchedPath]) -> tuple[str, ...]:
    return tuple(path.value for path in paths if isinstance(path.value, str))


def _forget(session_id: str) -> None:
    Backups.OPEN.pop(session_id, None)
