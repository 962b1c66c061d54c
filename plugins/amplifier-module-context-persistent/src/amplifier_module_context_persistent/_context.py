"""The context: every message goes to a file first, and the memory holds what the file holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from logging import getLogger
from time import time
from typing import TYPE_CHECKING, Final, Self

from anyio import CancelScope, to_thread

from amplifier_kit.compaction import CompactingContext
from amplifier_kit.files.appendlog import AppendLog
from amplifier_kit.redaction import clean_messages
from amplifier_module_context_persistent._memory import (
    archive_of,
    read_memory,
    resolve,
    system_message,
    transcript_path,
)
from amplifier_module_context_persistent._records import (
    EPOCH,
    HOLDS,
    MESSAGE,
    check,
    epoch,
    messages_of,
)
from amplifier_module_context_persistent._retention import archive, retain
from amplifier_module_context_persistent._settings import PersistentConfig, Retention
from amplifier_sdk import ConfigError, Coordinator, JSONValue, MessageDict, Provider
from amplifier_sdk.configuration import read_config
from amplifier_sdk.contracts import Unregister
from amplifier_sdk.events import (
    CANCEL_COMPLETED,
    EXECUTION_END,
    ORCHESTRATOR_COMPLETE,
    SESSION_RESUME,
    SESSION_START,
    USER_NOTIFICATION,
    UserNotification,
)
from amplifier_sdk.stores import LogEntry

if TYPE_CHECKING:
    from amplifier_sdk.history import Repair

__all__ = ["PersistentContext", "mount"]

TURN_ENDS: Final = (ORCHESTRATOR_COMPLETE, EXECUTION_END, CANCEL_COMPLETED)
"""Events that end a turn; the last comes when the history of a cancelled one is closed."""

_log = getLogger("amplifier_module_context_persistent")


class PersistentContext(CompactingContext):
    """Keeps a conversation in an append-only file and shows views that fit the model.

    The memory is made of what the file holds, message by message, and the file is read once. `open` makes one,
    `aclose` ends it.
    """

    def __init__(
        self, config: PersistentConfig, coordinator: Coordinator, file: AppendLog
    ) -> None:
        super().__init__(config, coordinator)
        self._config = config
        self._file = file
        self._memory = [resolve(name, coordinator) for name in config.memory_files]
        self._is_loaded = False
        self._coordinator = coordinator
        self._hooks = coordinator.hooks
        self._handlers: list[Unregister] = []

    @classmethod
    async def open(cls, config: PersistentConfig, coordinator: Coordinator) -> Self:
        """Open the session's file and go on from what it holds, or begin it.

        Raises:
            LockedError: another session writes the file.
            LogFormatError: the file is none of a conversation, or a newer version's.
            ConfigError: the memory files cannot be read, or do not fit the budget.
            OSError: the system refuses.
        """
        file = await AppendLog.open(
            transcript_path(config.transcript_path, coordinator),
            holds=HOLDS,
            check=check,
            durability=config.durability,
            timeout=config.lock_timeout,
        )
        try:
            context = cls(config, coordinator, file)
            await context._begin()
        except BaseException:
            # the lock on the file is let go also where the opening is cancelled
            with CancelScope(shield=True):
                await file.aclose()
            raise
        # last: no handler stays registered for a context that could not begin
        context._listen()
        return context

    @property
    def file(self) -> AppendLog:
        """The open file."""
        return self._file

    @property
    def is_loaded(self) -> bool:
        """Whether the history was read from the file, which then is the authority."""
        return self._is_loaded

    async def add_message(self, message: MessageDict, /) -> None:
        """Store a message; when this returns it is in the file and in the memory, when it raises in neither.

        Raises:
            ValueError: it has no role, or it cannot be written as JSON.
            AppendError: it could not be stored; the file takes the next when the cause is gone.
        """
        self.check(message)
        clean = await clean_messages([message], self._coordinator)
        # the file first: what the memory had alone would be lost with the process
        await self._file.append(MESSAGE, message, written=clean and clean[0])
        self._take_in()

    async def set_messages(self, messages: Sequence[MessageDict], /) -> None:
        """Replace the history of a new conversation; one that was read from the file stays as it is.

        The file holds the whole history, an application's transcript perhaps a part. After `clear` a history is
        taken again.
        """
        if self._is_loaded:
            _log.info(
                "set_messages is ignored: the history was read from %s", self._file.path
            )
            return
        for message in messages:
            self.check(message)
        await self._start_epoch("given", messages)

    async def repair_messages(self, repair: Repair, /) -> None:
        """Put another history in the place of the one that there is, which stays in the file."""
        findings = [finding.to_dict() for finding in repair.findings]
        await self._start_epoch(
            "repaired" if findings else "replaced", repair.messages, findings=findings
        )

    async def clear(self) -> None:
        """Begin anew, as a new conversation does; the old messages stay in the file and are read no more.

        Raises:
            ConfigError: the memory files cannot be read, or do not fit the budget; then nothing changes.
            AppendError: it could not be stored; then nothing changes.
        """
        await self._start_epoch("cleared", await self._read_beginning())
        self._is_loaded = False

    async def get_messages_for_request(
        self, token_budget: int | None = None, provider: Provider | None = None
    ) -> list[MessageDict]:
        """Return a view that fits the budget, or the provider's window; the history stays whole."""
        self._take_in()
        return await super().get_messages_for_request(token_budget, provider)

    async def get_messages(self) -> list[MessageDict]:
        """Return the whole history."""
        self._take_in()
        return await super().get_messages()

    async def aclose(self) -> None:
        """Have everything on the disk, and let go of the file; a second call does nothing.

        Raises:
            OSError: the system failed to sync; the file is closed all the same.
        """
        while self._handlers:
            # first, so that no event reaches a file that is closed
            self._handlers.pop()()
        await self._file.aclose()

    # -- the file

    async def _begin(self) -> None:
        """Take over what the file holds, or write what a new conversation begins with."""
        if records := self._file.take():
            self._is_loaded = True
            for record in await self._retain(records, self._config.retention):
                self._apply(record)
        elif beginning := await self._read_beginning():
            await self._start_epoch("begun", beginning)

    async def _read_beginning(self) -> list[MessageDict]:
        """Return what a conversation begins with: the configured instructions and the memory files, as they are now."""
        config = self._config
        prompt = []
        if config.system_prompt is not None:
            prompt = [system_message(config.system_prompt)]
        if not self._memory:
            return prompt
        beginning = [
            *prompt,
            *await to_thread.run_sync(read_memory, self._memory, config.max_tokens),
        ]
        # counted here, or every view of the session would be over its budget
        tokens = sum(map(self._scale.count_message, beginning))
        if tokens > config.max_tokens:
            text = f"the conversation would begin with {tokens:,} tokens, and its budget is {config.max_tokens:,}"
            raise ConfigError.of(
                "memory_files", text, subject="configuration of context-persistent"
            )
        return beginning

    async def _retain(
        self, records: Sequence[LogEntry], retention: Retention
    ) -> Sequence[LogEntry]:
        """Move what the rules no longer want into the archive; return what there is to be read."""
        if retention.is_limited:
            retained = retain(records, retention, time())
            if retained.retired:
                target = archive_of(self._file.path)
                # before the file is replaced: a crash between the two doubles records,
                # and loses none
                await to_thread.run_sync(archive, target, retained.retired)
                await self._file.replace(retained.stays)
                _log.info(
                    "%d records of %s went to %s",
                    len(retained.retired),
                    self._file.path,
                    target,
                )
                records = retained.stays
        begins = max(
            (index for index, record in enumerate(records) if record.kind == EPOCH),
            default=0,
        )
        # an epoch replaces what came before it, so older records are not read
        return records[begins:]

    async def _start_epoch(
        self, reason: str, messages: Sequence[MessageDict], **details: JSONValue
    ) -> None:
        clean = await clean_messages(messages, self._coordinator)
        # nothing was taken out, so the file and the memory hold the same
        written = None
        if clean is not None:
            written = epoch(reason, clean, **details)
        await self._file.append(
            EPOCH, epoch(reason, messages, **details), written=written
        )
        self._take_in()

    def _take_in(self) -> None:
        """Put into the memory what was stored since the last time, also by a call that was cancelled meanwhile."""
        for record in self._file.take():
            self._apply(record)

    def _apply(self, record: LogEntry) -> None:
        messages = messages_of(record)
        if record.kind == EPOCH:
            self.replace(messages)
            return
        for message in messages:
            self.append(message)

    # -- the session

    def _listen(self) -> None:
        """Sync at the end of each turn, and say before the first one what was damaged."""
        # with `sync` each message is on the disk already
        if self._file.durability == "written":
            for end in TURN_ENDS:
                self._handlers.append(
                    self._hooks.register(
                        end, self._sync, name="context-persistent.sync"
                    )
                )
        if self._file.damage:
            for piece in self._file.damage:
                _log.warning("%s is damaged: %s", self._file.path, piece)
            # when the file is opened, nobody may be listening yet
            for start in (SESSION_START, SESSION_RESUME):
                self._handlers.append(
                    self._hooks.register(
                        start, self._report, name="context-persistent.damage"
                    )
                )

    async def _sync(self, _event: str, _data: Mapping[str, object]) -> None:
        await self._file.sync()

    async def _report(self, _event: str, _data: Mapping[str, object]) -> None:
        pieces = "; ".join(map(str, self._file.damage))
        message = f"The conversation's file {self._file.path} was damaged. The rest was read. {pieces}"
        payload = UserNotification(
            message=message, level="warning", source="context-persistent"
        )
        await self._hooks.emit(USER_NOTIFICATION, payload)


async def mount(
    coordinator: Coordinator, config: Mapping[str, JSONValue]
) -> PersistentContext:
    """Open the session's conversation; its file is closed when the session ends.

    Raises:
        ConfigError: the configuration does not fit.
        LockedError: another session writes the file.
        LogFormatError: the file is none of a conversation, or a newer version's.
        OSError: the system refuses.
    """
    settings = read_config(
        PersistentConfig, config, subject="configuration of context-persistent"
    )
    context = await PersistentContext.open(settings, coordinator)
    coordinator.register_cleanup(context.aclose)
    return context
