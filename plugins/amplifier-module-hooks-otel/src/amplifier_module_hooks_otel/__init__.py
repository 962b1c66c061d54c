"""OpenTelemetry spans and metrics of a session, by the conventions for generative AI."""

from __future__ import annotations

from amplifier_module_hooks_otel._mount import mount, on_session_ready
from amplifier_module_hooks_otel._trace import TelemetryConfig

__all__ = ["TelemetryConfig", "mount", "on_session_ready"]
