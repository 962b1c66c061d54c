"""How far an agent may go: its partial plan with the limits of delegation laid over it.

They stand in the child's own plan, so they hold for each of its turns, also when it is resumed, and the child
knows from its plan how much further it may delegate.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation

from amplifier_kit.open_data import as_object
from amplifier_sdk.limits import LimitChanges, Limits

__all__ = ["bounded"]

_DEFAULTS = Limits()


def bounded(
    agent: object, parent: Mapping[str, object], limits: LimitChanges, depth_left: int
) -> object:
    """Return an agent's partial plan with stricter limits where its own are looser; nothing given is changed.

    Args:
        agent: the partial plan; one that is no mapping, or has no mapping of limits, is the kernel's to refuse.
        parent: the plan of the session that delegates, whose limits the agent has where it names none.
        limits: the upper limits of a turn.
        depth_left: how many generations there may be below the child.
    """
    session = as_object(agent).get("session")
    own = as_object(session).get("limits")
    if not isinstance(agent, Mapping) or not isinstance(session, (Mapping, type(None))):
        return agent
    if not isinstance(own, (Mapping, type(None))):
        return agent
    wanted: dict[str, object] = {**limits, "delegation_depth": depth_left}
    above = as_object(as_object(parent.get("session")).get("limits"))
    # The agent's own limits win over its parent's, and these over the defaults: what
    # holds now is compared.
    has = {
        **{name: getattr(_DEFAULTS, name) for name in wanted},
        **above,
        **(own or {}),
    }
    stricter = {
        name: value for name, value in wanted.items() if _is_less(value, has.get(name))
    }
    if not stricter:
        return agent
    return {
        **agent,
        "session": {**(session or {}), "limits": {**(own or {}), **stricter}},
    }


def _is_less(value: object, than: object) -> bool:
    """Tell whether a limit is stricter than another, of which `None` is none; what is no number is not compared."""
    if than is None:
        return True
    try:
        # Costs may be given as text, to the cent.
        return Decimal(str(value)) < Decimal(str(than))
    except InvalidOperation:
        return False
