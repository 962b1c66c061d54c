"""The metrics of the conventions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import attrs
from opentelemetry.context import Context
from opentelemetry.metrics import Histogram, Meter

from amplifier_module_hooks_otel._names import TOKEN_TYPE
from amplifier_sdk import Usage

__all__ = ["Instruments"]

# What the conventions ask for.
_SECONDS: Final = tuple(0.01 * 2**power for power in range(14))
_FIRST: Final = (
    0.001,
    0.005,
    0.01,
    0.02,
    0.04,
    0.06,
    0.08,
    0.1,
    0.25,
    0.5,
    0.75,
    1.0,
    2.5,
    5.0,
    7.5,
    10.0,
)
_TOKENS: Final = tuple(4.0**power for power in range(14))


@attrs.frozen(eq=False)
class Instruments:
    """The instruments of one session; those of several sessions are the same to the SDK."""

    tokens: Histogram
    chat: Histogram
    first_chunk: Histogram
    tool: Histogram
    agent: Histogram

    @classmethod
    def of(cls, meter: Meter) -> Instruments:
        """Make the instruments."""

        def duration(
            name: str, description: str, bounds: tuple[float, ...] = _SECONDS
        ) -> Histogram:
            return meter.create_histogram(
                name, "s", description, explicit_bucket_boundaries_advisory=bounds
            )

        return cls(
            meter.create_histogram(
                "gen_ai.client.token.usage",
                "{token}",
                "Number of input and output tokens used.",
                explicit_bucket_boundaries_advisory=_TOKENS,
            ),
            duration("gen_ai.client.operation.duration", "GenAI operation duration."),
            duration(
                "gen_ai.client.operation.time_to_first_chunk",
                "Time to receive the first chunk.",
                _FIRST,
            ),
            duration("gen_ai.execute_tool.duration", "Duration of a tool's execution."),
            duration(
                "gen_ai.invoke_agent.duration", "Duration of an agent's invocation."
            ),
        )

    def count_tokens(
        self, usage: Usage, attributes: Mapping[str, str], context: Context
    ) -> None:
        """Record what a request used."""
        self.tokens.record(
            usage.input_tokens, {**attributes, TOKEN_TYPE: "input"}, context
        )
        self.tokens.record(
            usage.output_tokens, {**attributes, TOKEN_TYPE: "output"}, context
        )
