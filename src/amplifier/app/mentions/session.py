"""Mentions of a session: of its instruction and of what the person types, each told as an event."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeAlias

import attrs
from anyio import to_thread

from amplifier.app.collections.folders import CollectionLibrary
from amplifier.app.directories import AppDirs
from amplifier.app.instructions.files import INSTRUCTIONS_LOADED, Instructions
from amplifier.app.mentions.dedup import ContentDeduplicator
from amplifier.app.mentions.loader import (
    Batch,
    MentionLoader,
    prepend_context_to_markdown,
    shown_places,
)
from amplifier.app.mentions.resolver import MentionResolver, Writer
from amplifier.app.mentions.scanner import find_mentions
from amplifier.app.settings.schema import MentionSettings
from amplifier.kernel.coordinator import ModuleCoordinator
from amplifier_kit.commands import WrittenText
from amplifier_kit.open_data import as_object
from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.events import PROMPT_SUBMIT, PromptSubmit
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.messages import MessageDict

__all__ = ["AFTER_GUARDS", "MENTIONS_RESOLVED", "Resolved", "SessionMentions"]

MENTIONS_RESOLVED: Final = "mentions:resolved"
"""Sent once for each text with mentions; carries `where`, `summary` and `outcomes`."""

AFTER_GUARDS: Final = 900
"""The priority of what follows mentions: a prompt that a guard denies or changes is not followed as it was."""

_NO_INSTRUCTIONS: Final = Instructions()

Resolved: TypeAlias = tuple[str, str, Batch]
"""Where mentions stand, what is said of them first, and what they came to."""


@attrs.frozen
class _Expected:
    """The next turn's prompt, and what the person typed of it or wrote in a file."""

    prompt: str = ""
    typed: str = ""
    written: WrittenText | None = None


@attrs.define(eq=False)
class SessionMentions:
    """The mentions of one session.

    Args:
        dirs: where the person works.
        collections: the collections there are.
        limits: how much is loaded.
    """

    dirs: AppDirs
    collections: CollectionLibrary
    limits: MentionSettings = attrs.field(factory=MentionSettings)
    _loader: MentionLoader = attrs.field(init=False)
    _deduplicator: ContentDeduplicator = attrs.field(
        factory=ContentDeduplicator, init=False
    )
    _unreported: list[Resolved] = attrs.field(factory=list, init=False)
    _begun: Instructions = attrs.field(factory=Instructions, init=False)
    _expected: _Expected = attrs.field(factory=_Expected, init=False)

    def __attrs_post_init__(self) -> None:
        self._loader = MentionLoader(
            MentionResolver(self.dirs, self.collections), self.limits
        )

    def register(self, coordinator: ModuleCoordinator) -> None:
        """Follow what the person mentions, and offer the session's modules what finds mentions.

        What a prompt mentions enters before it, once every guard has let the prompt pass; so does what a text
        mentions that is typed while the agent works. The prompt of a child session was written by a model: nothing
        in it is followed.
        """

        async def follow(_: str, data: PromptSubmit) -> None:
            await self._report_beginning(coordinator)
            # Hooks hear the sessions that work for this one; their prompts were written
            # by a model.
            if data.get("session_id", coordinator.session_id) != coordinator.session_id:
                return
            for text, writer in self._texts(data):
                for message in await self.messages(text, writer, coordinator):
                    await coordinator.decisions.store(coordinator.context, message)

        # A child's prompt was typed by nobody: what it mentions is not looked for.
        coordinator.hooks.register(
            PROMPT_SUBMIT, follow, AFTER_GUARDS, "mentions", inherited=False
        )
        coordinator.register_capability("mention_resolver", self._loader.resolver)
        coordinator.register_capability("mention_deduplicator", self._deduplicator)
        events = [MENTIONS_RESOLVED, INSTRUCTIONS_LOADED]
        coordinator.register_contributor(
            "observability.events", "mentions", lambda: events
        )

    def begin_with(self, instructions: Instructions) -> None:
        """Note the files of instructions that the session begins with; its first turn reports them."""
        self._begun = instructions

    def expect(
        self, prompt: str, typed: str, written: WrittenText | None = None
    ) -> None:
        """Note which part of the next turn's prompt the person typed or wrote; what else stands in it is only text."""
        self._expected = _Expected(prompt, typed, written)

    def _texts(self, data: PromptSubmit) -> list[tuple[str, Writer]]:
        """Return what is followed of a prompt, and who wrote it; of one that a guard changed, the mentions it left."""
        prompt, person = data["prompt"], self._loader.resolver.writer()
        metadata = data.get("metadata", {})
        if metadata.get("steering"):
            if metadata.get("typed"):
                return [(prompt, person)]
            return []
        # Taken away: a second prompt in the same turn was typed by nobody.
        expected, self._expected = self._expected, _Expected()
        texts = [(expected.typed, person)]
        if expected.written is not None:
            # a command's file holds it where it has a place for it
            written = expected.written
            more = _mentions_in(written.text) - _mentions_in(expected.typed)
            texts.append((_only(written.text, more), Writer(written.folder)))
        # A guard that takes a mention out of a prompt takes it out of what is followed,
        # too.
        if prompt == expected.prompt:
            return texts
        left = _mentions_in(prompt)
        return [(_only(text, left), writer) for text, writer in texts]

    def forget(self) -> None:
        """Forget what the session was shown: its history was given up."""
        self._deduplicator.forget()

    def restore(self, messages: Sequence[Mapping[str, JSONValue]]) -> None:
        """Note what a resumed history shows already."""
        for message in messages:
            dirs = shown_places(as_object(message.get("metadata")))
            self._deduplicator.restore(dirs)

    async def instruction(
        self, text: str, folder: Path, instructions: Instructions = _NO_INSTRUCTIONS
    ) -> str:
        """Return an instruction with what it mentions before it, and before that the files of instructions.

        It is built anew for each session, so what it shows does not count as shown to later prompts: it has
        another role.

        Args:
            text: the body of a profile.
            folder: that of the profile.
            instructions: the files of instructions; one that the body mentions is shown once.
        """
        batch = await self._load(text, Writer(folder), ContentDeduplicator())
        if batch.outcomes:
            self._unreported.append(
                ("instruction", "Adding system instruction. ", batch)
            )
        shown = {
            place
            for message in batch.messages
            for place in shown_places(message.metadata)
        }
        standing = instructions.text(shown)
        whole = prepend_context_to_markdown(batch.messages, text)
        return "\n\n".join(part for part in (standing, whole) if part)

    async def messages(
        self, text: str, writer: Writer, coordinator: Coordinator
    ) -> list[MessageDict]:
        """Return the developer messages with what a text mentions and the session has not been shown yet."""
        batch = await self._load(text, writer, self._deduplicator)
        if batch.outcomes:
            await self._report(coordinator, ("prompt", "", batch))
        return [message.to_dict() for message in batch.messages]

    async def _load(
        self, text: str, writer: Writer, deduplicator: ContentDeduplicator
    ) -> Batch:
        # Most prompts mention nothing, and a thread costs more than this test.
        if "@" not in text:
            return Batch()
        return await to_thread.run_sync(self._loader.load, text, writer, deduplicator)

    async def _report_beginning(self, coordinator: Coordinator) -> None:
        """Emit what the session began with, once: before its first turn nobody has begun to listen."""
        begun, self._begun = self._begun, Instructions()
        if begun.files or begun.notices:
            await coordinator.hooks.emit(INSTRUCTIONS_LOADED, begun.to_dict())
        await self._report(coordinator, *self._unreported)
        self._unreported.clear()

    async def _report(self, coordinator: Coordinator, *resolved: Resolved) -> None:
        for where, before, batch in resolved:
            data = {
                "where": where,
                "summary": before + batch.summary(),
                "outcomes": [outcome.to_dict() for outcome in batch.outcomes],
            }
            await coordinator.hooks.emit(MENTIONS_RESOLVED, data)


def _mentions_in(text: str) -> frozenset[str]:
    return frozenset(mention.text for mention in find_mentions(text))


def _only(text: str, wanted: Collection[str]) -> str:
    return " ".join(
        mention.text for mention in find_mentions(text) if mention.text in wanted
    )
