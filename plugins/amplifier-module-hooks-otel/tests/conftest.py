"""Both backends, and OpenTelemetry's SDK with an exporter that keeps what it is given."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import HistogramDataPoint, InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter


@pytest.fixture(scope="session", params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Name the backend of the test."""
    return str(request.param)


class Collected:
    """What the SDK was given."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.reader = InMemoryMetricReader()
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.meters = MeterProvider([self.reader], shutdown_on_exit=False)

    @property
    def spans(self) -> dict[str, ReadableSpan]:
        """The spans that ended, by name; of several the last one."""
        return {span.name: span for span in self.exporter.get_finished_spans()}

    def tree(self) -> list[str]:
        """The spans by name, each behind those that it stands below, in the order in which they began."""
        spans = sorted(
            self.exporter.get_finished_spans(), key=lambda span: span.start_time or 0
        )
        by_id = {
            span.context.span_id: span for span in spans if span.context is not None
        }

        def path(span: ReadableSpan) -> str:
            above = by_id.get(span.parent.span_id) if span.parent is not None else None
            return span.name if above is None else f"{path(above)} > {span.name}"

        return [path(span) for span in spans]

    def points(self, metric: str) -> list[HistogramDataPoint]:
        """The points of a histogram."""
        data = self.reader.get_metrics_data()
        found = [] if data is None else data.resource_metrics
        named = [
            one
            for resource in found
            for scope in resource.scope_metrics
            for one in scope.metrics
        ]
        points = [
            point
            for one in named
            if one.name == metric
            for point in one.data.data_points
        ]
        assert all(isinstance(point, HistogramDataPoint) for point in points)
        return [point for point in points if isinstance(point, HistogramDataPoint)]


@pytest.fixture
def collected(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collected]:
    """Set the SDK up for one test: the API itself lets it be set up once in a process."""
    found = Collected()
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", found.provider)
    monkeypatch.setattr("opentelemetry.metrics._internal._METER_PROVIDER", found.meters)
    yield found
    found.provider.shutdown()
    found.meters.shutdown()
