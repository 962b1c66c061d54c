"""The scripted provider of the SDK's kit, under the names of the test kit."""

from __future__ import annotations

from amplifier_kit.scripted import (
    Part,
    ScriptedAnswer,
    ScriptedProvider,
    Step,
    answer,
    call,
)

__all__ = ["Part", "ScriptedAnswer", "ScriptedProvider", "Step", "answer", "call"]
