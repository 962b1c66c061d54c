"""OpenTelemetry spans and metrics of a session, by the conventions for generative AI."""

from __future__ import annotations

from amplifier_module_hooks_otel._mount import mount
from amplifier_module_hooks_otel._settings import TelemetryConfig

__all__ = ["TelemetryConfig", "mount"]
