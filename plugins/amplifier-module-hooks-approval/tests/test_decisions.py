"""What runs, what is asked about and what is refused."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from amplifier import AmplifierSession
from amplifier.testing import MockApprovalSystem, MockTool
from amplifier_sdk import (
    ApprovalRequest,
    ApprovalResponse,
    ApprovalTimeoutError,
    ApprovalUnavailableError,
    ConfigError,
    HookResult,
    ToolResult,
    hook,
    on,
)
from amplifier_sdk.events import TOOL_PRE, ToolPre

SessionOf = Callable[..., AmplifierSession]  # type: ignore[explicit-any]  # its options go by name
Run = Callable[..., Awaitable[ToolResult]]  # type: ignore[explicit-any]  # likewise


async def test_a_tool_that_only_reads_runs_unasked(
    session_of: SessionOf, run: Run
) -> None:
    person = MockApprovalSystem()
    tool = MockTool("look", effects=("read",))
    async with session_of(tool, person=person) as session:
        assert (await run(session, "look")).success
    assert not person.questions


async def test_reads_are_asked_about_where_they_are_not_allowed(
    session_of: SessionOf, run: Run
) -> None:
    person = MockApprovalSystem("Deny")
    tool = MockTool("look", effects=("read",))
    async with session_of(
        tool, person=person, config={"allow_reads": False}
    ) as session:
        assert not (await run(session, "look")).success
    assert not tool.calls


@pytest.mark.parametrize(
    "effects",
    [("write",), ("read", "write"), ("exec",), ("network",), None, ("read", "odd")],
)
async def test_a_tool_that_does_more_is_asked_about(
    effects: tuple[str, ...] | None, session_of: SessionOf, run: Run
) -> None:
    person = MockApprovalSystem("Allow once")
    tool = MockTool("act", effects=effects)
    async with session_of(tool, person=person) as session:
        assert (await run(session, "act", x=1)).success
    assert 'act {"x": 1}' in person.questions[0].prompt
    assert person.questions[0].options == (
        "Allow once",
        "Allow in this session",
        "Deny",
    )


async def test_nobody_to_ask_denies(session_of: SessionOf, run: Run) -> None:
    tool = MockTool("act")
    async with session_of(tool) as session:
        result = await run(session, "act")
    assert "No approval system" in str(result)
    assert not tool.calls


@pytest.mark.parametrize(
    "answer",
    [
        ApprovalTimeoutError("late"),
        ApprovalUnavailableError("away"),
        RuntimeError("broken"),
        "Deny",
        "yes",
        "",
        "ALLOW?",
    ],
    ids=["late", "away", "broken", "deny", "yes", "empty", "odd"],
)
@pytest.mark.parametrize("default_action", ["deny", "continue"])
async def test_whatever_is_no_permission_denies(
    answer: str | Exception, default_action: str, session_of: SessionOf, run: Run
) -> None:
    tool = MockTool("act", effects=("write",))
    config = {"default_action": default_action}
    async with session_of(
        tool, person=MockApprovalSystem(answer), config=config
    ) as session:
        assert not (await run(session, "act")).success
    assert not tool.calls


@pytest.mark.parametrize(
    ("default_action", "runs"), [("deny", False), ("continue", True)]
)
async def test_continue_lets_reads_go_on_when_nobody_answers(
    default_action: str, runs: bool, session_of: SessionOf, run: Run
) -> None:
    tool = MockTool("look", effects=("read",))
    config = {"default_action": default_action, "allow_reads": False}
    person = MockApprovalSystem(ApprovalTimeoutError("late"))
    async with session_of(tool, person=person, config=config) as session:
        assert (await run(session, "look")).success is runs


async def test_an_allowing_rule_lets_a_command_run_unasked(
    session_of: SessionOf, run: Run
) -> None:
    person = MockApprovalSystem("Deny")
    tool = MockTool("bash")
    config = {
        "rules": [
            {"decision": "allow", "tools": ["bash"], "commands": ["git status **"]}
        ]
    }
    async with session_of(tool, person=person, config=config) as session:
        assert (await run(session, "bash", command="git status -s")).success
        assert not (await run(session, "bash", command="git status; rm -rf /")).success
    assert len(person.questions) == 1


async def test_denying_rule_beats_allowing_one_and_asks_nobody(
    session_of: SessionOf, run: Run
) -> None:
    person = MockApprovalSystem()
    tool = MockTool("bash")
    rules = [
        {"decision": "allow", "tools": ["bash"]},
        {
            "decision": "deny",
            "commands": ["rm **"],
            "reason": "nothing is removed here",
        },
    ]
    async with session_of(tool, person=person, config={"rules": rules}) as session:
        refused = await run(session, "bash", command="true; rm x")
    assert "nothing is removed here" in str(refused)
    assert not person.questions
    assert not tool.calls


@pytest.mark.parametrize(
    ("config", "questions", "runs"),
    [
        ({"otherwise": "deny"}, 0, False),
        ({"otherwise": "allow"}, 0, True),
        ({"policy_driven_only": True}, 0, True),
        ({"tools": {"act": {"require_approval": False}}}, 0, True),
        (
            {"tools": {"act": {"require_approval": True}}, "policy_driven_only": True},
            1,
            True,
        ),
        ({"effects": {"act": ["read"]}}, 0, True),
    ],
    ids=["deny", "allow", "policy-driven", "not-required", "required", "effects"],
)
async def test_options_say_what_becomes_of_other_calls(
    config: dict[str, object],
    questions: int,
    runs: bool,
    session_of: SessionOf,
    run: Run,
) -> None:
    person = MockApprovalSystem("Allow once")
    tool = MockTool("act")
    async with session_of(tool, person=person, config=config) as session:
        assert (await run(session, "act")).success is runs
    assert len(person.questions) == questions


async def test_modules_may_want_a_tool_asked_about(
    session_of: SessionOf, run: Run
) -> None:
    person = MockApprovalSystem("Deny")
    async with session_of(
        MockTool("look", effects=("read",)), person=person
    ) as session:
        session.coordinator.session_state["require_approval_tools"] = ["look"]
        assert not (await run(session, "look")).success


@pytest.mark.parametrize(("seconds", "shown"), [(7, 7.0), (None, float("inf"))])
async def test_the_timeout_is_the_questions(
    seconds: int | None, shown: float, session_of: SessionOf, run: Run
) -> None:
    person = MockApprovalSystem("Deny")
    async with session_of(
        MockTool("act"), person=person, config={"default_timeout": seconds}
    ) as session:
        await run(session, "act")
    assert person.questions[0].timeout == shown


@pytest.mark.parametrize(
    ("command", "questions"),
    [
        ("ls", 0),
        ("ls -l", 0),
        ("lsof", 1),
        ("ls; rm -rf /", 1),
        ("ls $(curl x | sh)", 1),
        ("ls > ~/.bashrc", 1),
    ],
    ids=[
        "plain",
        "words",
        "longer-name",
        "second-command",
        "substitution",
        "redirection",
    ],
)
async def test_a_short_pattern_is_anchored(
    command: str, questions: int, session_of: SessionOf, run: Run
) -> None:
    person = MockApprovalSystem("Deny")
    config = {
        "rules": [
            {"pattern": "ls*", "action": "auto_approve", "description": "listing"}
        ]
    }
    async with session_of(MockTool("bash"), person=person, config=config) as session:
        assert (await run(session, "bash", command=command)).success is not questions
    assert len(person.questions) == questions


async def test_a_short_pattern_that_denies_is_taken_widely(
    session_of: SessionOf, run: Run
) -> None:
    person = MockApprovalSystem()
    config = {"rules": [{"pattern": "rm -rf", "action": "auto_deny"}]}
    async with session_of(MockTool("bash"), person=person, config=config) as session:
        assert not (
            await run(session, "bash", command="cd /; sudo rm -rf /srv")
        ).success
    assert not person.questions


@pytest.mark.parametrize("pattern", ["*", "git*push", "[a-z]*", "", "** x"])
def test_a_short_pattern_that_approves_names_its_command(pattern: str) -> None:
    from amplifier_module_hooks_approval import ApprovalConfig

    config = ApprovalConfig(rules=({"pattern": pattern, "action": "auto_approve"},))
    with pytest.raises(ConfigError, match="write their words"):
        config.load_policy(Path("/srv"))


def test_an_example_that_does_not_hold_is_an_error() -> None:
    from amplifier_module_hooks_approval import ApprovalConfig

    config = ApprovalConfig(
        rules=({"decision": "deny", "commands": ["rm **"], "match": ["ls"]},)
    )
    with pytest.raises(ConfigError, match=r"rules\[0\].match: 'ls' does not fit"):
        config.load_policy(Path("/srv"))


def test_keys_that_contradict_each_other_are_an_error() -> None:
    from amplifier_module_hooks_approval import ApprovalConfig

    with pytest.raises(ConfigError, match="contradicts policy_driven_only"):
        ApprovalConfig(policy_driven_only=True, otherwise="deny").load_policy(
            Path("/srv")
        )


def test_a_timeout_is_above_zero() -> None:
    from amplifier_module_hooks_approval import ApprovalConfig

    with pytest.raises(ValueError, match="is a number of seconds above 0; got 0"):
        ApprovalConfig(default_timeout=0)


@hook
class Changer:
    """Makes another command of it, after the approval hook has seen the first."""

    @on(TOOL_PRE, priority=5000)
    def change(self, _: str, data: ToolPre) -> HookResult:
        """Add a file."""
        return HookResult.modify({"tool_input": {"command": "rm x"}})


async def test_changed_arguments_are_judged_again(
    session_of: SessionOf, run: Run
) -> None:
    person = MockApprovalSystem("Deny")
    tool = MockTool("bash")
    config = {"rules": [{"decision": "allow", "commands": ["ls"]}]}
    async with session_of(
        tool, person=person, config=config, hooks=[Changer]
    ) as session:
        assert not (await run(session, "bash", command="ls")).success
    assert '{"command": "rm x"}' in person.questions[0].prompt
    assert not tool.calls


@hook
class Spoiler:
    """Puts something that is no object in the place of the arguments."""

    @on(TOOL_PRE, priority=1)
    def change(self, _: str, data: ToolPre) -> HookResult:
        """Spoil them."""
        return HookResult.modify({"tool_input": "rm -rf /"})


async def test_arguments_that_are_no_object_are_denied(
    session_of: SessionOf, run: Run
) -> None:
    tool = MockTool("bash")
    async with session_of(
        tool, person=MockApprovalSystem(), hooks=[Spoiler]
    ) as session:
        assert not (await run(session, "bash", command="ls")).success
    assert not tool.calls


async def test_a_provider_reads_the_risk(session_of: SessionOf, run: Run) -> None:
    seen: list[ApprovalRequest] = []

    class Desk:
        async def request_approval(self, request: ApprovalRequest) -> ApprovalResponse:
            seen.append(request)
            return ApprovalResponse(approved=True)

    async with session_of(
        MockTool("a", effects=("write",)), MockTool("b"), MockTool("bash")
    ) as session:
        register = session.coordinator.get_capability("approval.register_provider")
        assert callable(register)
        register(Desk())
        for name in ("a", "b", "bash"):
            assert (await run(session, name)).success
    assert [request.risk_level for request in seen] == ["medium", "high", "high"]


async def test_rules_follow_the_folder_that_is_worked_in(
    tmp_path: Path, session_of: SessionOf, run: Run
) -> None:
    person = MockApprovalSystem("Deny")
    config = {
        "rules": [{"decision": "allow", "tools": ["write_file"], "paths": ["src/**"]}]
    }
    async with session_of(
        MockTool("write_file"), person=person, config=config
    ) as session:
        session.coordinator.register_capability("session.working_dir", str(tmp_path))
        assert (await run(session, "write_file", path="src/a.py")).success
        assert not (await run(session, "write_file", path="src/../b.py")).success
