"""Events of turns."""

from __future__ import annotations

import attrs

from amplifier_kit.open_data import as_object
from amplifier_module_hooks_otel import _names as names
from amplifier_module_hooks_otel._steps import Attributes
from amplifier_module_hooks_otel._trace import Data, SpanTrace
from amplifier_sdk.messages import MessageDict

__all__ = ["TurnListener"]


@attrs.frozen(eq=False)
class TurnListener:
    """Hears where turns begin and end."""

    trace: SpanTrace

    def session_began(self, _: str, data: Data) -> None:
        """Take the agent's name from the session's metadata."""
        name = as_object(data.get("metadata")).get("agent_name")
        if isinstance(name, str):
            self.trace.agent_name = name

    def turn_began(self, event: str, data: Data) -> None:
        """Begin a turn, and note what was asked."""
        turn = self.trace.turn_of(data, is_framed=event == "execution:start")
        prompt = data.get("prompt")
        if (
            turn is None
            # Two events report the prompt; the first one counts.
            or turn.step.contents
            or not self.trace.config.capture_content
            or not isinstance(prompt, str)
        ):
            return
        asked: list[MessageDict] = [{"role": "user", "content": prompt}]
        writer = self.trace.writer()
        turn.step.contents.append(
            lambda: {names.INPUT_MESSAGES: writer.messages(asked)}
        )

    def loop_completed(self, event: str, data: Data) -> None:
        """End the turn of a loop that reports no other end of it."""
        if self.trace.turn is not None and not self.trace.turn.is_framed:
            self.turn_ended(event, data)

    def turn_ended(self, _: str, data: Data) -> None:
        """End the turn, and whatever of it is still open."""
        turn = self.trace.turn
        if turn is None or data.get("turn_id") != turn.id:
            return
        status, response = data.get("status"), data.get("response")
        if isinstance(status, str):
            turn.step.attributes[names.STATUS] = status
        if self.trace.config.capture_content and isinstance(response, str) and response:
            said: list[MessageDict] = [{"role": "assistant", "content": response}]
            writer = self.trace.writer()
            turn.step.contents.append(
                lambda: {names.OUTPUT_MESSAGES: writer.messages(said, "stop")}
            )
        failed = {"cancelled": "cancelled", "error": turn.error or "error"}
        self.trace.end(turn, failed.get(str(status)))

    def happened(self, event: str, data: Data) -> None:
        """Note on a step's span that it was retried, or that a person was asked."""
        step = None
        if self.trace.turn is not None:
            step = self.trace.turn.find(data.get("span_id"))
        if step is None or not step.span.is_recording():
            return
        known = {
            key: data.get(key)
            for key in ("attempt", "delay", "error_type", "risk_level")
        }
        said: Attributes = {
            key: value
            for key, value in known.items()
            if isinstance(value, (str, int, float))
        }
        step.span.add_event(event, said)
