"""An agent is exported as a plan and made of it again."""

from __future__ import annotations

from pathlib import Path

import pytest

from amplifier import Agent
from amplifier.kernel.plans.overlays import gathered
from amplifier_kit.files.documents import yaml_text
from amplifier_sdk import RunContext
from amplifier_sdk.errors import ConfigError
from amplifier_sdk.jsontypes import JSONObject
from tests.doubles import ScriptedProvider, call, calling

SCRIPTED: JSONObject = {
    "providers": [{"module": "provider-scripted", "config": {"responses": ["Hello."]}}]
}


def double(number: int) -> int:
    """Double a number."""
    return 2 * number


def today(ctx: RunContext[None]) -> str:
    return "It is Monday."


async def test_an_exported_agent_answers_as_before(tmp_path: Path) -> None:
    agent = Agent(plan=SCRIPTED, instructions="Be brief.", limits={"iterations": 3})
    file = tmp_path / "agent.yaml"
    file.write_text(yaml_text(agent.plan()), "utf-8")

    again = Agent(plan=file)
    result = await again.run("Hi")

    assert gathered(again.plan()) == gathered(agent.plan())
    assert result.output == "Hello."
    assert result.messages[0] == {"role": "system", "content": "Be brief."}


async def test_what_is_of_the_program_is_given_again() -> None:
    script = calling(call("double", {"number": 4})), '{"value": 8}'
    helper = Agent("scripted", name="helper", tools=[double])
    agent = Agent(
        ScriptedProvider(*script),
        tools=[double, helper],
        instructions=today,
        output=int,
    )

    again = Agent(
        ScriptedProvider(*script),
        plan=agent.plan(),
        tools=[double, helper],
        instructions=today,
        output=int,
    )

    assert gathered(again.plan()) == gathered(agent.plan())
    assert (await again.run("Double 4.")).output == 8


def test_what_is_not_given_again_is_named() -> None:
    plan = Agent("scripted", tools=[double], output=int, instructions=today).plan()

    with pytest.raises(ConfigError) as caught:
        Agent(plan=plan)

    assert [problem.path for problem in caught.value.problems] == [
        "tools[0]",
        "hooks[0]",
        "hooks[1]",
    ]
    assert "'agent-tool-double' is an object of the program" in str(caught.value)


async def test_another_model_answers_whatever_the_plan_says() -> None:
    plan = Agent("anthropic:a-model", instructions="Be brief.").plan()
    provider = ScriptedProvider("Scripted.")

    agent = Agent(plan=plan)
    with agent.override(model=provider):
        result = await agent.run("Hi")

    assert result.output == "Scripted."
    assert provider.requests[0].model is None
    assert provider.requests[0].messages[0].text == "Be brief."


def test_a_file_that_is_no_plan_is_named(tmp_path: Path) -> None:
    file = tmp_path / "agent.yaml"
    file.write_text("- a", "utf-8")

    with pytest.raises(ConfigError, match=r"agent\.yaml"):
        Agent(plan=file)
