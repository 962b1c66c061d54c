"""The module's configuration."""

from __future__ import annotations

import attrs

from amplifier_sdk.bounds import amount
from amplifier_sdk.results import InjectionRole

__all__ = ["ReminderConfig"]


@attrs.frozen(kw_only=True)
class ReminderConfig:
    """What `config` of the plan may hold.

    Args:
        inject_role: the role of a reminder that is a message of its own.
        priority: when the module is asked among the handlers of a request; lower is earlier.
        recent_tool_threshold: how many tool calls may pass after the model wrote or read the plan before it is
            reminded; 0 reminds it with every request.
    """

    inject_role: InjectionRole = "user"
    priority: int = 10
    recent_tool_threshold: int = attrs.field(default=3, validator=amount)
