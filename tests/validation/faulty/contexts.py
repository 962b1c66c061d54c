"""Contexts that break what holds of contexts: each entry fails at least the behaviour it stands under."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import anyio
import anyio.lowlevel

from amplifier.validation.behaviors import Subject
from amplifier_sdk import Coordinator
from amplifier_sdk.contracts import Provider
from amplifier_sdk.history import Repair
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.messages import Message, MessageDict
from tests.validation.behaviors.sound import Notebook, counts

__all__ = ["FAULTY"]


def _of(cls: type[Notebook]) -> Subject:
    return Subject(kind="context", module=cls)


def _storing(change: Callable[[MessageDict], MessageDict | None]) -> Subject:
    """Make a context that changes messages as it stores them, or drops them."""

    class Storing(Notebook):
        async def add_message(self, message: MessageDict, /) -> None:
            changed = change(message)
            if changed is not None:
                await super().add_message(changed)

    return _of(Storing)


def _showing(
    change: Callable[[list[MessageDict], int], list[MessageDict]],
) -> Subject:
    """Make a context that changes its views; the change is told the budget."""

    class Showing(Notebook):
        async def get_messages_for_request(
            self, token_budget: int | None = None, provider: Provider | None = None
        ) -> list[MessageDict]:
            view = list(await super().get_messages_for_request(token_budget, provider))
            return change(view, self.budget(token_budget, provider))

    return _of(Showing)


def _through_messages(message: MessageDict) -> MessageDict:
    """Store what a typed message keeps of it."""
    return Message.from_dict(message).to_dict()


def _without(key: str) -> Callable[[MessageDict], MessageDict]:
    return lambda message: {
        name: value for name, value in message.items() if name != key
    }


def _only(*keys: str) -> Callable[[MessageDict], MessageDict]:
    return lambda message: {
        name: value for name, value in message.items() if name in keys
    }


def _text(change: Callable[[str], str]) -> Callable[[MessageDict], MessageDict]:
    """Change the text of messages that are plain text."""

    def changed(message: MessageDict) -> MessageDict:
        content = message.get("content")
        return (
            {**message, "content": change(content)}
            if isinstance(content, str)
            else message
        )

    return changed


def _blocks(kind: str) -> Callable[[MessageDict], MessageDict]:
    """Drop content blocks of a type."""

    def changed(message: MessageDict) -> MessageDict:
        content = message.get("content")
        if not isinstance(content, list):
            return message
        return {
            **message,
            "content": [part for part in content if part.get("type") != kind],
        }

    return changed


def _tidy(value: JSONValue) -> JSONValue:
    """Drop what is empty, and make numbers floats."""
    if isinstance(value, Mapping):
        return {
            str(key): _tidy(part)
            for key, part in value.items()
            if part not in (None, "", [], {})
        }
    if isinstance(value, list):
        return [_tidy(part) for part in value]
    return (
        float(value)
        if isinstance(value, int) and not isinstance(value, bool)
        else value
    )


def _tidied(message: MessageDict) -> MessageDict:
    return {
        key: _tidy(value)
        for key, value in message.items()
        if key == "content" or value not in ([], {}, "", None)
    }


def _no_role(*roles: str) -> Callable[[MessageDict], MessageDict | None]:
    return lambda message: None if message["role"] in roles else message


def _annotated(message: MessageDict) -> MessageDict:
    message["stored"] = True
    return message


KEEPS: Final[Mapping[str, Callable[[MessageDict], MessageDict | None]]] = {
    "plain-texts": _text(str.upper),
    "empty-texts": lambda message: message if message.get("content") else None,
    "missing-contents": lambda message: {
        **message,
        "content": message.get("content") or "",
    },
    "instructions": _no_role("system"),
    "developer-messages": _no_role("developer"),
    "content-blocks": _blocks("text"),
    "empty-contents": lambda message: {
        **message,
        "content": message.get("content") or "",
    },
    "images": _blocks("image"),
    "thinking-signatures": _blocks("thinking"),
    "redacted-thinking": _blocks("redacted_thinking"),
    "reasoning-items": _blocks("reasoning"),
    "unknown-blocks": _blocks("server_tool_use"),
    "vendor-fields": _only("role", "content"),
    "calls-in-blocks": _blocks("tool_call"),
    "calls-beside-contents": _through_messages,
    "tool-results": _without("tool_call_id"),
    "tool-results-of-the-older-role": _through_messages,
    "metadata": _without("metadata"),
    "names": _without("name"),
    "any-script": _text(lambda text: unicodedata.normalize("NFC", text)),
    "control-characters": _text(lambda text: text.replace("\x00", "")),
    "broken-characters": _text(lambda text: text.encode("utf-8", "replace").decode()),
    "numbers": _tidied,
    "booleans-and-nulls": lambda message: json.loads(
        json.dumps(message).replace("true", "1")
    ),
    "empty-values": _tidied,
    "nested-values": lambda message: (
        {**message, "deep": str(message.get("deep"))} if "deep" in message else message
    ),
    "long-texts": _text(lambda text: text[:100_000]),
    "odd-keys": lambda message: {
        key: value for key, value in message.items() if key.isidentifier()
    },
}
"""What a context loses that does not keep these messages."""


class Presumptuous(Notebook):
    """Starts with an answer."""

    def __init__(self, coordinator: Coordinator) -> None:
        super().__init__(coordinator)
        self.messages.append({"role": "assistant", "content": "How can I help?"})


class Reversed(Notebook):
    """Puts the newest first."""

    async def add_message(self, message: MessageDict, /) -> None:
        self.messages.insert(0, message)


class Distinct(Notebook):
    """Stores each message once."""

    async def add_message(self, message: MessageDict, /) -> None:
        if message not in self.messages:
            await super().add_message(message)


class Lenient(Notebook):
    """Takes messages without a role."""

    async def add_message(self, message: MessageDict, /) -> None:
        self.messages.append(message)


class Once(Notebook):
    """Returns what can be walked once."""

    async def get_messages(self) -> list[MessageDict]:
        return iter(self.messages)  # type: ignore[return-value]

    async def get_messages_for_request(
        self, token_budget: int | None = None, provider: Provider | None = None
    ) -> list[MessageDict]:
        return iter(self.messages)  # type: ignore[return-value]


class Open(Notebook):
    """Gives out its store, and keeps what it is given."""

    async def get_messages(self) -> list[MessageDict]:
        return self.messages

    async def set_messages(self, messages: Sequence[MessageDict], /) -> None:
        self.messages = messages  # type: ignore[assignment]


class Stubborn(Notebook):
    """Adds what it is given to what it has, and forgets nothing."""

    async def set_messages(self, messages: Sequence[MessageDict], /) -> None:
        self.messages += messages

    async def clear(self) -> None:
        """Forget nothing."""


class Hasty(Notebook):
    """Drops its history before it reads the new one."""

    async def get_messages(self) -> list[MessageDict]:
        return self.messages

    async def set_messages(self, messages: Sequence[MessageDict], /) -> None:
        self.messages.clear()
        self.messages += messages


class Closed(Notebook):
    """Works no more once it was set or cleared."""

    closed = False

    async def add_message(self, message: MessageDict, /) -> None:
        if self.closed:
            raise RuntimeError("closed")
        await super().add_message(message)

    async def set_messages(self, messages: Sequence[MessageDict], /) -> None:
        await super().set_messages(messages)
        self.closed = True

    async def clear(self) -> None:
        await super().clear()
        self.closed = True


class Walking(Notebook):
    """Walks its history for each message."""

    async def add_message(self, message: MessageDict, /) -> None:
        await super().add_message(message)
        sum(len(stored) for stored in self.messages)


class Racing(Notebook):
    """Loses what is added meanwhile."""

    async def add_message(self, message: MessageDict, /) -> None:
        messages = [*self.messages, message]
        await anyio.lowlevel.checkpoint()
        self.messages = messages


class Halving(Notebook):
    """Stores a half of a message first."""

    async def add_message(self, message: MessageDict, /) -> None:
        half: MessageDict = {"role": message["role"], "content": ""}
        self.messages.append(half)
        await anyio.lowlevel.checkpoint()
        half.update(message)


class Deaf(Notebook):
    """Is told of repairs, and goes on with the history as it was."""

    async def repair_messages(self, repair: Repair, /) -> None:
        pass


class Absent(Notebook):
    """Takes a repair, and shows what it was before."""

    async def repair_messages(self, repair: Repair, /) -> None:
        self.before = await self.get_messages()
        await self.set_messages(repair.messages)

    async def get_messages_for_request(
        self, token_budget: int | None = None, provider: Provider | None = None
    ) -> list[MessageDict]:
        return self.before


class Miscounting(Notebook):
    """Counts nothing."""

    async def get_token_count(self) -> int:
        return -1


class Forgetful(Notebook):
    """Deletes what it leaves out."""

    async def get_messages_for_request(
        self, token_budget: int | None = None, provider: Provider | None = None
    ) -> list[MessageDict]:
        view = list(await super().get_messages_for_request(token_budget, provider))
        self.messages = list(view)
        return view

    async def compact(self) -> None:
        self.messages = self.messages[-2:]


class Boundless(Notebook):
    """Knows no budget."""

    def budget(self, named: int | None, provider: Provider | None) -> int:
        return 10**9


class ProviderFirst(Notebook):
    """Looks at the provider before the named budget."""

    def budget(self, named: int | None, provider: Provider | None) -> int:
        return (
            super().budget(None, provider)
            if provider is not None
            else super().budget(named, None)
        )


class Trusting(Notebook):
    """Takes a window for granted."""

    def budget(self, named: int | None, provider: Provider | None) -> int:
        if named is not None or provider is None:
            return super().budget(named, None)
        window = provider.get_info().defaults["context_window"]
        assert isinstance(window, int)
        return window


class Talkative(Notebook):
    """Announces that it shortens with every view."""

    async def announce(self, left_out: int, shown: int) -> None:
        await self.hooks.emit("context:pre_compact", counts(left_out + shown))


class Tearing(Notebook):
    """Works on its own store while others add to it, and forgets where it was when it is cancelled."""

    async def get_messages_for_request(
        self, token_budget: int | None = None, provider: Provider | None = None
    ) -> list[MessageDict]:
        held, self.messages = self.messages, []
        await anyio.lowlevel.checkpoint()
        self.messages = held
        return await super().get_messages_for_request(token_budget, provider)


class Common(Notebook):
    """Shares its messages with all sessions."""

    everything: Final[list[MessageDict]] = []

    def __init__(self, coordinator: Coordinator) -> None:
        super().__init__(coordinator)
        self.messages = self.everything


class Fickle(Notebook):
    """Shows something else each time."""

    asked = 0

    async def get_messages_for_request(
        self, token_budget: int | None = None, provider: Provider | None = None
    ) -> list[MessageDict]:
        self.asked += 1
        view = list(await super().get_messages_for_request(token_budget, provider))
        return view[self.asked % 2 :]


class Frozen(Notebook):
    """Shows the same view for ever once it has shortened one."""

    shown: list[MessageDict] | None = None

    async def get_messages_for_request(
        self, token_budget: int | None = None, provider: Provider | None = None
    ) -> list[MessageDict]:
        if self.shown is None:
            self.shown = list(
                await super().get_messages_for_request(token_budget, provider)
            )
        return self.shown


def _short(view: list[MessageDict], budget: int) -> list[MessageDict]:
    """Cut a view without looking at what belongs together, when the budget is small."""
    return (
        view if budget > 10_000 else view[-(budget // 100) :] if budget >= 100 else []
    )


def _latest_three(view: list[MessageDict], budget: int) -> list[MessageDict]:
    return view if budget > 10_000 else view[-3:]


def _unpaired(view: list[MessageDict], budget: int) -> list[MessageDict]:
    return [message for message in view if message["role"] != "tool"]


def _without_a_second_result(view: list[MessageDict], budget: int) -> list[MessageDict]:
    return [
        message
        for message in view
        if not str(message.get("tool_call_id")).endswith("_2")
    ]


def _until_a_note(view: list[MessageDict], budget: int) -> list[MessageDict]:
    """Keep of each call only what stands right behind it."""
    saved: list[MessageDict] = []
    for message in view:
        if message["role"] == "tool" and saved and "metadata" in saved[-1]:
            continue
        saved.append(message)
    return saved


FAULTY: Final[Mapping[str, Subject]] = {
    **{f"context.keeps-{name}": _storing(change) for name, change in KEEPS.items()},
    "context.starts-with-instructions-at-most": _of(Presumptuous),
    "context.keeps-the-order": _of(Reversed),
    "context.keeps-repeated-messages": _of(Distinct),
    "context.keeps-a-mixed-history": _storing(_only("role", "content")),
    "context.leaves-added-messages-alone": _storing(_annotated),
    "context.refuses-a-message-without-a-role": _of(Lenient),
    "context.returns-a-sequence": _of(Once),
    "context.gives-out-no-handle-on-its-store": _of(Open),
    "context.gives-out-the-history-of-the-moment": _of(Open),
    "context.can-be-given-a-history": _of(Stubborn),
    "context.can-be-given-an-empty-history": _of(Stubborn),
    "context.can-be-given-its-own-history": _of(Hasty),
    "context.keeps-no-handle-on-a-given-list": _of(Open),
    "context.goes-on-from-a-given-history": _of(Closed),
    "context.can-be-cleared": _of(Stubborn),
    "context.works-after-it-was-cleared": _of(Closed),
    "context.keeps-ten-thousand-messages": _of(Walking),
    "context.keeps-messages-added-at-once": _of(Racing),
    "context.survives-a-cancelled-add": _of(Halving),
    "context.keeps-roles-it-does-not-know": _storing(_no_role("critic")),
    "context.counts-its-tokens": _of(Miscounting),
    "context.takes-a-repair": _of(Deaf),
    "context.goes-on-from-a-repair": _of(Absent),
    "context.shows-everything-that-fits": _showing(lambda view, budget: view[1:]),
    "context.shows-a-sequence": _of(Once),
    "context.keeps-the-history-when-it-shortens": _of(Forgetful),
    "context.stays-within-its-budget": _of(Boundless),
    "context.stays-within-the-window-of-the-provider": _of(Boundless),
    "context.prefers-the-budget-that-is-named": _of(ProviderFirst),
    "context.survives-a-provider-that-cannot-say-what-it-is": _of(Trusting),
    "context.survives-a-provider-without-a-window": _of(Trusting),
    "context.survives-any-budget": _showing(_short),
    "context.always-shows-its-instructions": _showing(_latest_three),
    "context.always-shows-the-latest-prompt": _showing(lambda view, budget: view[:-1]),
    "context.always-shows-the-running-step": _showing(lambda view, budget: view[-1:]),
    "context.keeps-calls-with-their-results": _showing(_unpaired),
    "context.keeps-calls-in-blocks-with-their-results": _showing(_unpaired),
    "context.keeps-parallel-calls-with-their-results": _showing(
        _without_a_second_result
    ),
    "context.keeps-pairs-across-injected-messages": _showing(_until_a_note),
    "context.shows-what-a-request-can-carry": _showing(
        lambda view, budget: [{"role": "note"}, *view]
    ),
    "context.shows-messages-in-their-order": _showing(lambda view, budget: view[::-1]),
    "context.shows-the-same-twice": _of(Fickle),
    "context.shows-what-is-added-after-it-shortened": _of(Frozen),
    "context.begins-with-a-prompt": _showing(
        lambda view, budget: [{"role": "assistant", "content": "Hm."}, *view]
    ),
    "context.announces-that-it-shortens": _of(Talkative),
    "context.announces-nothing-when-all-fits": _of(Talkative),
    "context.survives-a-broken-history": _showing(_short),
    "context.shows-a-view-while-messages-are-added": _of(Tearing),
    "context.survives-a-cancelled-view": _of(Tearing),
    "context.keeps-the-history-when-told-to-compact": _of(Forgetful),
    "context.serves-turns": _showing(lambda view, budget: view[-1:]),
    "context.serves-a-resumed-session": _showing(lambda view, budget: view[-1:]),
    "context.keeps-sessions-apart": _of(Common),
}
