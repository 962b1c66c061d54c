"""The module has every behaviour of its type."""

from __future__ import annotations

import json
from typing import Final

import httpx2

from amplifier.testing.conformance import conformance
from amplifier.testing.transport import HttpAnswer, HttpPart, json_answer, json_lines
from amplifier.testing.vendors import cases_by_model, without_network
from amplifier_module_provider_ollama import OllamaProvider
from amplifier_sdk.jsontypes import JSONObject, JSONValue

END: Final[JSONObject] = {
    "message": {"role": "assistant", "content": ""},
    "done": True,
    "done_reason": "stop",
}
USAGE: Final[JSONObject] = {"prompt_eval_count": 7, "eval_count": 2}


def said(**message: JSONValue) -> JSONObject:
    return {"message": {"role": "assistant", "content": "", **message}, "done": False}


def calling(arguments: JSONValue) -> JSONObject:
    return said(
        tool_calls=[
            {"id": "call_1", "function": {"name": "work", "arguments": arguments}}
        ]
    )


ANSWERS: Final[dict[str, tuple[HttpPart, ...]]] = {
    "talks": (
        json_lines(said(content="Hello "), said(content="there.")),
        json_lines({**END, **USAGE}),
    ),
    "calls": (json_lines(calling({"text": "a"}), {**END, **USAGE}),),
    "thinks": (
        json_lines(
            said(thinking="Let me see."), said(content="Yes."), {**END, **USAGE}
        ),
    ),
    "garbles": (json_lines(calling('{"text": '), {**END, **USAGE}),),
    "is-cut": (
        json_lines(calling({"text": "a"}), {**END, **USAGE, "done_reason": "length"}),
    ),
    "waits": (json_lines(said(content="Hello ")), 600.0),
}


def answer(request: httpx2.Request) -> HttpAnswer:
    """Answer as the path and the name of the model say."""
    if request.url.path == "/api/tags":
        return json_answer({"models": [{"name": "talks", "model": "talks"}]})
    if request.url.path == "/api/show":
        return json_answer(
            {"capabilities": ["completion", "tools"], "details": {"family": "llama"}}
        )
    name = json.loads(request.content)["model"]
    if name == "refuses":
        return json_answer({"error": "model 'refuses' not found"}, status=404)
    return HttpAnswer(
        headers={"content-type": "application/x-ndjson"}, parts=ANSWERS[name]
    )


TestOllamaProvider = conformance(
    "provider",
    without_network(OllamaProvider, answer),
    config={"default_model": "talks", "max_retries": 0, "api_key": "of-a-cloud"},
    samples=cases_by_model(tool="work", bad_config={"num_ctx": "many"}),
)
