"""Events of requests to a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs
from opentelemetry.trace import SpanKind

from amplifier_module_hooks_otel import _names as names
from amplifier_module_hooks_otel._facts import (
    answer,
    error_type,
    finish_reason,
    with_error,
)
from amplifier_module_hooks_otel._steps import OpenSpan, short
from amplifier_module_hooks_otel._trace import UNFINISHED, Data, SpanTrace, TurnTrace
from amplifier_sdk import ChatResponse
from amplifier_sdk.messages import MessageDict

__all__ = ["RequestListener"]

_MESSAGES: Final = 200
"""How many messages of a history are considered for the attribute."""


@attrs.frozen(eq=False)
class RequestListener:
    """Hears where requests begin and end."""

    trace: SpanTrace

    def request_began(self, _: str, data: Data) -> None:
        """Begin a request, and its iteration when it is the first one there."""
        turn, id = self.trace.turn_of(data), data.get("span_id")
        # A hand-written loop may report requests without a turn or an id.
        if turn is None or not isinstance(id, str):
            return
        earlier = turn.requests.pop(id, None)
        if earlier is not None:  # a loop written by hand told no end of it
            self.trace.steps.close(earlier, UNFINISHED)
        self._iterate(turn, data)
        provider, model = str(data.get("provider")), data.get("model")
        labels = {names.OPERATION: "chat", names.PROVIDER: self._provider(provider)}
        if isinstance(model, str):
            labels[names.REQUEST_MODEL] = model
        turn.step.attributes.setdefault(names.PROVIDER, labels[names.PROVIDER])
        name = "chat"
        if isinstance(model, str):
            name = f"chat {model}"
        above, attributes = turn.above(data.get("iteration")), self.trace.common(data)
        step = self.trace.steps.begin(
            name, attributes, labels, above, kind=SpanKind.CLIENT
        )
        turn.requests[id] = step
        messages = data.get("messages")
        if self.trace.config.capture_content and isinstance(messages, Sequence):
            # A copy now, since the history changes before the worker's thread writes
            # it.
            newest: list[MessageDict] = list(messages[-_MESSAGES:])
            writer = self.trace.writer()
            step.contents.append(
                lambda: {names.INPUT_MESSAGES: writer.messages(newest)}
            )

    def model_named(self, _: str, data: Data) -> None:
        """Note the model that the provider asks, where nobody else named one."""
        step, model = self._open(data), data.get("model")
        if (
            step is not None
            and isinstance(model, str)
            and names.REQUEST_MODEL not in step.labels
        ):
            step.labels[names.REQUEST_MODEL] = step.attributes[names.REQUEST_MODEL] = (
                short(model)
            )
            step.span.update_name(short(f"chat {model}"))

    def block_began(self, _: str, data: Data) -> None:
        """Note when the first piece of a streamed answer came; a whole answer has no first piece."""
        step = self._open(data)
        if step is not None and step.first_chunk is None and "total_blocks" not in data:
            step.first_chunk = step.attributes[names.TIME_TO_FIRST_CHUNK] = step.seconds
            step.attributes[names.REQUEST_STREAM] = True

    def request_answered(self, _: str, data: Data) -> None:
        """End a request that has an answer."""
        turn, step, response = self.trace.turn, self._take(data), data.get("response")
        if turn is None or step is None:
            return
        # A request that failed and was retried is no failure of the turn.
        turn.error = None
        if isinstance(response, ChatResponse):
            step.attributes.update(answer(response))
            model = step.attributes.get(names.RESPONSE_MODEL)
            if isinstance(model, str):
                step.labels[names.RESPONSE_MODEL] = model
            if self.trace.config.capture_content:
                said = response.to_message()
                reason = finish_reason(response)
                writer = self.trace.writer()
                step.contents.append(
                    lambda: {names.OUTPUT_MESSAGES: writer.messages([said], reason)}
                )
            if response.usage is not None:
                if turn.usage is None:
                    turn.usage = response.usage
                else:
                    turn.usage = turn.usage + response.usage
                if self.trace.metrics is not None:
                    self.trace.metrics.count_tokens(
                        response.usage, step.labels, step.context
                    )
        self._finish_request(step)

    def request_failed(self, _: str, data: Data) -> None:
        """End a request that failed or was cancelled."""
        turn, step = self.trace.turn, self._take(data)
        if turn is None or step is None:
            return
        turn.error, status = error_type(data), data.get("status_code")
        if isinstance(status, int):
            step.attributes[names.HTTP_STATUS] = status
        self._finish_request(step, turn.error)

    def _finish_request(self, step: OpenSpan, error: str | None = None) -> None:
        seconds = step.seconds
        self.trace.steps.close(step, error)
        if self.trace.metrics is not None:
            self.trace.metrics.chat.record(seconds, with_error(step), step.context)
            if step.first_chunk is not None:
                self.trace.metrics.first_chunk.record(
                    step.first_chunk, step.labels, step.context
                )

    def _iterate(self, turn: TurnTrace, data: Data) -> None:
        """Begin the next iteration, which ends the one before."""
        number = data.get("iteration")
        if not self.trace.config.iteration_spans or number == turn.number:
            return
        if turn.iteration is not None:
            self.trace.steps.close(turn.iteration)
        turn.number = number
        attributes, above = self.trace.common({"iteration": number}), turn.step.context
        turn.iteration = self.trace.steps.begin(
            f"iteration {number}", attributes, {}, above, is_current=False
        )

    def _provider(self, name: str) -> str:
        return self.trace.config.provider_names.get(name) or names.PROVIDERS.get(
            name, name
        )

    def _open(self, data: Data) -> OpenSpan | None:
        turn = self.trace.turn
        if turn is None:
            return None
        return turn.requests.get(str(data.get("span_id")))

    def _take(self, data: Data) -> OpenSpan | None:
        turn = self.trace.turn
        if turn is None:
            return None
        return turn.requests.pop(str(data.get("span_id")), None)
