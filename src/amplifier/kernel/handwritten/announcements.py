"""The calls that a loop written by hand announces itself: what was decided of each, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from amplifier_sdk.chat import ChatResponse, ToolCall
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.results import Decision, Emission, ToolResult

__all__ = ["AnnouncedCall", "Announcements"]


@attrs.frozen(eq=False)
class AnnouncedCall:
    """A call that its loop announced: `call` is what was decided to run, or `refusal` says why nothing is.

    `asked` is the input as it was announced, a copy. `given` and `shown` are the objects that the loop holds, which
    distinguish equal calls and are compared by identity alone, since a loop may change them.
    """

    call: ToolCall
    asked: JSONObject
    given: object
    shown: object
    refusal: ToolResult | None

    def fits(self, name: str, arguments: JSONObject) -> bool:
        """Whether it speaks of a call, with the input as announced or as handlers changed it."""
        return self.call.name == name and arguments in (self.asked, self.call.arguments)


@attrs.frozen(eq=False)
class _EndedCall:
    """A call that was run and reported: as it ran, the inputs the loop knows it by, and what handlers decided."""

    call: ToolCall
    inputs: tuple[JSONObject, ...]
    result: ToolResult
    decisions: Sequence[Decision]


class Announcements:
    """What a loop written by hand announced and ran in one turn; each entry is used once."""

    def __init__(self) -> None:
        self._requests: dict[object, Emission] = {}
        self._responses: list[tuple[str, ChatResponse, Sequence[Decision]]] = []
        self._failures: list[str] = []
        self._expected: list[ToolCall] = []
        self._announced: list[AnnouncedCall] = []
        self._ended: list[_EndedCall] = []
        self._decisions: dict[str, Sequence[Decision]] = {}
        self._results: list[tuple[str, JSONObject, ToolResult]] = []

    # -- provider calls

    def note_request(self, provider: object, decided: Emission) -> None:
        """Note what was decided of a request that the loop announced, under the name that it gave the provider."""
        self._requests[provider] = decided

    def take_request(self, provider: str) -> Emission | None:
        """Return what was decided of the request that the loop makes now, if it announced it.

        A loop may call a provider by another name than it is mounted under.
        """
        if provider in self._requests:
            return self._requests.pop(provider)
        if self._requests:
            return self._requests.pop(next(iter(self._requests)))
        return None

    def note_response(
        self, provider: str, response: ChatResponse, decisions: Sequence[Decision]
    ) -> None:
        """Note that an answer was reported, and what is left of the decisions for a loop that reports it too."""
        self._responses.append((provider, response, decisions))

    def take_response(self, data: Mapping[str, object]) -> Sequence[Decision] | None:
        """Return what was decided on the answer that an event speaks of; `None` if it was not reported."""
        given = data.get("response")
        for entry in self._responses:
            provider, response, decisions = entry
            if given is response or (
                given is None and data.get("provider") == provider
            ):
                self._responses.remove(entry)
                return decisions
        return None

    def note_failure(self, provider: str) -> None:
        """Note that the failure of a provider call was reported."""
        self._failures.append(provider)

    def take_failure(self, data: Mapping[str, object]) -> bool:
        """Return whether the failure that an event speaks of was reported."""
        provider = data.get("provider")
        if provider not in self._failures:
            return False
        self._failures.remove(str(provider))
        return True

    # -- tool calls

    def expect(self, calls: Sequence[ToolCall]) -> None:
        """Note the calls of an answer, which the loop runs next."""
        self._expected = list(calls)

    def adopt(self, name: str, arguments: Mapping[str, JSONValue]) -> str | None:
        """Return the id that the model gave a call, known by its tool and its input; each is returned once.

        The journal then pairs the call with the answer that asked for it, also where the loop passes no ids.
        """
        for call in self._expected:
            if call.name == name and call.arguments == arguments:
                self._expected.remove(call)
                return call.id
        return None

    def announce(self, announced: AnnouncedCall) -> None:
        """Note what was decided of a call that the loop announced."""
        self._announced.append(announced)

    def take(self, call: ToolCall) -> AnnouncedCall | None:
        """Return what was decided of a call that the loop runs now, if it announced it.

        Of several that fit, the one whose very object the loop passes, else the latest: a loop that announced a
        call twice is held to the last answer.
        """
        fitting = [
            entry for entry in self._announced if entry.fits(call.name, call.arguments)
        ]
        if not fitting:
            return None
        same = [
            entry
            for entry in fitting
            if call.arguments is entry.given or call.arguments is entry.shown
        ]
        taken = (same or fitting)[-1]
        # each is used once: the same call again is a new one, to be decided on anew
        self._announced.remove(taken)
        return taken

    def note_end(self, call_id: str, decisions: Sequence[Decision]) -> None:
        """Note that a call's end was reported, and what is left of the decisions for a loop that reports it too."""
        self._decisions[call_id] = decisions

    def end(
        self, call: ToolCall, inputs: tuple[JSONObject, ...], result: ToolResult
    ) -> None:
        """Note how a call ended; the end of one that was cancelled before it ran was reported to nobody."""
        self._results.append((call.name, inputs[0], result))
        decisions = self._decisions.pop(call.id, None)
        if decisions is not None:
            self._ended.append(_EndedCall(call, inputs, result, decisions))

    def take_end(self, data: Mapping[str, object]) -> Sequence[Decision] | None:
        """Return what was decided at the end of the call that an event speaks of; `None` if it was not reported.

        The call is the one with the event's result or id, else with its tool and input, else of its tool where the
        event names no input.
        """
        ended = self._exactly(data) or self._alike(data)
        if ended is None:
            return None
        self._ended.remove(ended)
        return ended.decisions

    def take_result(
        self, name: str, arguments: Mapping[str, JSONValue]
    ) -> ToolResult | None:
        """Return the result of a call that ended, known by its tool and its input; each is returned once."""
        for entry in self._results:
            if entry[0] == name and entry[1] == arguments:
                self._results.remove(entry)
                return entry[2]
        return None

    def _exactly(self, data: Mapping[str, object]) -> _EndedCall | None:
        results = [data[key] for key in ("result", "tool_result") if key in data]
        call_id = data.get("tool_call_id")
        for ended in self._ended:
            if ended.call.id == call_id or any(
                result is ended.result for result in results
            ):
                return ended
        return None

    def _alike(self, data: Mapping[str, object]) -> _EndedCall | None:
        given = data.get("tool_input")
        for ended in self._ended:
            if ended.call.name == data.get("tool_name") and (
                given is None or given in ended.inputs
            ):
                return ended
        return None
