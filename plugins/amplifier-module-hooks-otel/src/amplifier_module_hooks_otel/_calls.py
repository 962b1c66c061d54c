"""Events of tool calls."""

from __future__ import annotations

import attrs

from amplifier_module_hooks_otel import _names as names
from amplifier_module_hooks_otel._facts import error_type, tool_error, with_error
from amplifier_module_hooks_otel._steps import Attributes, OpenSpan
from amplifier_module_hooks_otel._trace import Data, SpanTrace, TurnTrace
from amplifier_sdk import ToolResult

__all__ = ["CallListener"]


@attrs.frozen(eq=False)
class CallListener:
    """Hears where tool calls begin and end."""

    trace: SpanTrace

    def tool_began(self, _: str, data: Data) -> None:
        """Begin a tool call."""
        turn = self.trace.turn_of(data)
        if turn is not None and _call_id(data) not in turn.calls:
            turn.calls[_call_id(data)] = self._call(turn, data)

    def tool_returned(self, _: str, data: Data) -> None:
        """End a tool call that has a result; its content waits for what other handlers leave of it."""
        step = None
        if self.trace.turn is not None:
            step = self.trace.turn.calls.get(_call_id(data))
        if step is None:
            return
        self._stop_call(step, tool_error(data.get("result")))
        if not self.trace.config.capture_content:
            self._take(data)
            self.trace.steps.close(step)

    def tool_reported(self, _: str, data: Data) -> None:
        """Take what a tool was given and returned, as all handlers left it."""
        step = self._take(data)
        if step is None:
            return
        given = data.get("tool_input")
        result = data.get("result")
        writer = self.trace.writer()
        step.contents.append(lambda: {names.TOOL_ARGUMENTS: writer.value(given)})
        if isinstance(result, ToolResult):
            step.contents.append(
                lambda: {names.TOOL_RESULT: writer.text(result.get_serialized_output())}
            )
        self.trace.steps.close(step)

    def tool_failed(self, _: str, data: Data) -> None:
        """End a tool call that gave no result; one that was refused before it began has a span as well."""
        turn = self.trace.turn_of(data)
        if turn is None:
            return
        step = self._take(data) or self._call(turn, data)
        if self.trace.config.capture_content:
            given, writer = data.get("tool_input"), self.trace.writer()
            step.contents.append(lambda: {names.TOOL_ARGUMENTS: writer.value(given)})
        self._stop_call(step, error_type(data))
        self.trace.steps.close(step)

    def _call(self, turn: TurnTrace, data: Data) -> OpenSpan:
        name = str(data.get("tool_name"))
        attributes: Attributes = {
            **self.trace.common(data),
            names.TOOL_TYPE: "function",
        }
        for key, attribute in (
            ("tool_call_id", names.TOOL_CALL_ID),
            ("parallel_group_id", names.PARALLEL_GROUP),
        ):
            value = data.get(key)
            if isinstance(value, str):
                attributes[attribute] = value
        labels = {names.OPERATION: "execute_tool", names.TOOL_NAME: name}
        return self.trace.steps.begin(
            f"execute_tool {name}",
            attributes,
            labels,
            turn.above(data.get("iteration")),
        )

    def _stop_call(self, step: OpenSpan, error: str | None) -> None:
        self.trace.steps.stop(step, error)
        if self.trace.metrics is not None:
            self.trace.metrics.tool.record(step.seconds, with_error(step), step.context)

    def _take(self, data: Data) -> OpenSpan | None:
        turn = self.trace.turn
        if turn is None:
            return None
        return turn.calls.pop(_call_id(data), None)


def _call_id(data: Data) -> str:
    """Return what the events of one call have in common; a loop's own events of its calls have other steps' ids."""
    return str(data.get("tool_call_id") or data.get("span_id"))
