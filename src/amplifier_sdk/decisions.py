"""What a handler decided, as an event of its own: who, on what, for how long, and what it changed.

It is sent after all handlers of an event, once for each of them that did more than continue, and only where
somebody hears it. Handlers of it decide about nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NotRequired, TypedDict

from amplifier_sdk.events import Event, EventFields
from amplifier_sdk.results import HookAction, InjectionRole

__all__ = ["HOOK_DECIDED", "SUPPRESSED", "HookDecided", "InjectedText"]

SUPPRESSED: Final = "(suppressed by the handler)"
"""What stands in `hook:decided` for a text of an answer with `suppress_output`."""


class InjectedText(TypedDict):
    """A text that a handler adds to what the model reads; an ephemeral one is for the next request only."""

    role: InjectionRole
    content: str
    ephemeral: bool


class HookDecided(EventFields):
    """What `hook:decided` carries: a handler answered an event with more than `continue`.

    `module` is the module that registered the handler, absent for the application's own. `changed` are the keys that
    it changed with their new values; what they were before is not reported, since a change may take out a secret.
    Of an answer with `suppress_output` neither those values nor the injection's text are reported.
    """

    hook_event: str
    handler: str
    module: NotRequired[str]
    action: HookAction
    duration: float  # seconds that the handler took
    reason: NotRequired[str]
    changed: NotRequired[Mapping[str, object]]
    injection: NotRequired[InjectedText]
    question: NotRequired[str]
    message: NotRequired[str]


HOOK_DECIDED: Final = Event[HookDecided]("hook:decided")
"""Emitted by the kernel for each decision on an event."""
