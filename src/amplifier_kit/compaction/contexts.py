"""The context that compacts: an append-only history, and views of it that fit a model.

Compaction never touches the history. What is shortened or left out is decided once, when a view is too large,
and stays so: until then each view is the one before it with the new messages behind, byte for byte, so that a
vendor's prompt cache stays warm.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from inspect import isawaitable, iscoroutinefunction
from typing import TYPE_CHECKING, Final, TypeAlias

from amplifier_kit.compaction.meters import most_tokens
from amplifier_kit.compaction.options import CompactionOptions
from amplifier_kit.compaction.scales import Scale
from amplifier_kit.compaction.shown import ShownLog
from amplifier_sdk.chat import ModelInfo
from amplifier_sdk.contracts import Coordinator, Provider
from amplifier_sdk.errors import did_you_mean
from amplifier_sdk.events import SESSION_FORK, SESSION_RESUME, SESSION_START
from amplifier_sdk.history import MessageLog
from amplifier_sdk.messages import MessageDict

if TYPE_CHECKING:
    from amplifier_kit.compaction.compactor import Compactor
    from amplifier_sdk.compaction import CompactionResult

__all__ = ["CompactingContext", "SystemPromptFactory"]

SystemPromptFactory: TypeAlias = Callable[[], Awaitable[str] | str]
"""Makes the instructions of one request, sync or async."""

WATCHED: Final = 0.5
"""The part of the threshold from which on the usage that providers report is heard; before it, nobody has to know."""

SAFETY_MARGIN: Final = 4_096
"""Tokens reserved in a provider's window: what hooks inject, and what a vendor adds."""

SMALL_WINDOW: Final = 8
"""The margin is at most this part of a window."""

_RESULT_ROLES: Final = frozenset({"tool", "function"})


class CompactingContext:
    """Keeps every message in memory and shows views that fit.

    A subclass that stores messages elsewhere overrides `add_message`, `set_messages` and `clear`: it calls `check` and
    writes, then calls `append` or `replace`, which never wait and fail only for a message that is none.

    Args:
        options: when and how views are compacted.
        coordinator: the session's. There are registered: the capability `context.left_out`, a tool that reads what is
            left out, and `context.pin`, a function that keeps a call and its result, given the call's id.
        history: the messages to begin with.

    Raises:
        ConfigError: `token_meter` names one that needs a package which is not installed.
        ValueError: one of the messages has no role.
    """

    def __init__(
        self,
        options: CompactionOptions,
        coordinator: Coordinator,
        history: Sequence[MessageDict] = (),
    ) -> None:
        self._options = options
        self._coordinator = coordinator
        self._scale = Scale(options, coordinator)
        self._watched = options.threshold * WATCHED
        self._most_bytes = options.max_tool_result_bytes
        self._pinned: set[str] = set()
        self._factory: SystemPromptFactory | None = None
        self.replace(history)
        coordinator.register_capability("context.pin", self.pin)
        self._offer_left_out()
        if options.summary_provider is not None:
            for event in (SESSION_START, SESSION_RESUME, SESSION_FORK):
                coordinator.hooks.register(
                    event, self._check_summarizer, name="context", decides=False
                )

    @property
    def log(self) -> MessageLog:
        """The whole history."""
        return self._log

    @property
    def left_out(self) -> Sequence[tuple[int, int]]:
        """The numbers of the messages that views do not show by now, as ranges (first, last), both included."""
        return self._shown.left_out

    def check(self, message: MessageDict) -> None:
        """Refuse what cannot be stored.

        Raises:
            ValueError: the message has no role.
        """
        if not isinstance(message.get("role"), str):
            raise ValueError(f"A message needs a 'role'; got {message!r:.200}")

    def append(self, message: MessageDict) -> None:
        """Append a message; it is stored unchanged.

        Raises:
            ValueError: it has no role.
        """
        role = message.get("role")
        if not isinstance(role, str):
            self.check(message)
        self._log.append(message)
        limit = most_tokens(message)
        # A text has no more bytes than `most` says.
        # the bound spares nearly all messages from being measured
        if limit <= self._most_bytes or role not in _RESULT_ROLES:
            self._shown.added(message, message, limit)
        else:
            # only large results need it
            from amplifier_kit.compaction.truncation import limited

            number = len(self._log) - 1
            self._shown.added(message, limited(message, self._most_bytes, number))

    def replace(self, messages: Sequence[MessageDict]) -> None:
        """Put other messages in the place of all; what was left out of the old ones is forgotten.

        Raises:
            ValueError: one has no role; then the old ones stay.
        """
        # all are checked before the first is stored, so that a refusal changes
        # nothing
        new = list(messages)
        for message in new:
            self.check(message)
        self._log = MessageLog()
        self._shown = ShownLog(self._log, self._scale.count_message)
        self._compactor: Compactor | None = None
        for message in new:
            self.append(message)

    async def add_message(self, message: MessageDict, /) -> None:
        """Append a message.

        Raises:
            ValueError: it has no role.
        """
        self.append(message)

    async def get_messages_for_request(
        self, token_budget: int | None = None, provider: Provider | None = None
    ) -> list[MessageDict]:
        """Return a view that fits the budget, or the provider's window; the history stays whole.

        What cannot be made to fit is shown all the same, and a `user:notification` says what takes the room.
        """
        if self._factory is not None:
            text = self._factory()
            if isawaitable(text):
                text = await text
            self._shown.begin_with({"role": "system", "content": text})
        if token_budget is None:
            token_budget = _budget_of(provider, self._options)
        # a bound without counting: most requests are far below the limit
        if self._scale.most(self._shown, provider) > token_budget * self._watched:
            compactor = self._compacting()
            if compactor.is_needed(token_budget, provider):
                await compactor.fit(token_budget, provider)
            self._scale.asks(provider, self._shown.tokens + self._scale.tools)
        return self._shown.view()

    async def get_messages(self) -> list[MessageDict]:
        """Return the whole history."""
        return self._log.view()

    async def set_messages(self, messages: Sequence[MessageDict], /) -> None:
        """Replace the history."""
        self.replace(messages)

    async def clear(self) -> None:
        """Forget everything."""
        self.replace(())

    async def get_token_count(self) -> int:
        """Return the estimated tokens of the whole history."""
        return self._shown.history_tokens

    async def should_compact(
        self, token_budget: int | None = None, provider: Provider | None = None
    ) -> bool:
        """Tell whether the next view would be compacted."""
        if token_budget is None:
            token_budget = _budget_of(provider, self._options)
        return self._compacting().is_needed(token_budget, provider)

    async def compact(self) -> CompactionResult:
        """Show the model less from now on: `target_usage` of what it sees; the history stays whole."""
        return await self._compacting().compact()

    async def set_system_prompt_factory(
        self, factory: SystemPromptFactory | None
    ) -> None:
        """Show what a function returns before everything else, asked for each view; `None` ends that.

        It is not stored. As long as it is the same text, views begin with the same bytes.
        """
        self._factory = factory
        if factory is None:
            self._shown.begin_with(None)

    def pin(self, tool_call_id: str) -> None:
        """Keep a call and its result in every view, whole."""
        self._pinned.add(tool_call_id)

    def _compacting(self) -> Compactor:
        if self._compactor is None:
            # most sessions stay small
            from amplifier_kit.compaction.compactor import Compactor

            self._compactor = Compactor(
                self._options,
                self._coordinator,
                scale=self._scale,
                log=self._log,
                shown=self._shown,
                pinned=self._pinned,
            )
        return self._compactor

    async def _check_summarizer(self, _: str, __: Mapping[str, object]) -> None:
        """Warn when a session begins, when all is mounted, of a `summary_provider` that summarises nothing."""
        name, strategy = self._options.summary_provider, self._options.strategy
        mounted = self._coordinator.get("providers")
        problem = None
        if strategy != "summarize":
            problem = f"the strategy is {strategy!r}; only 'summarize' asks a provider"
        elif isinstance(mounted, Mapping) and name not in mounted:
            hint = did_you_mean(str(name), list(mounted))
            known = ", ".join(mounted) or "none"
            problem = f"no such provider is mounted{hint or f'; mounted: {known}'}"
        if problem is not None:
            from amplifier_kit.compaction.reports import warn

            await warn(
                self._coordinator.hooks,
                f"'summary_provider' {name!r} has no effect: {problem}",
            )

    def _offer_left_out(self) -> None:
        from amplifier_kit.compaction.left_out import CAPABILITY, LeftOut

        tool = LeftOut(self)
        self._coordinator.register_capability(CAPABILITY, tool)
        if self._options.left_out_tool:
            self._coordinator.mount("tools", tool, name=tool.name)  # type: ignore[unused-awaitable]  # it is there now


def _budget_of(provider: Provider | None, options: CompactionOptions) -> int:
    """Return the tokens that a request to a provider may have.

    The window is the one that the provider's `get_model_info()` names, if it has that method and it answers with
    a `ModelInfo`, else the one of its `get_info().defaults`; without any the budget is `max_tokens`. From the
    window go the reserve for the answer and a margin.
    """
    if provider is None:
        return options.max_tokens
    ask: Callable[[], object] | None = getattr(provider, "get_model_info", None)
    window = (None if ask is None else _model_window(ask)) or _default_window(provider)
    if window is None:
        return options.max_tokens
    size, answer = window
    margin = min(SAFETY_MARGIN, size // SMALL_WINDOW)
    return max(1, size - int(answer * options.output_reserve_fraction) - margin)


def _model_window(ask: Callable[[], object]) -> tuple[int, int] | None:
    if iscoroutinefunction(ask):  # a budget is worked out without waiting
        return None
    try:
        info = ask()
    except Exception:
        # foreign code: a provider that cannot say what it is may still answer
        return None
    if isinstance(info, ModelInfo):
        return (info.context_window, info.max_output_tokens)
    return None


def _default_window(provider: Provider) -> tuple[int, int] | None:
    try:
        defaults = provider.get_info().defaults
    except Exception:  # foreign code, as above
        return None
    size, answer = defaults.get("context_window"), defaults.get("max_output_tokens")
    if isinstance(size, int) and isinstance(answer, int):
        return (size, answer)
    return None
