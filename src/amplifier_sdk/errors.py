"""Every error the runtime raises, in one tree.

```
AmplifierError
├── ConfigError                     a mount plan or a configuration has problems, each with its path
├── ModuleError                     a module cannot be used; names module and distribution
│   ├── ModuleConfigError           (also ConfigError) it refused its configuration
│   ├── ModuleNotFoundError         (also ValueError) no source knows the id
│   ├── ModuleLoadError             (also ValueError) found, but it cannot be imported or mounted
│   │   └── ModuleValidationError   it lacks what its type promises
│   └── ModuleConflictError         two claim one id
├── HookspecError                   (also TypeError) an implementation does not fit its spec
├── SessionError
│   ├── SessionBusyError            a turn is running
│   ├── SessionClosedError          the session was cleaned up
│   ├── OwnerTaskError              a module needs `async with session`
│   ├── BudgetExceededError         a limit is reached and nothing more may be spent
│   ├── ChildNotFoundError          the session has no such child
│   ├── TurnCancelled               the turn was cancelled; holds the partial text
│   └── TurnSuspendedError          the turn waits for an answer; its journal has what it did
├── StoreError                      a store of sessions cannot do what it was asked for
│   ├── LeaseHeldError              somebody else may write the session
│   ├── LeaseLostError              the writer's lease ended; nothing was written
│   ├── QuestionClosedError         the question takes no such answer any more
│   ├── StoreUnavailableError       the server of the store does not answer, or refuses
│   └── StoreVersionError           another version wrote the store
├── EngineError                     an engine cannot do what it was asked for
│   ├── RunLostError                another worker has the run; nothing was recorded
│   ├── RunSuspendedError           the run waits, and is called again
│   └── StepFailedError             the action of a step raised an error
├── ScopeLeftOpenError              foreign code left a task group or a cancel scope open
├── OutputMisfitError               (also ValueError) an answer is not of the wanted type
├── ApprovalPendingError            the answer comes later; the turn is suspended until then
├── ApprovalTimeoutError            nobody answered in time
├── ApprovalUnavailableError        nobody can be asked
├── MediaError                      (also ValueError) no media of its kind, or too large
├── ToolError                       raised by a tool to speak to the model
└── LLMError                        a provider failed
    ├── RateLimitError              retryable
    │   └── QuotaExceededError      not retryable
    ├── AuthenticationError
    │   └── AccessDeniedError
    ├── ContextLengthError
    ├── ContentFilterError
    ├── InvalidRequestError
    ├── NotFoundError
    ├── ConfigurationError
    ├── AbortError
    ├── InvalidToolCallError
    ├── ProviderUnavailableError    retryable
    │   └── NetworkError            retryable
    ├── LLMTimeoutError             retryable
    └── StreamError                 retryable
```
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self, TypeVar

import attrs

from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.values import Value

__all__ = [
    "AbortError",
    "AccessDeniedError",
    "AmplifierError",
    "ApprovalPendingError",
    "ApprovalTimeoutError",
    "ApprovalUnavailableError",
    "AuthenticationError",
    "BudgetExceededError",
    "ChildNotFoundError",
    "ConfigError",
    "ConfigurationError",
    "ContentFilterError",
    "ContextLengthError",
    "EngineError",
    "HookspecError",
    "InvalidRequestError",
    "InvalidToolCallError",
    "LLMError",
    "LLMTimeoutError",
    "LeaseHeldError",
    "LeaseLostError",
    "MediaError",
    "ModuleConfigError",
    "ModuleConflictError",
    "ModuleError",
    "ModuleLoadError",
    "ModuleNotFoundError",
    "ModuleValidationError",
    "NetworkError",
    "NotFoundError",
    "OutputMisfitError",
    "OwnerTaskError",
    "Problem",
    "ProviderUnavailableError",
    "QuestionClosedError",
    "QuotaExceededError",
    "RateLimitError",
    "RunLostError",
    "RunSuspendedError",
    "ScopeLeftOpenError",
    "SessionBusyError",
    "SessionClosedError",
    "SessionError",
    "StepFailedError",
    "StoreError",
    "StoreUnavailableError",
    "StoreVersionError",
    "StreamError",
    "ToolError",
    "TurnCancelled",
    "TurnSuspendedError",
    "did_you_mean",
]


def did_you_mean(name: str, known: Sequence[str]) -> str:
    """Return `; did you mean 'x'?` for the nearest known name, or an empty string."""
    # costs some milliseconds, and only a mistake needs it
    from difflib import get_close_matches

    near = get_close_matches(name, known, n=1, cutoff=0.6)
    if near:
        return f"; did you mean {near[0]!r}?"
    return ""


E = TypeVar("E", bound="AmplifierError")


class AmplifierError(Exception):
    """The root of every error of this project."""

    def __reduce__(self) -> tuple[object, ...]:
        # Messages are built from fields, so a copy cannot be made by calling the class with the message.
        return _restored, (type(self), self.args, self.__dict__)


def _restored(cls: type[E], args: tuple[object, ...], state: dict[str, object]) -> E:
    # without `__init__`, whose arguments are the fields and not the message
    error = cls.__new__(cls, *args)
    error.__dict__.update(state)
    return error


@attrs.frozen(eq=False, repr=False)
class Problem(Value):
    """One thing wrong with a configuration: where, and what with its remedy."""

    path: str
    message: str

    def __str__(self) -> str:
        if self.path:
            return f"{self.path}: {self.message}"
        return self.message


class ConfigError(AmplifierError, ValueError):
    """A mount plan or a module's configuration has problems; `problems` lists all of them."""

    def __init__(
        self, problems: Sequence[Problem], *, subject: str = "configuration"
    ) -> None:
        self.problems: tuple[Problem, ...] = tuple(problems)
        self.subject = subject
        lines = "\n".join(f"  {problem}" for problem in self.problems)
        super().__init__(
            f"The {subject} has {_count(len(self.problems), 'problem')}:\n{lines}"
        )

    @classmethod
    def of(cls, path: str, message: str, *, subject: str = "configuration") -> Self:
        """Return the error of one problem.

        Args:
            path: the place of the problem, empty for the whole.
            message: what is wrong there.
            subject: what has the problem.
        """
        return cls([Problem(path, message)], subject=subject)

    @property
    def in_one_line(self) -> str:
        """The problems alone, for where the subject is known already."""
        return "; ".join(map(str, self.problems))


def _count(number: int, noun: str) -> str:
    if number == 1:
        return f"{number} {noun}"
    return f"{number} {noun}s"


class OutputMisfitError(AmplifierError, ValueError):
    """An answer is no value of the wanted type; the message says for the model what is wrong, and where."""


class ModuleError(AmplifierError):
    """A module cannot be used.

    Args:
        module_id: the id as the plan names it. A text alone is the reason, as the module source protocol's errors are
            raised: whoever asked knows the id.
        reason: what is wrong, with the remedy.
        distribution: the installed distribution that provides the module, if one does.
        path: where the mount plan names the module, for example `tools[0]`; `None` outside a plan.
    """

    def __init__(
        self,
        module_id: str,
        reason: str | None = None,
        *,
        distribution: str | None = None,
        path: str | None = None,
    ) -> None:
        if reason is None:
            module_id, reason = "", module_id
        self.module_id = module_id
        self.reason = reason
        self.distribution = distribution
        self.path = path
        super().__init__(_module_message(module_id, reason, distribution, path))

    def amended(
        self,
        *,
        module_id: str | None = None,
        reason: str | None = None,
        path: str | None = None,
    ) -> Self:
        """Return this error, of the same class and with the same cause, with what is known of it by now."""
        module_id = module_id or self.module_id
        reason, path = reason or self.reason, path or self.path
        message = _module_message(module_id, reason, self.distribution, path)
        state = {
            **self.__dict__,
            "module_id": module_id,
            "reason": reason,
            "path": path,
        }
        error = _restored(type(self), (message,), state)
        # what the module itself raised is the cause, and shows where it went wrong
        error.__cause__ = self.__cause__
        return error


def _module_message(
    module_id: str, reason: str, distribution: str | None, path: str | None
) -> str:
    if not module_id:
        return reason
    source = ""
    if distribution:
        source = f" (from {distribution})"
    place = ""
    if path:
        place = f" (at {path} in the mount plan)"
    return f"Module {module_id!r}{source}: {reason}{place}"


class ModuleNotFoundError(ModuleError, ValueError):
    """No source knows the module id; the message names the nearest known ids and where was searched."""


class ModuleLoadError(ModuleError, ValueError):
    """The module was found but could not be imported or mounted."""


class ModuleValidationError(ModuleLoadError):
    """The module loaded but lacks something its type promises."""


class ModuleConfigError(ModuleError, ConfigError):
    """A module refused its configuration; each problem has its path in the mount plan.

    Args:
        module_id: the id as the plan names it.
        problems: what is wrong, in the configuration as the plan writes it.
        distribution: the installed distribution that provides the module, if one does.
        path: where the mount plan names the module.
    """

    def __init__(
        self,
        module_id: str,
        problems: Sequence[Problem],
        *,
        distribution: str | None = None,
        path: str | None = None,
    ) -> None:
        # its message lists the problems; ModuleError's would say them in one line
        ConfigError.__init__(
            self, problems, subject=f"configuration of module {module_id!r}"
        )
        self.module_id: str = module_id
        self.reason: str = self.in_one_line
        self.distribution: str | None = distribution
        self.path: str | None = path


class ModuleConflictError(ModuleError):
    """Two modules claim one id or one mounted name; the message names both."""


class HookspecError(AmplifierError, TypeError):
    """A hook implementation does not fit its spec; the message names the plugin and the spec."""


class SessionError(AmplifierError):
    """The session cannot do what was asked in the state it is in."""


class SessionBusyError(SessionError):
    """A turn is running on the session; a session runs one at a time."""


class SessionClosedError(SessionError):
    """The session was cleaned up and cannot run another turn."""


class OwnerTaskError(SessionError):
    """A module needs a task of its own, which exists only inside `async with session`."""


class BudgetExceededError(SessionError):
    """A limit is reached and nothing more may be spent.

    Args:
        limit: the limit's name, as in `amplifier_sdk.limits.Limits`.
        amount: how much it allows.
        partial_text: what the model had written in the turn that was stopped.
        message: what is said of it; default the limit and how much it allows.
    """

    def __init__(
        self,
        limit: str,
        amount: object,
        *,
        partial_text: str = "",
        message: str | None = None,
    ) -> None:
        self.limit = limit
        self.amount = amount
        self.partial_text = partial_text
        if message is None:
            message = (
                f"The limit {limit!r} of {amount} is reached; raise it to continue"
            )
        super().__init__(message)


class ChildNotFoundError(SessionError):
    """The session has no child of that id; children of other sessions are not its own."""

    def __init__(self, session_id: str, parent_id: str) -> None:
        self.session_id = session_id
        self.parent_id = parent_id
        super().__init__(
            f"Session {parent_id} has no child {session_id!r} that could be resumed"
        )


class TurnCancelled(SessionError):  # noqa: N818  # a state, not a fault; the name is part of the contract
    """The turn was cancelled; `partial_text` is what the model had written, `immediate` how it ended."""

    def __init__(self, partial_text: str = "", *, immediate: bool = False) -> None:
        self.partial_text = partial_text
        self.immediate = immediate
        super().__init__("The turn was cancelled" + (" at once" if immediate else ""))


class TurnSuspendedError(SessionError):
    """The turn waits for a person's answer and holds nothing meanwhile: its journal has what it did until now.

    It was neither ended nor closed. Whoever runs it again with what is recorded of it has it continue.
    """

    def __init__(
        self, message: str = "The turn is suspended until a person answers"
    ) -> None:
        super().__init__(message)


class ApprovalPendingError(AmplifierError):
    """The answer comes later: raised by an approval provider that stored the question.

    The turn is suspended as soon as the calls that run have ended. When it is continued, the provider is called anew.
    """


class ApprovalTimeoutError(AmplifierError):
    """Nobody answered a question in time."""


class ApprovalUnavailableError(AmplifierError):
    """Nobody can be asked: raised by an approval system without a terminal, or whose person has left."""


class StoreError(AmplifierError):
    """A store of sessions cannot do what it was asked for; nothing of it was done."""


class LeaseHeldError(StoreError):
    """Somebody else may write the session now.

    Args:
        session_id: the session.
        owner: who may write it, as they call themselves.
    """

    def __init__(self, session_id: str, owner: str) -> None:
        self.session_id = session_id
        self.owner = owner
        super().__init__(
            f"Session {session_id!r} is being written by {owner}."
            " Wait until it is released, or until its lease ends"
        )


class LeaseLostError(StoreError):
    """The lease of a writer ended, or was taken over: nothing was written.

    Args:
        session_id: the session.
    """

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        super().__init__(
            f"The lease on session {session_id!r} has ended; nothing was written."
            " Acquire it anew and read the session before you write"
        )


class QuestionClosedError(StoreError):
    """A question takes no such answer: it was answered otherwise, expired, was voided, or never stored."""


class StoreUnavailableError(StoreError):
    """The server of a store cannot be reached, refuses, or went away in the middle of a statement."""


class StoreVersionError(StoreError):
    """A version of the program that does not fit this one wrote the store."""


class EngineError(AmplifierError):
    """An engine cannot do what it was asked for, or cannot reach what it stores."""


class RunLostError(EngineError):
    """Another worker has the run by now: nothing was recorded."""


class RunSuspendedError(EngineError):
    """A run waits: its function is left with this, and called again when the event or the time has come."""


class StepFailedError(EngineError):
    """The action of a step raised an error, which is the step's outcome from then on."""


class ScopeLeftOpenError(AmplifierError):
    """Foreign code ended with a task group or a cancel scope open in its caller's task.

    `where` is the asynchronous generator that has it, if it is known.
    """

    def __init__(self, name: str, where: str | None = None) -> None:
        self.name: str = name
        self.where: str | None = where
        place = "" if where is None else f" in the generator {where}"
        super().__init__(
            f"{name} left a task group or a cancel scope open{place}; leave it in the"
            " function that entered it, and a generator that has one by"
            " 'async with aclosing(...)'"
        )


class ToolError(AmplifierError):
    """Raised by a tool to report to the model what went wrong; `details` go into the result as they are."""

    def __init__(self, message: str, **details: JSONValue) -> None:
        self.message = message
        self.details = details
        super().__init__(message)


class MediaError(AmplifierError, ValueError):
    """An image, a recording, a document or a video is none, is too large, or cannot be read."""


class LLMError(AmplifierError):
    """A provider failed.

    Args:
        message: what happened.
        provider: the provider's name.
        model: the model asked.
        status_code: the HTTP status, where there was one.
        retryable: whether trying again may help; `None` takes the class's default.
        retry_after: seconds the vendor asks to wait.
        delay_multiplier: stretches the wait between tries.
    """

    default_retryable: ClassVar[bool] = False

    def __init__(
        self,
        message: str,
        *,
        provider: str | None = None,
        model: str | None = None,
        status_code: int | None = None,
        retryable: bool | None = None,
        retry_after: float | None = None,
        delay_multiplier: float = 1.0,
    ) -> None:
        self.provider = provider
        self.model = model
        self.status_code = status_code
        # the vendor's own word counts more than what is usual for the class
        self.retryable: bool = (
            self.default_retryable if retryable is None else retryable
        )
        self.retry_after = retry_after
        self.delay_multiplier = delay_multiplier
        super().__init__(message)

    def __repr__(self) -> str:
        known = {
            "provider": self.provider,
            "model": self.model,
            "status_code": self.status_code,
            "retryable": self.retryable or None,
            "retry_after": self.retry_after,
            "delay_multiplier": None
            if self.delay_multiplier == 1.0
            else self.delay_multiplier,
        }
        parts = [
            f"{name}={value!r}" for name, value in known.items() if value is not None
        ]
        return f"{type(self).__name__}({', '.join([repr(str(self)), *parts])})"


class RateLimitError(LLMError):
    """The vendor asks to slow down."""

    default_retryable = True


class QuotaExceededError(RateLimitError):
    """The account has no quota left."""

    default_retryable = False


class AuthenticationError(LLMError):
    """The key is missing or wrong."""


class AccessDeniedError(AuthenticationError):
    """The key is right but may not do this."""


class ContextLengthError(LLMError):
    """The request is longer than the model's window."""


class ContentFilterError(LLMError):
    """The vendor's filter refused the content."""


class InvalidRequestError(LLMError):
    """The vendor refused the request as malformed."""


class NotFoundError(LLMError):
    """The model or the endpoint does not exist."""


class ConfigurationError(LLMError):
    """The provider's configuration cannot work."""


class AbortError(LLMError):
    """The request was aborted from our side."""


class InvalidToolCallError(LLMError):
    """The model asked for a tool in a way that cannot be read."""

    def __init__(
        self,
        message: str,
        *,
        tool_name: str | None = None,
        raw_arguments: str | None = None,
        provider: str | None = None,
        model: str | None = None,
        status_code: int | None = None,
        retryable: bool | None = None,
        retry_after: float | None = None,
        delay_multiplier: float = 1.0,
    ) -> None:
        self.tool_name = tool_name
        self.raw_arguments = raw_arguments
        super().__init__(
            message,
            provider=provider,
            model=model,
            status_code=status_code,
            retryable=retryable,
            retry_after=retry_after,
            delay_multiplier=delay_multiplier,
        )


class ProviderUnavailableError(LLMError):
    """The vendor's service is down or overloaded."""

    default_retryable = True


class NetworkError(ProviderUnavailableError):
    """The vendor could not be reached."""


class LLMTimeoutError(LLMError):
    """No answer within the deadline."""

    default_retryable = True


class StreamError(LLMError):
    """The answer's stream broke off before its end."""

    default_retryable = True
