"""The rule that decides between text and a tool."""

from __future__ import annotations

from time import thread_time

import pytest

from amplifier_module_provider_local.tool_choice import wants_tool
from amplifier_sdk.chat import ToolSpec


def spec(name: str, **types: str) -> ToolSpec:
    properties = {parameter: {"type": kind} for parameter, kind in types.items()}
    return ToolSpec(
        name=name,
        parameters={
            "type": "object",
            "properties": properties,
            "required": list(properties),
        },
    )


READ = spec("read_file", file_path="string")
WRITE = spec("write_file", file_path="string", content="string")
LIST = spec("list_directory", path="string")
ADD = spec("addNumbers", a="integer", b="number")
WEATHER = spec("get_weather", city="string")


@pytest.mark.parametrize(
    ("question", "tool"),
    [
        ("When is the meeting? Read the file notes.txt", READ),
        ("Open docs/guide", READ),
        ("show me notes.txt", READ),
        ("Save hello to out.txt", WRITE),
        ("List the files here", LIST),
        ("Show the folders below src/", LIST),
        ("Add 2 and 3", ADD),
        ("What is the sum of 2.5 and -3?", ADD),
        ("What is the weather in Paris?", WEATHER),
        ("weather for 'san francisco', please", WEATHER),
    ],
)
def test_a_question_that_means_a_tool_gets_it(question: str, tool: ToolSpec) -> None:
    assert wants_tool(question, [tool])


@pytest.mark.parametrize(
    "question",
    [
        "",
        "Hello, how are you?",
        "What is the capital of France?",
        "Write a poem about spring.",
        "How do I read a file in Python?",
        "Explain what a file is, for example notes.txt",
        "What is a directory?",
        "I have read it",
        "What do you think of the weather?",
        "Tell me a number between one and ten",
    ],
)
def test_a_question_that_means_none_gets_text(question: str) -> None:
    assert not wants_tool(question, [READ, WRITE, LIST, ADD, WEATHER])


def test_a_tool_without_parameters_needs_two_words_of_its_name() -> None:
    tool = ToolSpec(name="list_branches", parameters={})

    assert wants_tool("List all branches", [tool])
    assert not wants_tool("List all cities", [tool])


@pytest.mark.figures
@pytest.mark.parametrize("part", ["a-", "“", "`", "' ", "1.", "A-", "*", ". "])
def test_a_long_question_takes_no_longer_than_its_length(part: str) -> None:
    def seconds() -> float:
        began = thread_time()
        wants_tool(f"read {part * 100_000}", [READ])
        wants_tool(f"weather {part * 100_000}", [WEATHER])
        return thread_time() - began

    assert any(seconds() < 5 for _ in range(3))
