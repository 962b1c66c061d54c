"""The hook: adds to each request where and when the agent works, read once a turn."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import attrs

from amplifier_kit.files.session_folders import working_directory
from amplifier_kit.injections import longest_injection
from amplifier_kit.terminal import one_line
from amplifier_module_hooks_status_context._gitstatus import StatusContextConfig
from amplifier_sdk import Coordinator, HookResult, JSONValue
from amplifier_sdk.configuration import read_config
from amplifier_sdk.events import PROVIDER_REQUEST, ProviderRequest

if TYPE_CHECKING:
    # few modules run programs
    from amplifier_module_hooks_status_context._gitstatus import GitStatus

__all__ = ["mount"]

_NAME: Final = "hooks-status-context"
_MAX_TEXT: Final = 1000
_LONGEST: Final = 10_000
_CUT: Final = "(the rest is left out)"
_HEAD: Final = (
    "<status>\nWhere and when you work, as this turn began. "
    "It is for you; speak of it only where it matters."
)


async def mount(coordinator: Coordinator, config: Mapping[str, JSONValue]) -> None:
    """Tell with each request where and when the agent works.

    Raises:
        ConfigError: the configuration does not fit.
    """
    settings = read_config(
        StatusContextConfig, config, subject=f"configuration of {_NAME}"
    )
    status = _Status(coordinator, settings)
    unregister = coordinator.hooks.register(
        PROVIDER_REQUEST, status.inject, settings.priority, _NAME, decides=False
    )
    coordinator.register_cleanup(unregister)


@attrs.define(eq=False)
class _Status:
    """The status, as it was when the turn began."""

    coordinator: Coordinator
    config: StatusContextConfig
    _turn: object = None
    _text: str | None = None
    _slow: GitStatus | None = None

    async def inject(self, _: str, data: ProviderRequest) -> HookResult | None:
        """Put the status behind everything else of the request, where it changes nothing that a vendor has cached."""
        turn = data.get("turn_id")
        # Once a turn: the same text in each request of it keeps a vendor's cache valid.
        if self._text is None or turn != self._turn:
            self._text, self._turn = await self._read(), turn
        if not self._text:
            return None
        return HookResult.inject(
            self._text, role=self.config.inject_role, ephemeral=True
        )

    async def _read(self) -> str:
        directory = self._directory()
        lines = [f"Working directory: {one_line(str(directory), _MAX_TEXT)}"]
        said = ""
        if self.config.include_git:
            status = await self._git(directory)
            lines.append(f"Git repository: {status.answer}")
            said = status.text
        lines += [
            f"Platform: {platform.platform()}",
            f"Date: {self._date()}",
            *self._session(),
        ]
        return self._fitting("\n".join([_HEAD, *lines, "</status>"]), said)

    def _fitting(self, status: str, said: str) -> str:
        """Join the status and what the repository says, as much as an injection may hold; nothing where none may."""
        room = longest_injection(self.coordinator, _LONGEST) - len(status)
        if room < 0:
            return ""
        # Cut by lines and marked anew, since redaction and marks change the length.
        while said and len(marked := self._marked(said)) >= room:
            shorter = said[
                : len(said) - (len(marked) - room) - len(_CUT) - 1
            ].rpartition("\n")[0]
            said = ""
            if shorter:
                said = f"{shorter}\n{_CUT}"
        if said:
            return f"{status}\n{marked}"
        return status

    async def _git(self, directory: Path) -> GitStatus:
        """Ask git; once it has taken too long, not again in this session."""
        # few modules run programs
        from amplifier_module_hooks_status_context._gitstatus import read_status

        if self._slow is None:
            status = await read_status(directory, self.config)
            if status.is_slow:
                self._slow = status
            else:
                self._slow = None
            return status
        return self._slow

    def _directory(self) -> Path:
        configured = os.path.expanduser(self.config.working_dir or "")
        return Path(os.path.normpath(working_directory(self.coordinator) / configured))

    def _date(self) -> str:
        now = datetime.now().astimezone()
        if not self.config.include_datetime:
            return f"{now:%Y-%m-%d, %A}"
        zone = ""
        if self.config.datetime_include_timezone:
            zone = f" {now:%Z}"
        return f"{now:%Y-%m-%d, %A, %H:%M}{zone}"

    def _session(self) -> list[str]:
        if not self.config.include_session:
            return []
        parent = self.coordinator.parent_id
        child = ""
        if parent is not None:
            child = f", a child of {one_line(parent)}"
        return [f"Session: {one_line(self.coordinator.session_id)}{child}"]

    def _marked(self, text: str) -> str:
        """Mark what a repository says as what it is, without secrets."""
        # its rules take a while to load
        from amplifier_kit.redaction import redactor_of
        from amplifier_kit.trust.untrusted import mark_untrusted

        return mark_untrusted(
            redactor_of(self.coordinator).redact_text(text), "git repository"
        )
