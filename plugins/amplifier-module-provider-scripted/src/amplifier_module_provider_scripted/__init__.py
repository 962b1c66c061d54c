"""A provider that answers from a script: for tests, demos and recordings. It is no model."""

from __future__ import annotations

from amplifier_module_provider_scripted._script import (
    ScriptedCall,
    ScriptedConfig,
    ScriptedError,
    ScriptedProvider,
    ScriptedResponse,
    ScriptedUsage,
    read_script,
)

__all__ = [
    "ScriptedCall",
    "ScriptedConfig",
    "ScriptedError",
    "ScriptedProvider",
    "ScriptedResponse",
    "ScriptedUsage",
    "read_script",
]
