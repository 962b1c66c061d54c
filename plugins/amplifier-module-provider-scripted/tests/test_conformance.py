"""The module has every behaviour of its type."""

from __future__ import annotations

from typing import Final

from amplifier.testing.conformance import Case, ProviderSamples, conformance
from amplifier_module_provider_scripted import ScriptedProvider
from amplifier_sdk.jsontypes import JSONObject

OFFERS: Final[JSONObject] = {
    "tools": [{"name": "work", "parameters": {"type": "object"}}]
}


def _calls(arguments: str | JSONObject, **more: str) -> Case:
    call: JSONObject = {"name": "work", "arguments": arguments}
    return Case(
        request=OFFERS,
        config={"responses": [{"tool_calls": [call], **more}], "repeat": True},
    )


TestScriptedProvider = conformance(
    "provider",
    ScriptedProvider,
    config={"responses": ["Hello there."], "repeat": True},
    samples=ProviderSamples(
        calls=_calls({"text": "a"}),
        thinks=Case(
            config={
                "responses": [{"thinking": "Let me see.", "text": "Yes."}],
                "repeat": True,
            }
        ),
        garbles=_calls('{"text": '),
        is_cut=_calls({"text": "a"}, finish_reason="length"),
        fails=Case(
            config={
                "responses": [{"error": {"type": "RateLimitError"}}, "Hello."],
                "repeat": True,
            }
        ),
        waits=Case(config={"responses": [{"text": "late", "delay": 600}]}),
        bad_config={"responses": [{"txt": "a misspelt key"}]},
    ),
)
