"""What a person sees while a turn runs, in an application that has no interface of its own."""

from __future__ import annotations

from amplifier_module_hooks_streaming_ui._mount import mount
from amplifier_module_hooks_streaming_ui._watch import StreamingUIConfig

__all__ = ["StreamingUIConfig", "mount"]
