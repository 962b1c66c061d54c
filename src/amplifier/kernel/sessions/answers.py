"""What an answer has to be, and the hook that lets a turn end with nothing less."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from inspect import isawaitable
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, TypeVar, cast

import attrs

from amplifier.kernel.hooks.dispatcher import HookDispatcher
from amplifier.kernel.sessions.output_errors import OutputError, OutputRejectedError
from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.errors import OutputMisfitError, ToolError
from amplifier_sdk.events import PROMPT_SUBMIT, PromptSubmit
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.loops.events import STOPPING, Stopping
from amplifier_sdk.middleware import OutputAttempt, event_of
from amplifier_sdk.output_schema import OutputCall
from amplifier_sdk.results import HookResult
from amplifier_sdk.run_context import RUN_CONTEXT, RunContext, RunContextMaker

if TYPE_CHECKING:
    from amplifier.kernel.coordinator import ModuleCoordinator
    from amplifier_sdk.chat import Usage
    from amplifier_sdk.output_schema import OutputSchema

__all__ = ["AnswerCheck", "OutputMode", "OutputValidator"]

OutputMode: TypeAlias = Literal["auto", "schema", "tool", "text"]
"""How a model is asked for an answer of a type; `auto` is the best way that the provider says it has."""

_NAME: Final = "output"
_AROUND: Final = event_of("output")
_REJECTIONS: Final = (OutputMisfitError, OutputRejectedError, ToolError)
"""What the model can mend."""

DepsT = TypeVar("DepsT")
OutputT = TypeVar("OutputT")

OutputValidator: TypeAlias = Callable[
    [RunContext[DepsT], OutputT], OutputT | Awaitable[OutputT]
]
"""Returns the answer, or another one in its place; sync or async. It raises `OutputRejectedError` with what the model
has to do better; whatever else it raises ends the run."""


@attrs.define(eq=False)
class _Outcome:
    """What became of the answers of one turn; `seen` is the last one that was checked."""

    problems: list[str] = attrs.field(factory=list)
    seen: str | None = None
    is_accepted: bool = False
    value: object = None
    error: Exception | None = None


@attrs.frozen(eq=False)
class AnswerCheck:
    """Keeps an agent at work until its answer is of the wanted type and nobody rejects it; a hook module as well.

    Attempts are parts of one turn, so that the turn's limits hold for all of them together.

    Args:
        wanted: the type; `None` is text.
        validators: the application's own checks, each of which gets what the one before returned.
        retries: how often the model may try again.
        mode: how the model is asked for it.
    """

    wanted: OutputSchema[object] | None
    validators: tuple[OutputValidator[object, object], ...] = ()
    retries: int = 2
    mode: OutputMode = "auto"
    _outcomes: dict[str, _Outcome] = attrs.field(factory=dict, init=False)

    async def mount(
        self, coordinator: Coordinator, _config: Mapping[str, JSONValue]
    ) -> object:
        """Register the handlers of one session."""
        hooks = coordinator.hooks
        if self.wanted is not None:
            coordinator.register_cleanup(
                hooks.register(PROMPT_SUBMIT, self._ask, name=_NAME)
            )
        handler = partial(self._check, coordinator)
        return hooks.register(STOPPING, handler, name=_NAME)

    @contextmanager
    def registered(self, coordinator: ModuleCoordinator) -> Iterator[None]:
        """Check the answers of a session in the block; those of its children are for itself."""
        handler = partial(self._check, coordinator)
        unregister = coordinator.hooks.register(
            STOPPING, handler, name=_NAME, inherited=False
        )
        try:
            yield
        finally:
            unregister()

    @property
    def metadata(self) -> JSONObject:
        """What asks the model for such answers, in the metadata of a turn."""
        if self.wanted is None:
            return {}
        form: JSONObject = {
            "type": "json_schema",
            "name": self.wanted.name,
            "schema": self.wanted.schema,
        }
        return {"response_format": form, "output_mode": self.mode}

    async def _ask(self, _: str, data: PromptSubmit) -> HookResult | None:
        """Ask for such answers in a turn that nobody else asks so: one that a model starts."""
        before = data.get("metadata") or {}
        if "response_format" in before:
            return None
        return HookResult.modify({"metadata": {**before, **self.metadata}})

    async def take(
        self, coordinator: Coordinator, text: str, usage: Usage | None
    ) -> object:
        """Return the value of the answer with which a turn ended.

        Args:
            coordinator: of the session that ran it.
            text: the answer.
            usage: what the turn has used.

        Raises:
            OutputError: it does not fit, or was rejected.
            Exception: whatever a validator raised.
        """
        outcome = self._outcomes.pop(coordinator.session_id, _Outcome())
        if outcome.error is not None:
            raise outcome.error
        if outcome.is_accepted and outcome.seen == text:
            return outcome.value
        # not every loop asks before it ends a turn, and none does at a limit
        if outcome.seen != text:
            try:
                return await self._read(coordinator, text, len(outcome.problems) + 1)
            except _REJECTIONS as misfit:
                outcome.problems.append(str(misfit))
        raise OutputError(text, tuple(outcome.problems), usage)

    def forget(self, session_id: str) -> tuple[str, ...]:
        """Return what is wrong with the answers of a child's turn; nothing where its last one was accepted."""
        outcome = self._outcomes.pop(session_id, _Outcome())
        if outcome.error is not None:
            raise outcome.error
        return () if outcome.is_accepted else tuple(outcome.problems)

    async def _check(
        self, coordinator: Coordinator, _: str, data: Stopping
    ) -> HookResult | None:
        """Say what the model has to do better; `None` lets the turn end."""
        text, continued = data["response"], data["continued"]
        if continued == 0:
            self._outcomes[coordinator.session_id] = _Outcome()
        outcome = self._outcomes[coordinator.session_id]
        outcome.seen = text
        try:
            outcome.value = await self._read(coordinator, text, continued + 1)
            outcome.is_accepted = True
        except _REJECTIONS as misfit:
            outcome.problems.append(str(misfit))
            if continued < self.retries:
                return HookResult.deny(str(misfit))
        except Exception as error:  # the application's: the model cannot mend it
            outcome.error = error
        return None

    async def _read(self, coordinator: Coordinator, text: str, attempt: int) -> object:
        """Return an answer as a value of the wanted type, through the session's middleware."""
        hooks = coordinator.hooks
        around = (
            hooks.middleware(_AROUND) if isinstance(hooks, HookDispatcher) else None
        )
        if around is None:
            return await self._validated(coordinator, text, attempt)
        made = OutputAttempt(
            session_id=coordinator.session_id, text=text, attempt=attempt
        )
        return await around(
            made, lambda call: self._validated(coordinator, call.text, call.attempt)
        )

    async def _validated(
        self, coordinator: Coordinator, text: str, attempt: int
    ) -> object:
        """Return an answer as a value of the wanted type that all validators accept."""
        value: object = text if self.wanted is None else self.wanted.read(text)
        if isinstance(value, OutputCall):
            value = await value.run(coordinator)
        if not self.validators:
            return value
        make = cast("RunContextMaker", coordinator.get_capability(RUN_CONTEXT))
        context = make(coordinator, attempt=attempt)
        for validate in self.validators:
            checked = validate(context, value)
            value = await checked if isawaitable(checked) else checked
        return value
