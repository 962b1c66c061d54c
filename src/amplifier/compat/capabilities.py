"""Capabilities that have another form in the original: spawning children, and whom to ask."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final, Literal, Protocol, TypeAlias, cast

from amplifier.compat.original import models
from amplifier.compat.plain import plain_copy
from amplifier.kernel.budgets.deadlines import call_deadlines_held, deadlines_held
from amplifier.kernel.reports import report
from amplifier_sdk.approvals import ApprovalRequest, ApprovalResponse
from amplifier_sdk.assessments import ACCEPTED
from amplifier_sdk.contracts import ApprovalSystem
from amplifier_sdk.delegation import ResumeOptions, SpawnOptions
from amplifier_sdk.redaction import REDACTOR

__all__ = ["GUARDS", "adapted_capability", "held_approval", "shown_capability"]

REGISTER_PROVIDER = "approval.register_provider"

GUARDS: Final = frozenset(
    {ACCEPTED, REDACTOR, "approval.permissions", "session.journal"}
)
"""The capabilities that say what needs no question, what is hidden and what is recorded."""

_Register: TypeAlias = Callable[[object], object]

_OPTIONS = {
    "session.spawn": frozenset(SpawnOptions.__annotations__),
    "session.resume": frozenset(ResumeOptions.__annotations__),
}


class _OriginalApprovalProvider(Protocol):
    """Asks a person, as the original has it."""

    def request_approval(self, request: object, /) -> Awaitable[object]:
        """Return the person's answer."""


def adapted_capability(name: str, value: object, earlier: object) -> object:
    """Return what a module of the original offers, as the session has it.

    Args:
        name: the capability's.
        value: what the module offers.
        earlier: what is offered under the name so far.
    """
    if name == REGISTER_PROVIDER and callable(value) and callable(earlier):
        # beside the kernel's, which asks for everybody else
        return _RegisterWithBoth(cast("_Register", earlier), cast("_Register", value))
    return value


def shown_capability(name: str, value: object) -> object:
    """Return a capability as modules of the original use it."""
    if value is None:
        return None
    if name == REGISTER_PROVIDER:
        return partial(_register_original, cast("_Register", value))
    if name in _OPTIONS:
        return partial(_delegate, name, value)
    return value


# -- whom to ask


class _RegisterWithBoth:
    """Registers an approval provider with the kernel and with a hook of the original."""

    def __init__(self, kernel: _Register, module: _Register) -> None:
        self._kernel = kernel
        self._module = module

    def __call__(self, provider: object) -> None:
        self._kernel(provider)
        # one of the original's goes back to its own shape, not through two adapters
        if isinstance(provider, _AdaptedApprovalProvider):
            self._module(_HeldApprovalProvider(provider.original))
        else:
            self._module(_ShownApprovalProvider(provider))


def held_approval(system: ApprovalSystem | None) -> ApprovalSystem | None:
    """Return an approval system while whose questions no deadline runs."""
    if system is None or isinstance(system, _HeldApprovalSystem):
        return system
    return _HeldApprovalSystem(system)


class _HeldApprovalSystem:
    """An approval system as modules of the original ask it themselves."""

    def __init__(self, native: ApprovalSystem) -> None:
        self._native = native

    async def request_approval(
        self,
        prompt: str,
        options: Sequence[str],
        timeout: float = 300.0,
        default: Literal["allow", "deny"] = "deny",
    ) -> str:
        """Return the option that the person chose."""
        with deadlines_held():
            return await self._native.request_approval(
                prompt, options, timeout, default
            )

    def __getattr__(self, name: str) -> object:
        return getattr(self._native, name)


def _register_original(register: _Register, provider: object) -> object:
    return register(
        _AdaptedApprovalProvider(cast("_OriginalApprovalProvider", provider))
    )


class _AdaptedApprovalProvider:
    """An approval provider of the original as the session asks it."""

    def __init__(self, original: _OriginalApprovalProvider) -> None:
        self.original: _OriginalApprovalProvider = original

    async def request_approval(self, request: ApprovalRequest, /) -> ApprovalResponse:
        """Return the person's answer; what is no clear permission is none."""
        asked = models.ApprovalRequest(
            tool_name=request.tool_name,
            action=request.action,
            risk_level=request.risk_level,
            details=cast("dict[str, object]", plain_copy(request.details)),
            timeout=request.timeout,
        )
        answer: object = await self.original.request_approval(asked)
        return ApprovalResponse(
            approved=getattr(answer, "approved", None) is True,
            reason=cast("str | None", getattr(answer, "reason", None)),
            remember=getattr(answer, "remember", None) is True,
        )


class _HeldApprovalProvider:
    """An approval provider as a hook of the original asks it: no deadline runs meanwhile."""

    def __init__(self, original: _OriginalApprovalProvider) -> None:
        self._original = original

    async def request_approval(self, request: object, /) -> object:
        with deadlines_held():
            return await self._original.request_approval(request)

    def __getattr__(self, name: str) -> object:
        return getattr(self._original, name)


class _ShownApprovalProvider:
    """An approval provider of an application as a hook of the original asks it."""

    def __init__(self, native: object) -> None:
        self._native = cast("_OriginalApprovalProvider", native)

    async def request_approval(
        self, request: models.ApprovalRequest
    ) -> models.ApprovalResponse:
        """Return the person's answer."""
        asked = ApprovalRequest(
            tool_name=request.tool_name,
            action=request.action,
            risk_level=request.risk_level,
            details=request.details,
            timeout=request.timeout,
        )
        with deadlines_held():
            answer = cast(
                "ApprovalResponse", await self._native.request_approval(asked)
            )
        return models.ApprovalResponse(
            approved=answer.approved is True,
            reason=answer.reason,
            remember=answer.remember is True,
        )


# -- children


async def _delegate(name: str, capability: object, **options: object) -> object:
    """Run a child; what the capability does not take is left out and reported."""
    from amplifier.kernel.sessions.session import AmplifierSession  # few delegate

    known = _OPTIONS[name]
    unknown = sorted(set(options) - known)
    # an application's own takes what it takes
    if unknown and isinstance(getattr(capability, "__self__", None), AmplifierSession):
        report("compat.options_not_used", capability=name, options=unknown)
        options = {key: value for key, value in options.items() if key in known}
    call = cast("Callable[..., Awaitable[object]]", capability)  # type: ignore[explicit-any]  # by keyword
    with call_deadlines_held():
        return await call(**options)
