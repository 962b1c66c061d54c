"""What the turns of a session share; it lives as long as the session, and no turn changes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from amplifier.kernel.cancellation import CancellationToken
from amplifier.kernel.hooks.decisions import DecisionProcessor
from amplifier.kernel.hooks.dispatcher import HookDispatcher
from amplifier.kernel.turn.arguments import ArgumentSchemas
from amplifier.kernel.turn.inbox import SteeringInbox
from amplifier_sdk.limits import Limits

if TYPE_CHECKING:
    from amplifier.kernel.turn.routes import Route
    from amplifier_sdk.journal import Journal

__all__ = ["SessionServices"]


@attrs.define(eq=False, repr=False)
class SessionServices:
    """The long-lived parts of a session that its turns work with.

    Args:
        hooks: who hears the events.
        session_id: the session's.
        limits: the session's; a turn may have others.
        cancellation: how far the session is asked to stop.
        decisions: carries out what handlers decide.
        inbox: what was typed while the agent worked.
        schemas: the compiled schemas of the tools.
        route: whom a child session asks, whatever its loop chooses.
    """

    hooks: HookDispatcher
    session_id: str = "unknown"
    limits: Limits = Limits()
    cancellation: CancellationToken = attrs.field(factory=CancellationToken)
    decisions: DecisionProcessor = attrs.field(
        default=attrs.Factory(
            lambda self: DecisionProcessor(self.hooks), takes_self=True
        )
    )
    inbox: SteeringInbox = attrs.field(factory=SteeringInbox)
    schemas: ArgumentSchemas = attrs.field(factory=ArgumentSchemas)
    route: Route | None = None

    @property
    def journal(self) -> Journal | None:
        """Where the session's steps are recorded, while an application offers a journal."""
        return self.decisions.journal
