"""The agent loop that hooks steer: which tool runs, which provider answers, and a plan first."""

from __future__ import annotations

from amplifier_module_loop_events._loop import EventsConfig, EventsLoop

__all__ = ["EventsConfig", "EventsLoop"]
