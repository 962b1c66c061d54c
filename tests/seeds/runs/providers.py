"""How the samples of the provider contract are run."""

from __future__ import annotations

import os

import pytest

from amplifier.testing import ScriptedProvider, create_test_session
from amplifier_sdk import ConfigError, Provider
from tests.seeds.preamble import names
from tests.seeds.runs.tools import parameters_of
from tests.seeds.samples import Sample, samples


class MyProvider(ScriptedProvider):
    """What the samples leave to their reader."""

    def __init__(self, api_key: str, config: dict[str, object]) -> None:
        super().__init__("Hi.")
        self.key = api_key
        self.closings = 0
        self.client = self

    async def close(self) -> None:
        self.closings += 1


async def protocol(sample: Sample) -> None:
    ran = await sample.run(names())
    assert isinstance(ScriptedProvider(), ran.Provider)
    assert not isinstance(object(), ran.Provider)
    for name in ("get_info", "list_models", "parse_tool_calls"):
        ours, theirs = getattr(Provider, name), getattr(ran.Provider, name)
        assert parameters_of(ours) == parameters_of(theirs)
    # options of a call are what the base of our providers takes
    theirs = parameters_of(ran.Provider.complete)
    assert theirs == ["self", "request", "kwargs"]
    provider = ScriptedProvider("Hi.")
    await provider.complete(ran.ChatRequest(messages=()), temperature=0.5, own=1)
    assert provider.requests[0].temperature == 0.5
    assert provider.requests[0].extras == {"own": 1}


async def mounted(sample: Sample) -> None:
    """With its key the provider answers and is closed at the end; without, the turn says what is missing."""
    ran = await sample.run(names(MyProvider=MyProvider))
    config = {"provider": {"api_key": "k", "default_model": "model-v1"}}
    async with create_test_session(provider=ran.mount, configs=config) as session:
        provider = session.coordinator.providers["my-provider"]
        assert isinstance(provider, MyProvider)
        assert await session.execute("go") == "Hi."
        assert (provider.key, provider.closings) == ("k", 0)
    assert provider.closings == 1

    assert "MY_API_KEY" not in os.environ
    async with create_test_session(provider=ran.mount) as session:
        assert session.coordinator.providers == {}
        with pytest.raises(ConfigError, match="no provider is mounted"):
            await session.execute("go")


async def testing(sample: Sample) -> None:
    mount = samples()["Provider Contract / mount() Function"]
    ran = await mount.run(names(MyProvider=MyProvider))
    tests = await sample.run(names(mount=ran.mount))
    await tests.test_provider_mount()
