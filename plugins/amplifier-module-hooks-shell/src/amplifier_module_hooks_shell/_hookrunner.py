"""Running the hooks of plugin folders that are about an event.

They find the conversation so far in a file, one JSON object a line, as hooks of Claude Code read it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from functools import partial
from logging import getLogger
from pathlib import Path
from typing import Final

import anyio

from amplifier_kit.claude_plugins import HookEntry
from amplifier_kit.files.handles import closing_handle
from amplifier_kit.files.private_append import open_private, write_whole
from amplifier_kit.redaction import redactor_of
from amplifier_module_hooks_shell._answers import HookOutput, read_ran
from amplifier_module_hooks_shell._loaded import LoadedPlugin
from amplifier_module_hooks_shell._observers import Observers
from amplifier_module_hooks_shell._process import InputError, write_input
from amplifier_module_hooks_shell._prompts import PromptEvaluator
from amplifier_module_hooks_shell._surroundings import HookEnvironment
from amplifier_module_hooks_shell._verdicts import HookReply, Verdicts
from amplifier_sdk.messages import MessageDict
from amplifier_sdk.threads import run_blocking

__all__ = ["HookRunner", "TranscriptFile"]

_AT_ONCE: Final = 8
_READERS: Final = frozenset({"Stop", "SubagentStop", "SessionEnd", "UserPromptSubmit"})
_DECIDING: Final = frozenset({"PreToolUse", "UserPromptSubmit"})
_log: Final = getLogger(__name__)


class HookRunner:
    """Runs the hooks of all plugins that are about an event, beside each other.

    Args:
        surroundings: where they run.
        plugins: whose they are.
        observers: where those run that nothing waits for.
    """

    def __init__(
        self,
        surroundings: HookEnvironment,
        plugins: Sequence[LoadedPlugin],
        observers: Observers,
    ) -> None:
        self._surroundings = surroundings
        self._observers = observers
        self._evaluate = PromptEvaluator(surroundings)
        self._transcript = TranscriptFile(surroundings)
        self._entries: dict[str, list[tuple[LoadedPlugin, HookEntry]]] = {}
        for loaded in plugins:
            for entry in loaded.plugin.hooks:
                self._entries.setdefault(entry.event, []).append((loaded, entry))

    def has(self, event: str) -> bool:
        """Tell whether there is a hook for an event."""
        return event in self._entries

    @property
    def observes(self) -> bool:
        """Whether there is a hook that nothing waits for."""
        return "Notification" in self._entries or any(
            entry.observes for entries in self._entries.values() for _, entry in entries
        )

    def longest(self, event: str) -> float:
        """Return the seconds that the hooks of an event may take."""
        return max(entry.timeout for _, entry in self._entries[event])

    async def observe(
        self, event: str, names: Sequence[str], data: Mapping[str, object]
    ) -> None:
        """Hand an event over to the hooks that are about it; nothing waits for them."""
        for loaded, entry in self._entries.get(event, ()):
            if entry.matches(names):
                await self._put(loaded, entry, event, data)

    async def ask(
        self,
        event: str,
        names: Sequence[str],
        data: Mapping[str, object],
        env: Mapping[str, str] | None = None,
    ) -> Verdicts:
        """Run the hooks that are about an event, and return what they said.

        Args:
            event: one of Claude Code's events.
            names: what matchers may say of it.
            data: its keys, besides those of every event.
            env: variables that they are given besides.
        """
        chosen = []
        for loaded, entry in self._entries.get(event, ()):
            if not entry.matches(names):
                continue
            if entry.observes:
                await self._put(loaded, entry, event, data)
            else:
                chosen.append((loaded, entry))
        if not chosen:
            return Verdicts(())
        # The others are not promised the file, and writing it takes time before each
        # tool call.
        if event in _READERS:
            await self._transcript.write()
        # By place, so that the verdict does not depend on which hook ends first.
        answers: list[HookOutput] = [HookOutput()] * len(chosen)
        limiter = anyio.CapacityLimiter(_AT_ONCE)

        async def run(place: int) -> None:
            loaded, entry = chosen[place]
            async with limiter:
                answers[place] = await self._run(loaded, entry, event, data, env or {})

        if len(chosen) == 1:
            await run(0)
        else:
            async with anyio.create_task_group() as group:
                for place in range(len(chosen)):
                    group.start_soon(run, place)
        return Verdicts(
            [
                HookReply(loaded=loaded, entry=entry, answer=answers[place])
                for place, (loaded, entry) in enumerate(chosen)
            ]
        )

    async def _put(
        self,
        loaded: LoadedPlugin,
        entry: HookEntry,
        event: str,
        data: Mapping[str, object],
    ) -> None:
        await self._observers.put(partial(self._look, loaded, entry, event, dict(data)))

    async def _look(
        self,
        loaded: LoadedPlugin,
        entry: HookEntry,
        event: str,
        data: Mapping[str, object],
    ) -> None:
        answer = await self._run(loaded, entry, event, data, {})
        problem = answer.failure or answer.warning
        if problem:
            _log.warning(
                "%s: a hook of %s: %s",
                loaded.label,
                event,
                self._surroundings.shown(problem),
            )

    async def _run(
        self,
        loaded: LoadedPlugin,
        entry: HookEntry,
        event: str,
        data: Mapping[str, object],
        env: Mapping[str, str],
    ) -> HookOutput:
        fields = {**self._common(event), **data}
        if entry.kind == "prompt":
            return await self._evaluate.ask(entry, fields)
        config = self._surroundings.config
        try:
            text = write_input(
                # A blocking hook that reads half of a command could allow the other
                # half.
                fields,
                config.max_input_bytes,
                may_cut=event not in _DECIDING,
            )
        except InputError as error:
            return HookOutput(failure=str(error))
        ran = await self._surroundings.run(
            entry.text,
            input=text,
            timeout=entry.timeout,
            env={**loaded.variables, **env},
            loaded=loaded,
        )
        return read_ran(ran, strict=config.strict)

    def _common(self, event: str) -> dict[str, object]:
        return {
            "session_id": self._surroundings.coordinator.session_id,
            "transcript_path": self._transcript.path,
            "cwd": self._surroundings.directory,
            "permission_mode": "default",
            "hook_event_name": event,
        }


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
        start = 0
        if self._written <= len(messages):
            start = self._written
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
        with closing_handle(open_private(Path(self.path))) as handle:
            if anew:
                os.ftruncate(handle, 0)
            write_whole(handle, "".join(lines).encode("ascii"))
