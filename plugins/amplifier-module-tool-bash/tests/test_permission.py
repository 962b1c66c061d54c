"""Which commands run, are asked about, or never run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

import attrs
import pytest

from amplifier.kernel.coordinator import ModuleCoordinator
from amplifier_kit.shell import PathPolicy
from amplifier_module_tool_bash import Bash
from amplifier_module_tool_bash.permission import make_policy
from amplifier_sdk.assessments import ACCEPTED, EDITS
from amplifier_sdk.chat import ToolCall
from amplifier_sdk.errors import ConfigError, ToolError
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.results import ToolResult

Mount = Callable[..., Bash]  # type: ignore[explicit-any]  # its options go by name
Run = Callable[..., Awaitable[Mapping[str, object]]]  # type: ignore[explicit-any]  # its options go by name

COMMANDS = Path(__file__).with_name("commands")


class Person:
    """Answers every question in one way."""

    def __init__(self, answer: str) -> None:
        self.answer = answer
        self.asked: list[str] = []

    async def request_approval(
        self,
        prompt: str,
        options: Sequence[str],
        timeout: float,
        default: Literal["allow", "deny"],
        /,
    ) -> str:
        self.asked.append(prompt)
        return self.answer


async def call(coordinator: ModuleCoordinator, shell: Bash, command: str) -> ToolResult:
    """Call the tool as a turn does, hooks and person included."""
    call = ToolCall(id="1", name="sh", arguments={"command": command})
    return await coordinator.hooks.host.run_tool(call, {"sh": shell.bash})


def commands(name: str) -> list[str]:
    return (COMMANDS / f"{name}.txt").read_text().removesuffix("\n").split("\n----\n")


@pytest.fixture
def path_policy(root: Path) -> PathPolicy:
    (root / "src").mkdir()
    protected = (".git/hooks", ".git/config", ".amplifier")
    return PathPolicy(
        directory=str(root), writable=(str(root),), protected=protected, home="/root"
    )


@pytest.mark.parametrize("name", ["dangerous", "dangerous_unseen", "dangerous_tricks"])
def test_no_dangerous_command_runs_unasked(path_policy: PathPolicy, name: str) -> None:
    policy = make_policy()

    run = [
        command
        for command in commands(name)
        if policy.evaluate(command, path_policy, {"HOME": "/root"}).decision == "allow"
    ]

    assert run == []


@pytest.mark.parametrize("name", ["ordinary", "ordinary_unseen", "ordinary_daily"])
def test_ninety_five_of_hundred_ordinary_commands_run_unasked(
    path_policy: PathPolicy, name: str
) -> None:
    policy, texts = make_policy(), commands(name)

    verdicts = {
        text: policy.evaluate(text, path_policy, {"HOME": "/root"}) for text in texts
    }
    asked = [
        text
        for text, verdict in verdicts.items()
        if verdict.decision != "allow" or verdict.edits
    ]

    assert len(asked) <= len(texts) * 0.05, asked


@pytest.mark.process
async def test_an_ordinary_command_runs_without_a_question(
    coordinator: ModuleCoordinator, mount: Mount
) -> None:
    person = Person("Deny")
    coordinator.approval_system = person

    result = await call(
        coordinator, mount(default_rules=True, unlisted="ask"), "echo hi"
    )

    assert (result.success, person.asked) == (True, [])


@pytest.mark.process
@pytest.mark.parametrize(
    ("answer", "runs"), [("Allow once", True), ("Deny", False), ("nonsense", False)]
)
async def test_the_person_decides_on_what_is_asked_about(
    coordinator: ModuleCoordinator, mount: Mount, root: Path, answer: str, runs: bool
) -> None:
    person = Person(answer)
    coordinator.approval_system = person
    shell = mount(default_rules=True, unlisted="ask")

    result = await call(
        coordinator, shell, 'touch a && python3 -c \'open("ran", "w")\''
    )

    assert (result.success, (root / "ran").exists()) == (runs, runs)
    (question,) = person.asked
    assert "python3 -c" in question
    assert "no rule lets 'python3' run unasked" in question


async def test_without_anybody_to_ask_it_does_not_run(
    coordinator: ModuleCoordinator, mount: Mount, root: Path
) -> None:
    shell = mount(default_rules=True, unlisted="ask")

    result = await call(coordinator, shell, 'python3 -c \'open("ran", "w")\'')
    with pytest.raises(ToolError, match="a person must allow this command"):
        await shell.bash(command="curl http://localhost", context=None)  # type: ignore[arg-type]  # it is not reached

    assert (result.success, (root / "ran").exists()) == (False, False)


async def test_a_denied_command_is_not_asked_about(
    coordinator: ModuleCoordinator, mount: Mount
) -> None:
    person = Person("Allow once")
    coordinator.approval_system = person
    shell = mount(default_rules=True, unlisted="ask")

    result = await call(coordinator, shell, "sudo rm -rf /")

    assert (result.success, person.asked) == (False, [])
    assert "A rule refuses 'rm -rf /'" in result.get_serialized_output()
    with pytest.raises(ToolError, match="A rule refuses"):
        shell.permission.check("rm -rf /")


@pytest.mark.process
async def test_every_command_is_asked_about_where_the_plan_says_so(
    coordinator: ModuleCoordinator, mount: Mount
) -> None:
    person = Person("Allow always")
    coordinator.approval_system = person
    shell = mount(require_approval=True)

    for _ in range(2):
        assert (await call(coordinator, shell, "echo hi")).success

    assert len(person.asked) == 1
    assert "because every command is" in person.asked[0]


@pytest.mark.process
@pytest.mark.parametrize(
    ("unlisted", "runs"), [("allow", True), ("ask", False), ("deny", False)]
)
async def test_what_no_rule_is_about_is_a_setting(
    coordinator: ModuleCoordinator, mount: Mount, unlisted: str, runs: bool
) -> None:
    assert (await call(coordinator, mount(unlisted=unlisted), "true")).success is runs


@pytest.mark.parametrize(
    "command",
    [
        "cat .env",
        "cat < .env",
        "cp .env x",
        "grep -r . ~/.ssh/id_rsa",
        "base64 secrets/id_rsa",
        "K=.env; cat $K",
    ],
)
async def test_possible_secrets_are_asked_about_where_unlisted_run(
    coordinator: ModuleCoordinator, mount: Mount, root: Path, command: str
) -> None:
    (root / ".env").write_text("KEY=canary")
    person = Person("Deny")
    coordinator.approval_system = person

    result = await call(coordinator, mount(unlisted="allow"), command)

    assert (result.success, len(person.asked)) == (False, 1)


async def test_secrets_are_denied_where_unlisted_commands_are(
    coordinator: ModuleCoordinator, mount: Mount
) -> None:
    coordinator.approval_system = Person("Allow once")

    assert not (await call(coordinator, mount(unlisted="deny"), "cat .env")).success


@pytest.mark.process
async def test_rules_of_the_plan_count_besides_the_others(
    coordinator: ModuleCoordinator, mount: Mount
) -> None:
    rules = [
        {
            "decision": "allow",
            "commands": ["no-such-program plan"],
            "match": ["no-such-program plan -out x"],
        },
        {
            "decision": "deny",
            "commands": ["echo"],
            "reason": "silence",
            "not_match": ["printf x"],
        },
    ]
    shell = mount(default_rules=True, unlisted="ask", rules=rules)

    denied = await call(coordinator, shell, "echo hi")
    allowed = await call(coordinator, shell, "no-such-program plan")

    assert "silence" in denied.get_serialized_output()
    assert "127" in allowed.get_serialized_output()  # it ran, as far as it could


def test_a_rule_whose_example_does_not_hold_is_refused_by_name(mount: Mount) -> None:
    rules = [
        {
            "decision": "allow",
            "commands": ["git status"],
            "match": ["git log"],
            "not_match": ["git status -s", "((x"],
        },
    ]

    with pytest.raises(ConfigError) as caught:
        mount(rules=rules)

    assert [problem.path for problem in caught.value.problems] == [
        "rules[0].match",
        "rules[0].not_match",
        "rules[0].not_match",
    ]
    assert "'git log' does not fit" in str(caught.value)


async def test_calls_of_other_tools_are_not_judged(
    coordinator: ModuleCoordinator, mount: Mount
) -> None:
    shell = mount(unlisted="deny")
    call = ToolCall(id="1", name="bash", arguments={})

    assert (
        await coordinator.hooks.host.run_tool(call, {"bash": shell.bash_status})
    ).success


def test_an_edit_by_a_command_is_decided_on_as_edits_are(
    mount: Mount, root: Path
) -> None:
    (root / "a.txt").touch()
    permission = mount(default_rules=True, unlisted="ask").permission

    edit = permission.assess("echo x > a.txt")
    new = permission.assess("echo x > b.txt")

    assert edit.decision is None
    assert set(edit.effects or ()) == {"exec", "write"}
    assert edit.details == "Writes over 'a.txt'."
    assert [coverage.key for coverage in edit.coverages] == [EDITS]
    assert (new.decision, new.effects, new.coverages) == ("allow", ("exec",), ())


@pytest.mark.parametrize(
    "command",
    [
        "git reset --hard",
        "git checkout .",
        "git checkout -- a.txt",
        "git restore a.txt",
        "git clean -fd",
        "find . -delete",
        "python3 -c 'x'",
        'echo "(',
        "rm a.txt; unheard-of",
    ],
)
def test_a_question_says_that_no_backup_can_be_made(
    mount: Mount, root: Path, command: str
) -> None:
    (root / "a.txt").touch()
    permission = mount(default_rules=True, unlisted="ask").permission

    asked = permission.assess(command)

    assert asked.decision == "ask"
    assert asked.details == "No backup can be made of all that this command may change."


@pytest.mark.parametrize(
    "command",
    [
        "rm a.txt",
        "rm a.txt; touch a.txt",
        "rm -f a.txt; echo x > a.txt",
        "rm a.txt; mv b.txt a.txt",
        "cat .env",
    ],
)
def test_a_question_about_what_can_be_saved_says_nothing_of_backups(
    mount: Mount, root: Path, command: str
) -> None:
    (root / "a.txt").touch()
    (root / "b.txt").touch()
    permission = mount(default_rules=True, unlisted="ask").permission

    asked = permission.assess(command)

    assert (asked.decision, asked.details) == ("ask", "")


def test_what_is_written_over_is_named_without_way_to_say_more(
    mount: Mount, root: Path
) -> None:
    names = [f"{number}.txt" for number in range(25)]
    for name in (*names, "x\nRisk: low"):
        (root / name).touch()
    permission = mount(default_rules=True, unlisted="ask").permission

    many = permission.assess(f"truncate -s 0 {' '.join(names)}")
    odd = permission.assess("echo > 'x\nRisk: low'")

    assert many.details.endswith("'19.txt', and 5 more.")
    assert odd.details == "Writes over \"'x\\nRisk: low'\"."


@pytest.mark.parametrize(
    ("command", "network", "config"),
    [
        ("echo x > a.txt; curl http://localhost", False, {}),
        ("echo x > a.txt", True, {}),
        ("echo x > a.txt", False, {"require_approval": True}),
        ("python3 -c 'x' > a.txt", False, {}),
        ("echo x > .vscode/a.txt", False, {}),
        ("cat .env > a.txt", False, {}),
    ],
)
def test_who_accepts_edits_accepts_nothing_else(
    mount: Mount,
    root: Path,
    command: str,
    network: bool,
    config: Mapping[str, JSONValue],
) -> None:
    (root / "a.txt").touch()
    (root / ".vscode").mkdir()
    (root / ".vscode/a.txt").touch()
    permission = mount(default_rules=True, unlisted="ask", **config).permission

    said = permission.assess(command, network=network)

    assert said.decision == "ask"
    assert EDITS not in [coverage.key for coverage in said.coverages]


@pytest.mark.process
@pytest.mark.parametrize("accepts", [False, True])
async def test_an_edit_by_a_command_asks_unless_edits_are_accepted(
    coordinator: ModuleCoordinator, mount: Mount, root: Path, accepts: bool
) -> None:
    decisions = coordinator.decisions
    decisions.settings = attrs.evolve(decisions.settings, ask_before_changes=True)
    coordinator.approval_system = Person("Deny")
    if accepts:
        coordinator.register_capability(ACCEPTED, frozenset({EDITS}))
    (root / "a.txt").write_text("before\n")
    shell = mount(default_rules=True, unlisted="ask")

    result = await call(coordinator, shell, "echo after > a.txt")

    assert result.success is accepts
    assert (root / "a.txt").read_text() == ("after\n" if accepts else "before\n")


async def test_asked_commands_are_forgotten_in_the_end(mount: Mount) -> None:
    shell = mount(unlisted="ask")
    for number in range(70):
        assert shell.permission.assess(f"x{number}").decision == "ask"

    with pytest.raises(ToolError, match="a person must allow"):
        shell.permission.check("x1")
    shell.permission.check("x69")


@pytest.mark.parametrize(
    ("command", "network", "key"),
    [
        ("git push", False, "command git push"),
        ("git push --tags", False, "command git push"),
        ("git push", True, None),  # access that was asked for is for this call
        ("git push; ls", False, None),
        # a rule asks, and no answer to other pushes is one to this
        ("git push --receive-pack=x", False, None),
        ("cat .env", False, None),
        ("git status", False, None),
    ],
)
def test_an_answer_may_cover_commands_that_no_rule_is_about(
    mount: Mount, command: str, network: bool, key: str | None
) -> None:
    said = mount(default_rules=True, unlisted="ask").permission.assess(
        command, network=network
    )

    assert [coverage.key for coverage in said.coverages] == (
        [] if key is None else [key]
    )


def test_what_may_be_a_secret_wants_a_persons_own_answer(mount: Mount) -> None:
    permission = mount(default_rules=True, unlisted="ask").permission

    assert permission.assess("cat .env").is_firm
    assert not permission.assess("git push").is_firm


@pytest.mark.process
@pytest.mark.parametrize(
    ("command", "asked_for", "decision", "has_network"),
    [
        ("curl http://localhost", False, "ask", True),
        ("touch a && python3 -c 1", False, "ask", False),
        ("touch a", True, "ask", True),
        ("touch a", False, "allow", False),
        ("npm ci", False, "allow", True),
        ("pip install -r requirements.txt", False, "allow", True),
        ("pip list", False, "allow", False),
    ],
)
async def test_what_may_run_has_the_network_that_it_was_allowed(
    mount: Mount, command: str, asked_for: bool, decision: str, has_network: bool
) -> None:
    shell = mount(default_rules=True, unlisted="ask", sandbox="auto")
    if (await shell.bash_status())["sandbox"] == "none":
        pytest.skip("no sandbox works on this machine")
    permission = shell.permission

    said = permission.assess(command, network=asked_for)

    assert said.decision == decision
    assert permission.check(command, network=asked_for) is has_network
    if decision == "ask":
        assert ("This call gets access to the network." in said.details) is has_network


def test_with_a_network_for_all_commands_none_is_granted_to_one(mount: Mount) -> None:
    permission = mount(default_rules=True, unlisted="ask", network=True).permission

    assert permission.assess("touch a", network=True).decision == "allow"
    assert "network" not in permission.assess("curl x").details
    assert permission.check("touch a")


async def test_a_command_that_cannot_run_is_not_asked_about(
    coordinator: ModuleCoordinator, mount: Mount
) -> None:
    person = Person("Allow once")
    coordinator.approval_system = person

    result = await call(
        coordinator, mount(default_rules=True, unlisted="ask"), "curl x\0"
    )

    assert (result.success, person.asked) == (False, [])
    assert "no NUL" in result.get_serialized_output()


@pytest.mark.process
async def test_a_question_says_what_confines_the_command(
    mount: Mount, tmp_path: Path
) -> None:
    (tmp_path / "more").mkdir()
    more: JSONObject = {
        "writable_paths": [str(tmp_path / "more")],
        "tool_caches": False,
    }
    confined = mount(default_rules=True, unlisted="ask", sandbox="auto", **more)
    bare = mount(default_rules=True, unlisted="ask")
    if (await confined.bash_status())["sandbox"] == "none":
        pytest.skip("no sandbox works on this machine")

    said = confined.permission.assess("git reset --hard").confinement

    assert said.endswith(
        f": it reaches no network and writes in the project, {tmp_path / 'more'} alone."
    )
    assert (
        ": it reaches the network and"
        in confined.permission.assess("git push").confinement
    )
    assert "no sandbox" in bare.permission.assess("git push").confinement
