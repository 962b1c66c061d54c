"""Whatever a hook puts out or does: an event gets its answer, nothing stays behind, nobody is harmed."""

from __future__ import annotations

import json
import random
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Final

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from amplifier import AmplifierSession
from amplifier.testing import MockTool
from amplifier_module_hooks_shell._answers import read_judgement, read_ran
from amplifier_module_hooks_shell._process import CommandResult
from amplifier_sdk import ToolResult
from amplifier_sdk.jsontypes import JSONValue

OpenSession = Callable[..., AmplifierSession]  # type: ignore[explicit-any]  # its options go by name
Run = Callable[..., Awaitable[ToolResult]]  # type: ignore[explicit-any]  # likewise
HookOf = Callable[..., dict[str, JSONValue]]  # type: ignore[explicit-any]  # likewise
ONE_BACKEND: Final = pytest.mark.parametrize(
    "anyio_backend", ["asyncio"], scope="session"
)
WORDS = (
    "allow",
    "deny",
    "ask",
    "block",
    "approve",
    "ALLOW",
    " allow",
    "allow\0",
    "",
    "null",
    "true",
    "\u202eyneD",
    "💥",
)
VALUES: tuple[JSONValue, ...] = (
    *WORDS,
    None,
    True,
    False,
    0,
    -1,
    1e308,
    [],
    {},
    [[]],
    {"a": {"b": []}},
    "x" * 10_000,
)
KEYS = (
    "continue", "stopReason", "suppressOutput", "systemMessage", "decision", "reason", "hookSpecificOutput", "ok",
    "permissionDecision", "updatedInput", "additionalContext", "permissionDecisionReason", "__proto__", "",
)  # fmt: skip


def hostile_outputs() -> Iterator[str]:
    """Yield 400 outputs: texts that only look like answers, and answers with every kind of value in every place."""
    yield from (
        '{"decision": NaN}',
        '{"a": 1e999}',
        "{" * 5_000,
        "[" * 50_000,
        '{"a":' * 2_000,
        "{}}",
        "{'a': 1}",
        "{]",
    )
    yield from (
        "\ufeff{}",
        "{\0}",
        '{"decision": "allow"',
        "\x1b[2J{}",
        "{} {}",
        "\ud800",
        "{" + " " * 50_000 + "}",
    )
    source = random.Random(7)
    for _ in range(385):
        inner = {
            key: source.choice(VALUES)
            for key in source.sample(KEYS, source.randrange(len(KEYS)))
        }
        outer = {
            key: source.choice(VALUES)
            for key in source.sample(KEYS, source.randrange(len(KEYS)))
        }
        yield json.dumps(
            {**outer, "hookSpecificOutput": inner} if source.random() < 0.5 else outer
        )


def test_an_output_is_read_or_is_a_failure_and_never_both() -> None:
    for output in hostile_outputs():
        answer = read_ran(CommandResult(code=0, output=output), strict=False)
        evaluated = read_judgement(output)

        assert answer.verdict in (None, "allow", "deny", "ask")
        assert answer.failure is None or (
            answer.verdict,
            answer.context,
            answer.updated,
        ) == (None, "", None)
        assert (evaluated.verdict is None) is (evaluated.failure is not None)


@given(st.text(), st.text(), st.integers(0, 255), st.booleans())
def test_an_exit_code_means_one_thing_whatever_was_put_out(
    output: str, errors: str, code: int, strict: bool
) -> None:
    answer = read_ran(
        CommandResult(code=code, output=output, errors=errors), strict=strict
    )

    if code == 2:
        assert answer.verdict == "deny"
    elif code:
        assert answer.verdict is None
        assert (answer.failure is not None) is strict


@given(
    st.recursive(
        st.none() | st.booleans() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=10,
    )
)
def test_any_json_is_an_answer_or_a_failure(value: JSONValue) -> None:
    answer = read_ran(CommandResult(code=0, output=json.dumps(value)), strict=False)

    assert answer.verdict is None or isinstance(value, dict)


BEHAVIOURS = {
    "never ends": ("sleep 1234", False),
    "puts out without end": ("yes", False),
    "puts out one endless line": ("tr '\\0' x < /dev/zero", False),
    "complains without end": ("yes >&2", False),
    "closes its input": ("exec 0<&-; exit 0", True),
    "never reads": ("exit 0", True),
    "closes its output": ("exec 1>&- 2>&-; exit 0", True),
    "closes its output and stays": ("exec 1>&- 2>&-; sleep 1234", False),
    "leaves a process that holds its output": ("sleep 1234 & exit 0", True),
    "leaves a process in a session of its own": ("setsid sleep 1234 & exit 0", True),
    "forks twice and denies": ("( (sleep 1234 &) & ); echo no >&2; exit 2", False),
    "ignores signals": ("trap '' TERM INT HUP; sleep 1234; sleep 1234", False),
    "stops itself": ("kill -STOP $$", False),
    "kills its parent": ("kill -9 $PPID; exit 0", False),
    "puts out bytes": ("head -c 1000 /dev/urandom", True),
    "puts out escapes": ("printf '\\033[2J\\033]0;x\\007'", True),
    "takes many handles": (
        'for i in $(seq 3 200); do eval "exec $i</dev/null"; done; exit 0',
        True,
    ),
    "deletes where it is": (
        'rm -rf "$PWD/sub"; mkdir sub; cd sub; rmdir ../sub; exit 0',
        True,
    ),
}


@pytest.mark.process
@ONE_BACKEND
@pytest.mark.parametrize("behaviour", BEHAVIOURS)
async def test_whatever_hook_does_call_gets_answer_and_nothing_stays(
    work: Path, hook_of: HookOf, open_session: OpenSession, run: Run, behaviour: str
) -> None:
    command, passes = BEHAVIOURS[behaviour]
    tool = MockTool("bash", "done")
    async with open_session(
        hook_of("PreToolUse", command, "Bash", timeout=30 if passes else 0.3),
        tools=[tool],
    ) as session:
        with anyio.fail_after(19):
            result = await run(session, "bash", command="ls")

    assert bool(tool.calls) is passes, result.get_serialized_output()
    assert _running_below(work) == []


def _running_below(folder: Path) -> list[str]:
    """Return the folders of live processes that work in a folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                place = str((entry / "cwd").readlink())
            except OSError:
                continue
            if place.startswith(str(folder)):
                found.append(place)
    return found
