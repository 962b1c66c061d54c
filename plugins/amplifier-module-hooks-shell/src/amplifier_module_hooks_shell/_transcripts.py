"""The conversation so far in a file, one JSON object a line, as hooks of Claude Code read it."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from amplifier_kit.files.private_append import open_private, write_whole
from amplifier_kit.redaction import redactor_of
from amplifier_module_hooks_shell._surroundings import HookEnvironment
from amplifier_sdk.messages import MessageDict
from amplifier_sdk.threads import run_blocking

__all__ = ["TranscriptFile"]


class TranscriptFile:
    """The file; it is written when a hook may read it, and is gone with the session.

    Args:
        surroundings: the session's, in whose folder the file is.
    """

    def __init__(self, surroundings: HookEnvironment) -> None:
        self._surroundings = surroundings
        self._written = 0

    @property
    def path(self) -> str:
        """Where it is; the file need not exist yet."""
        return f"{self._surroundings.scratch}/transcript.jsonl"

    async def write(self) -> None:
        """Add the messages that are new since it was last written, without secrets."""
        context = self._surroundings.coordinator.get("context")
        read = getattr(context, "get_messages", None)
        if read is None:
            return
        messages: Sequence[MessageDict] = await read()
        if self._written <= len(messages):
            start = self._written
        else:
            start = 0
        new = list(messages[start:])
        if new or not start:
            await run_blocking(
                lambda: self._append(new, anew=start == 0),
                name="hooks-shell.transcript",
            )
        self._written = len(messages)

    def _append(self, messages: Sequence[MessageDict], *, anew: bool) -> None:
        redactor = redactor_of(self._surroundings.coordinator)
        session = self._surroundings.coordinator.session_id
        lines = []
        for message in messages:
            shown = redactor.redact(
                {"role": message.get("role"), "content": message.get("content")}
            )
            line = {"type": message.get("role"), "message": shown, "sessionId": session}
            lines.append(json.dumps(line, default=repr) + "\n")
        handle = open_private(Path(self.path))
        try:
            if anew:
                os.ftruncate(handle, 0)
            write_whole(handle, "".join(lines).encode("ascii"))
        finally:
            os.close(handle)
