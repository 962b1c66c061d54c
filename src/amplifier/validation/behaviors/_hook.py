"""What is true of every good hook."""

from __future__ import annotations

from typing import Final

from amplifier.validation.behaviors import _hook_expectations as it
from amplifier.validation.behaviors import _hook_scenarios as given
from amplifier.validation.behaviors._orchestrator_scenarios import raising_tool
from amplifier.validation.behaviors.behavior import Behavior, promise
from amplifier.validation.behaviors.harness import session
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.results import ToolResult

_VALUES: Final[tuple[JSONValue, ...]] = (
    None,
    5,
    -1.5,
    True,
    "",
    "text",
    [],
    [{"a": 1}],
    {"a": {"b": None}},
)
_ARGUMENTS: Final = [
    {"tool_input": dict.fromkeys(("file_path", "command", "x"), value)}
    for value in _VALUES
]
_OUTPUTS: Final = [
    *(ToolResult(output=value) for value in _VALUES),
    ToolResult(success=False),
]
_RESULTS: Final = [{"result": output, "tool_result": output} for output in _OUTPUTS]
_UNKNOWN_KEYS: Final = given.with_values(
    {"x_unknown": 1, "x_object": object(), "x_nested": {"a": [None, b"bytes"]}},
)
_BROKEN: Final = "broken \ud83d text \x00 \x1b[31m"
_BROKEN_TEXTS: Final = {
    "tool_input": {"text": _BROKEN},
    "prompt": _BROKEN,
    "response": _BROKEN,
    "tool_name": _BROKEN,
}

# A row: what is done and what must hold; what that promises; what the author does when it does not hold.
# fmt: off
HOOK: Final[tuple[Behavior, ...]] = (
    # -- how it listens: to which events, under which names, in which turns
    promise("hook.hears-something", session(), it.hears_something,
        says="It registers at least one handler when it is mounted.",
        fix="Register handlers on coordinator.hooks in mount, or mark methods with @on."),
    promise("hook.hears-events-that-exist", session(), it.hears_known_events,
        says="Every event that it listens to is canonical, declared by some module, or a pattern that some event "
             "fits.",
        fix="Correct the event's name: take it from amplifier_sdk.events, or declare the module's own."),
    promise("hook.hears-each-event-once", session(), it.hears_each_event_once,
        says="No handler is registered twice for one event.",
        fix="Register each handler once for an event."),
    promise("hook.names-its-handlers", session(), it.names_its_handlers,
        says="Every handler has a name by which logs and denials call it.",
        fix="Give handlers a name: pass name= to register, or use a named function or method."),
    promise("hook.takes-an-event-and-its-data", session(), it.takes_event_and_data,
        says="Every handler can be called with an event's name and its data.",
        fix="Write handlers as (event, data)."),
    promise("hook.has-numbers-as-priorities", session(), it.has_whole_priorities,
        says="The priority of every handler is a whole number.",
        fix="Pass a whole number as priority; lower runs earlier."),
    promise("hook.hears-in-every-session", given.two_sessions, it.have_the_same_handlers,
        says="A second session has the same handlers as the first.",
        fix="Register handlers in mount, not when the package is imported, and not forever."),
    promise("hook.hears-its-own-session-alone", given.overlapping_sessions, it.have_the_same_registry,
        says="A handler that is registered in one session is not called by another.",
        fix="Keep what a handler notes in its instance, one for each session."),
    promise("hook.serves-a-turn", given.turn(), it.raises_nothing,
        says="In a turn with a tool call none of its handlers raises.",
        fix="Read the data with defaults, and let handlers return HookResult or None instead of raising."),
    promise("hook.serves-a-turn-with-a-failing-tool", given.turn(tool=raising_tool), it.raises_nothing,
        says="In a turn with a tool that raises none of its handlers raises.",
        fix="Expect tool:error: its data has 'error' and no result."),
    promise("hook.serves-a-turn-that-fails", given.turn(OSError("the line went dead")), it.raises_nothing,
        says="In a turn whose provider fails none of its handlers raises.",
        fix="Expect provider:error, and turns without prompt:complete."),
    promise("hook.serves-a-turn-that-is-cancelled", given.cancelled_turn, it.raises_nothing, is_timed=True,
        says="A turn that is cancelled ends within two seconds, and none of its handlers raises.",
        fix="Expect cancel:requested and turns without an answer, and let cancellation pass."),
    promise("hook.does-not-answer-itself", session(), it.answers_no_event_of_its_own,
        says="None of its handlers is called again by what it emits itself.",
        fix="Do not emit the event that the handler listens to, or guard against its own."),
    # -- what it answers: a result that says why, and leaves alone what it was shown
    promise("hook.answers-with-a-result", given.answers, it.is_a_result,
        says="To each event that it hears each handler answers with a HookResult or nothing.",
        fix="Return a HookResult or None from every path of a handler."),
    promise("hook.answers-soon", given.varied(given.usual), it.answers_soon, is_timed=True,
        says="Each handler answers within a second.",
        fix="Answer at once; do what takes long in a task of the module's own (coordinator.own)."),
    promise("hook.leaves-the-data-alone", given.each_emission, it.leaves_its_data,
        says="No handler changes anything in the data that it is given, at any depth.",
        fix="Return HookResult.modify with the changed keys; copy what is nested before changing it."),
    promise("hook.says-why-it-denies", given.results(given.of_action("deny"), "it never answers 'deny'"),
        it.has_a_reason,
        says="Every denial has a reason.",
        fix="Give every denial a reason: the model and the log get it."),
    promise("hook.says-what-it-asks", given.results(given.of_action("ask_user"), "it never answers 'ask_user'"),
        it.has_a_prompt,
        says="Every question to the person has a text, a deadline and two options at least.",
        fix="Give every question a prompt that says what is about to happen."),
    promise("hook.changes-what-the-event-has", given.results(given.of_action("modify"), "it never answers 'modify'"),
        it.changes_what_is_there,
        says="Every change names keys that its event carries, with values of the same type.",
        fix="Name in 'data' the keys that are changed, as the event has them."),
    promise("hook.adds-texts-that-can-be-stored",
        given.results(given.of_action("inject_context"), "it never answers 'inject_context'"), it.adds_a_text,
        says="Every text that it adds is not empty, is smaller than a session takes by default, and has a role.",
        fix="Inject a text with one of the roles system, user and assistant."),
    promise("hook.shows-messages-of-a-known-level", given.results(given.with_message, "it shows no messages"),
        it.has_a_known_level,
        says="Every message to the person has one of the levels info, warning and error.",
        fix="Use the levels info, warning and error."),
    promise("hook.decides-where-it-denies",
        given.results(given.of_action("deny", "ask_user"), "it neither denies nor asks"),
        it.is_blocking,
        says="A handler that denies or asks is registered as a blocking handler, so that its failure denies as well.",
        fix="Register with decides=True what denies or asks on other events than tool:pre and prompt:submit."),
    # -- data that it did not expect, and many events at once
    promise("hook.survives-events-without-data", given.patterns_without_data, it.answers,
        says="An event that carries nothing does not break a handler that listens to a pattern.",
        fix="Read keys with data.get in a handler of a pattern: some events carry nothing."),
    promise("hook.survives-missing-keys", given.varied(given.without_optional_keys), it.answers,
        says="Keys that an event may come without, such as its ids, may be missing.",
        fix="Read ids and what the payload's type marks as NotRequired with data.get."),
    promise("hook.survives-unknown-keys", given.varied(_UNKNOWN_KEYS), it.answers,
        says="Keys that nobody knows, with values of any kind, do not break it.",
        fix="Let handlers ignore what they do not know."),
    promise("hook.survives-null-values", given.varied(given.with_nulls), it.answers,
        says="Values that may be null, such as the model's name or the usage, are null in some events.",
        fix="Check for None where the payload's type allows it."),
    promise("hook.survives-any-arguments-and-results",
        given.varied(given.with_values({"tool_input": {}}, *_ARGUMENTS, *_RESULTS)), it.answers,
        says="Tool arguments and outputs of any JSON type do not break it.",
        fix="Check the type of a tool's arguments and output before they are used: any JSON may stand there."),
    promise("hook.survives-huge-values", given.varied(given.with_huge_texts), it.answers_cheaply, is_timed=True,
        says="A text of a million characters in the data takes less than a second of processor time.",
        fix="Do work that grows with the length of a text once, and linearly; limit what is read."),
    promise("hook.survives-deep-values", given.varied(given.with_deep_arguments), it.answers,
        says="Arguments that are nested two thousand levels deep do not break it.",
        fix="Walk nested values with a limit of depth, not by recursion without end."),
    promise("hook.survives-broken-characters", given.varied(given.with_values(_BROKEN_TEXTS)), it.answers,
        says="Half of a surrogate pair, NUL and control characters in texts do not break it.",
        fix="Encode texts with errors='replace' or 'backslashreplace' wherever they are written."),
    promise("hook.survives-events-it-does-not-know", given.patterns_with_strays, it.answers,
        says="Events that nobody knows do not break a handler that listens to a pattern.",
        fix="Let a handler of a pattern expect events of other modules."),
    promise("hook.answers-at-once-from-many-tasks", given.first_events, it.answers_at_once,
        says="Twenty events at once are all answered.",
        fix="Guard what calls of a handler share with a lock, and hold it shortly."),
    promise("hook.ends-when-it-is-cancelled", given.varied(given.usual), it.ends_when_cancelled, is_timed=True,
        says="A handler that is cancelled, at whatever step, ends within two seconds.",
        fix="Let the cancellation pass: never catch it to continue."),
    promise("hook.hears-calls-as-the-kernel-sends-them", session(), it.keeps_arguments,
        says="A tool call that it neither denies nor changes keeps its arguments as JSON.",
        fix="Answer alike whether the ids of the turn are there or not."),
)
