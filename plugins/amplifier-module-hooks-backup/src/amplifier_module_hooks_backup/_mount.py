"""What the entry point names, and the hook: before a call changes files, they are copied."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import attrs

from amplifier_kit.files.homes import amplifier_home
from amplifier_kit.files.names import folder_name
from amplifier_kit.rules.calls import Call
from amplifier_kit.rules.touched import touched_paths
from amplifier_module_hooks_backup._commands import commands_of
from amplifier_module_hooks_backup._settings import BackupConfig
from amplifier_module_hooks_backup.backups import BACKUPS, Backups
from amplifier_module_hooks_backup.entries import BackupError
from amplifier_sdk import Coordinator, HookResult, JSONValue
from amplifier_sdk.commands import COMMANDS
from amplifier_sdk.configuration import read_config
from amplifier_sdk.effects import effects_of, read_only_of
from amplifier_sdk.events import EXECUTION_START, TOOL_PRE, ExecutionStart, ToolPre

__all__ = ["mount"]

_NAME: Final = "hooks-backup"


async def mount(coordinator: Coordinator, config: Mapping[str, JSONValue]) -> None:
    """Copies files before tools change them; a child's copies are its parent's.

    Raises:
        ConfigError: the configuration does not fit.
    """
    settings = read_config(
        BackupConfig, config, subject="configuration of hooks-backup"
    )
    parent = Backups.OPEN.get(coordinator.parent_id or "")
    backups = parent or Backups(_folder(coordinator), settings, coordinator.session_id)
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
    _told: set[str] = attrs.field(factory=set)

    @property
    def directory(self) -> Path:
        """Where relative paths of tools start."""
        told = self.coordinator.get_capability("session.working_dir")
        if isinstance(told, (str, Path)):
            base = Path(told).absolute()
        else:
            base = Path.cwd()
        configured = self.config.working_dir
        return Path(
            os.path.realpath(
                base if configured is None else base / Path(configured).expanduser()
            )
        )

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
        if self.backups.session_id == self.coordinator.session_id:
            self.backups.turn = data.get("turn_id", self.backups.turn)
        paths, with_directories = self._paths(data)
        if not paths:
            return None
        try:
            kept = await self.backups.keep(
                paths,
                directory=self.directory,
                tool=data["tool_name"],
                call=data.get("tool_call_id", ""),
                session=self.coordinator.session_id,
                with_directories=with_directories,
            )
        except BackupError as error:
            if self.config.on_failure == "deny":
                return HookResult.deny(
                    f"{error}. It is not changed without a backup (on_failure of hooks-backup)"
                )
            return HookResult(
                user_message=f"No backup: {error}", user_message_level="warning"
            )
        left_out = [entry.state for entry in kept if entry.state.kind == "left out"]
        new = [state for state in left_out if state.path not in self._told]
        self._told.update(state.path for state in new)
        told = "; ".join(f"{state.shown}: {state.reason}" for state in new)
        if new:
            return HookResult(
                user_message=f"No backup of {told}", user_message_level="warning"
            )
        return None

    def _paths(self, data: ToolPre) -> tuple[Sequence[str], bool]:
        """Return the paths that a call may change, and whether whole directories may be meant."""
        name, tool = data["tool_name"], data.get("tool_obj")
        # another handler may have put anything there
        arguments: object = data["tool_input"]
        if (
            name in self.config.exclude_tools
            or read_only_of(tool) is True
            or not isinstance(arguments, Mapping)
        ):
            return (), False
        effects = effects_of(tool, name=name)
        if effects is not None and "write" not in effects:
            return (self.config.snapshot_paths if "exec" in effects else ()), True
        call = Call(
            tool_name=name,
            arguments=arguments,
            directory=self.directory,
            effects=effects,
        )
        named = [
            path.value for path in touched_paths(call) if isinstance(path.value, str)
        ]
        if effects is not None and "exec" in effects:
            programs = self.config.snapshot_paths
        else:
            programs = ()
        return [*named, *programs], effects is not None


def _folder(coordinator: Coordinator) -> Path:
    """Return where a session's backups are: in the application's folder for sessions, else in the person's own."""
    told = coordinator.get_capability("session.dir")
    if isinstance(told, (str, Path)):
        root = Path(told)
    else:
        root = amplifier_home()
    return root / "sessions" / folder_name(coordinator.session_id) / "backups"


def _forget(session_id: str) -> None:
    Backups.OPEN.pop(session_id, None)
