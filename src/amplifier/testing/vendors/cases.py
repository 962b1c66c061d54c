"""A vendor for the suite of all providers: each case of its samples is a model of that name.

```python
answers = answer_by_model({"talks": STREAMS / "text.sse"}, {"data": []})
TestAcmeProvider = conformance(
    "provider",
    without_network(AcmeProvider, answers),
    config={"default_model": "talks"},
    samples=cases_by_model(tool="add"),
)
```
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import httpx2

from amplifier.testing.transport import (
    HttpAnswer,
    HttpStep,
    ScriptedTransport,
    json_answer,
)
from amplifier.validation.behaviors import Case, ProviderSamples
from amplifier_kit.vendors import VendorProvider
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = ["answer_by_model", "cases_by_model", "without_network"]


def without_network(
    provider: type[VendorProvider], *steps: HttpStep
) -> type[VendorProvider]:
    """Make a module of a vendor's provider that a `ScriptedTransport` answers; all its instances share the script."""
    return type(
        provider.__name__, (provider,), {"transport": ScriptedTransport(*steps)}
    )


def answer_by_model(
    streams: Mapping[str, Path], models: JSONValue
) -> Callable[[httpx2.Request], HttpAnswer]:
    """Make what a `ScriptedTransport` asks: it answers with the stream of the request's model.

    The model `waits` is silent for minutes; one without a stream is refused with the status 401.

    Args:
        streams: files with whole answers, by the model's name.
        models: what the vendor answers when it is asked which models there are.
    """
    answers = {
        model: HttpAnswer(parts=(file.read_bytes(),)) for model, file in streams.items()
    }
    # longer than any deadline, in seconds
    answers["waits"] = HttpAnswer(parts=(600.0,))

    def answer(request: httpx2.Request) -> HttpAnswer:
        if request.method == "GET":
            return json_answer(models)
        return answers.get(json.loads(request.content)["model"], HttpAnswer(status=401))

    return answer


def cases_by_model(
    *, tool: str, bad_config: Mapping[str, JSONValue] | None = None
) -> ProviderSamples:
    """Return the samples of a provider whose vendor has a model for each case.

    The models are `talks`, `calls`, `thinks`, `garbles`, `is-cut`, `refuses` and `waits`; see `ProviderSamples`.

    Args:
        tool: what those call that call a tool.
        bad_config: a configuration that the module must refuse.
    """
    offers: JSONObject = {"tools": [{"name": tool, "parameters": {"type": "object"}}]}
    return ProviderSamples(
        talks=Case(request={"model": "talks"}),
        calls=Case(request={"model": "calls", **offers}),
        thinks=Case(request={"model": "thinks"}),
        garbles=Case(request={"model": "garbles", **offers}),
        is_cut=Case(request={"model": "is-cut", **offers}),
        fails=Case(request={"model": "refuses"}),
        waits=Case(request={"model": "waits"}),
        bad_config=bad_config,
    )
