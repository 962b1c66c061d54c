"""The scale of a session: a meter, the tools that each request carries, and what providers report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast, final

import attrs

from amplifier_kit.compaction.meters import (
    TokenMeter,
    built_in_meter,
    message_tokens,
    most_of_text,
)
from amplifier_kit.compaction.options import CompactionOptions
from amplifier_kit.compaction.shown import ShownLog
from amplifier_sdk.contracts import Coordinator, Provider, Tool
from amplifier_sdk.events import PROVIDER_RESPONSE, ProviderResponse
from amplifier_sdk.messages import MessageDict

__all__ = ["CAPABILITY", "Scale"]

CAPABILITY: Final = "context.token_meter"
"""The capability under which an application offers a meter of its own."""

SMALLEST: Final = 0.7
LARGEST: Final = 4.0
"""The bounds of a ratio: an estimate that is too high costs room, one that is too low costs the request."""

IMPLAUSIBLE: Final = 0.3
"""A ratio below this is not believed: something else than the text was counted."""

WEIGHT: Final = 0.5
"""How much of a ratio is the last answer's."""


@final
@attrs.define(eq=False)
class Scale:
    """Counts messages and tools, and corrects the counts by the usage that providers report.

    Args:
        options: which meter, and the margin.
        coordinator: where the tools, the application's own meter and the providers' answers are found.

    Raises:
        ConfigError: the meter needs a package that is not installed.
    """

    _options: CompactionOptions
    _coordinator: Coordinator
    _built_in: TokenMeter = attrs.field(init=False)
    _margin: float = attrs.field(init=False)
    _meter: TokenMeter | None = attrs.field(default=None, init=False)
    _calibration: _UsageCalibration | None = attrs.field(default=None, init=False)
    _asked: tuple[str, int] | None = attrs.field(default=None, init=False)
    _mounted: Mapping[str, Tool] | None = attrs.field(default=None, init=False)
    _tools: dict[str, Tool] = attrs.field(factory=dict, init=False)
    _tools_most: int = attrs.field(default=0, init=False)
    _tools_tokens: int | None = attrs.field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        self._built_in = built_in_meter(self._options.token_meter)
        self._margin = 1 + self._options.token_margin

    @property
    def meter(self) -> TokenMeter:
        """The meter: the application's when the first one is asked for, else the one that the options name."""
        if self._meter is None:
            offered = self._coordinator.get_capability(CAPABILITY)
            if isinstance(offered, TokenMeter):
                self._meter = offered
            else:
                self._meter = self._built_in
        return self._meter

    def count(self, text: str) -> int:
        """Count a text by the meter alone."""
        return self.meter.count(text)

    def count_message(self, message: MessageDict) -> int:
        """Count a message by the meter alone."""
        return message_tokens(message, self.meter.count)

    @property
    def tools(self) -> int:
        """The tokens of the tools as a request describes them, counted when they change."""
        self._look_at_tools()
        if self._tools_tokens is None:
            self._tools_tokens = sum(
                self.count(_described(tool)) for tool in self._tools.values()
            )
        return self._tools_tokens

    def most(self, shown: ShownLog, provider: Provider | None) -> float:
        """Return how many tokens a request has at most, without reading its texts where that can be."""
        # whose counts the bounds are of
        if (self._meter or self.meter) is self._built_in:
            # asked for each request: the call would cost as much as the rest
            if self._mounted != self._tools:
                self._look_at_tools()
            tokens = shown.most + self._tools_most
        else:
            tokens = shown.tokens + self.tools
        return tokens * (
            self._margin if self._calibration is None else self.factor(provider)
        )

    def ratio(self, provider: Provider | None) -> float:
        """Return how many tokens the provider's model has for one of the meter's."""
        if provider is None or self._calibration is None:
            return 1.0
        return self._calibration.ratio(provider.name)

    def factor(self, provider: Provider | None) -> float:
        """Return the ratio with the margin."""
        return self.ratio(provider) * self._margin

    def asks(self, provider: Provider | None, tokens: int) -> None:
        """Note what the next request is counted at, and hear from now on what it really was."""
        learns = self._options.token_meter != "estimate"  # noqa: S105  # tokens of a text, not of a login
        if provider is None or not learns:
            return
        self._asked = (provider.name, tokens)
        if self._calibration is None:
            self._calibration = _UsageCalibration()
            self._coordinator.hooks.register(
                PROVIDER_RESPONSE, self._learn, name=CAPABILITY
            )

    def _learn(self, _: str, data: ProviderResponse) -> None:
        usage = data["usage"]
        if self._asked is None or usage is None or self._calibration is None:
            return
        name, tokens = self._asked
        self._asked = None
        self._calibration.learn(name, tokens, usage.input_tokens)

    def _look_at_tools(self) -> None:
        """Note which tools are mounted, and how many tokens they have at most."""
        mounted = self._mounted
        if mounted is None:
            mounted = self._mounted = cast(
                "Mapping[str, Tool]", self._coordinator.get("tools")
            )
        if mounted != self._tools:
            self._tools = dict(mounted)
            self._tools_most = sum(
                most_of_text(_described(tool)) for tool in self._tools.values()
            )
            self._tools_tokens = None


def _described(tool: Tool) -> str:
    # a loop that asks for a view has it imported
    from amplifier_sdk.loops import schema_of

    return f"{tool.name} {tool.description} {dict(schema_of(tool))}"


@attrs.define(eq=False)
class _UsageCalibration:
    """The ratio of reported to counted tokens for each model, a moving average."""

    _ratios: dict[str, float] = attrs.field(factory=dict, init=False)

    def ratio(self, model: str) -> float:
        """Return how many tokens the model has for one of the meter's; 1 as long as nothing is known."""
        return self._ratios.get(model, 1.0)

    def learn(self, model: str, counted: int, reported: int) -> None:
        """Take in what a request was counted at and what the model reported for it."""
        if counted < 1 or reported < counted * IMPLAUSIBLE:
            return
        now = min(max(reported / counted, SMALLEST), LARGEST)
        known = self._ratios.get(model, now)
        self._ratios[model] = WEIGHT * now + (1 - WEIGHT) * known
