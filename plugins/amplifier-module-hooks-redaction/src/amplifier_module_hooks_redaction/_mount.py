"""What the entry point names, and what can be set."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Final, Literal

import attrs

from amplifier_kit.redaction import (
    SinkRedactor,
    StrictRedactor,
    personal_details,
)
from amplifier_module_hooks_redaction._events import EventRedaction
from amplifier_sdk import Coordinator, JSONValue
from amplifier_sdk.configuration import read_config
from amplifier_sdk.events import ALL_EVENTS
from amplifier_sdk.redaction import REDACTOR

__all__ = ["RedactionConfig", "mount"]

_NAME: Final = "hooks-redaction"


async def mount(coordinator: Coordinator, config: Mapping[str, JSONValue]) -> None:
    """Offer the session's redactor to all sinks, and redact the events that are not skipped.

    Raises:
        ConfigError: the configuration does not fit.
    """
    settings = read_config(RedactionConfig, config, subject=f"configuration of {_NAME}")
    finders = (personal_details,) if "pii-basic" in settings.rules else ()
    # Sinks never get a secret, whatever is chosen for events.
    sinks = StrictRedactor(finders=finders, allowlist=settings.allowlist)
    coordinator.register_capability(REDACTOR, SinkRedactor(sinks))
    events = StrictRedactor(
        known=sinks.known,
        finders=finders,
        allowlist=settings.allowlist,
        secrets="secrets" in settings.rules,
    )
    redaction = EventRedaction(events)
    for event in ALL_EVENTS:
        if not any(fnmatchcase(event, pattern) for pattern in settings.skip_events):
            unregister = coordinator.hooks.register(
                str(event), redaction.hear, settings.priority, _NAME
            )
            coordinator.register_cleanup(unregister)


@attrs.frozen(kw_only=True)
class RedactionConfig:
    """The configuration; the module's README describes each key."""

    rules: tuple[Literal["secrets", "pii-basic"], ...] = ("secrets",)
    allowlist: tuple[str, ...] = ()
    priority: int = 10
    skip_events: tuple[str, ...] = (
        "tool:pre",
        "tool:post",
        "content_block:delta",
        "thinking:delta",
    )
