"""What the entry point names."""

from __future__ import annotations

from collections.abc import Mapping

from amplifier_module_context_persistent._context import PersistentContext
from amplifier_module_context_persistent._settings import PersistentConfig
from amplifier_sdk import Coordinator, JSONValue
from amplifier_sdk.configuration import read_config

__all__ = ["mount"]


async def mount(
    coordinator: Coordinator, config: Mapping[str, JSONValue]
) -> PersistentContext:
    """Open the session's conversation; its file is closed when the session ends.

    Raises:
        ConfigError: the configuration does not fit.
        LockedError: another session writes the file.
        LogFormatError: the file is none of a conversation, or a newer version's.
        OSError: the system refuses.
    """
    settings = read_config(
        PersistentConfig, config, subject="configuration of context-persistent"
    )
    context = await PersistentContext.open(settings, coordinator)
    coordinator.register_cleanup(context.aclose)
    return context
