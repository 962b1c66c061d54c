"""The export that the environment asks for where the application has set up no SDK.

It is one for the process, and not the API's global provider: that one is the application's to set.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Final, Protocol, cast

import attrs
from opentelemetry import trace

from amplifier_kit.installation import install_command

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import MetricExporter
    from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

__all__ = ["Export", "MissingExporterError", "find_export"]

_ENDPOINTS: Final = (
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
)
_PROTOCOL: Final = "OTEL_EXPORTER_OTLP_PROTOCOL"
_HTTP: Final = "http/protobuf"


class MissingExporterError(Exception):
    """The environment names an endpoint, and nothing here can export to it; the text says what is missing."""


@attrs.define(eq=False)
class Export:
    """Providers that export by OTLP over HTTP; `lost` counts the spans that the endpoint did not take."""

    tracers: TracerProvider
    meters: MeterProvider
    lost: int = 0

    def flush(self, timeout: float) -> None:
        """Export what is waiting, for so many seconds at most; blocks."""
        self.tracers.force_flush(int(timeout * 1_000))
        self.meters.force_flush(timeout * 1_000)


def find_export() -> Export | None:
    """Return the export of the process; `None` where the application set up an SDK, or no endpoint is named.

    Raises:
        MissingExporterError: the exporter is not installed, or the protocol is another one than HTTP's.
    """
    endpoint = next((name for name in _ENDPOINTS if os.environ.get(name)), None)
    is_off = os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    if endpoint is None or is_off or _has_sdk():
        return None
    protocol = os.environ.get(_PROTOCOL) or _HTTP
    if protocol != _HTTP:
        raise MissingExporterError(
            f"{_PROTOCOL} is {protocol!r}, and hooks-otel exports by {_HTTP!r} alone: set that,"
            " or set up an SDK in the application"
        )
    try:
        return _open()
    except ImportError as error:
        raise MissingExporterError(
            f"{endpoint} is set, but {error.name or error} is not installed:"
            f" {install_command('amplifier-module-hooks-otel[otlp]')}"
        ) from error


def _has_sdk() -> bool:
    """Whether somebody set up a provider: until then the API's own hands out what records nothing."""
    return not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)


class _Exporters(Protocol):
    """The two modules of the exporter's distribution, which need not be installed."""

    def OTLPSpanExporter(self) -> SpanExporter: ...  # noqa: N802  # the classes' names

    def OTLPMetricExporter(self) -> MetricExporter: ...  # noqa: N802


@cache
def _open() -> Export:
    """Set the SDK up: once in a process, since each setting up has threads of its own."""
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import (
        BatchSpanProcessor,
        SpanExporter,
        SpanExportResult,
    )

    package = "opentelemetry.exporter.otlp.proto.http"
    spans = cast("_Exporters", import_module(f"{package}.trace_exporter"))
    points = cast("_Exporters", import_module(f"{package}.metric_exporter"))

    class Counting(SpanExporter):
        """Counts what is lost: the SDK itself only logs it."""

        def __init__(self) -> None:
            self.exporter = spans.OTLPSpanExporter()

        def export(self, batch: Sequence[ReadableSpan]) -> SpanExportResult:
            result = self.exporter.export(batch)
            if result is not SpanExportResult.SUCCESS:
                export.lost += len(batch)
            return result

        def shutdown(self) -> None:
            self.exporter.shutdown()

        def force_flush(self, timeout_millis: int = 30_000) -> bool:
            return self.exporter.force_flush(timeout_millis)

    tracers = TracerProvider()
    reader = PeriodicExportingMetricReader(points.OTLPMetricExporter())
    export = Export(tracers, MeterProvider([reader]))
    tracers.add_span_processor(BatchSpanProcessor(Counting()))
    return export
