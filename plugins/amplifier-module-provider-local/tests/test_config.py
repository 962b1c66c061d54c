"""What the plan may say about the provider."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from amplifier_module_provider_local import LocalConfig, LocalProvider
from amplifier_module_provider_local.weights import cache_directory
from amplifier_sdk import ConfigError
from amplifier_sdk.configuration import read_config
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.modules import definition_of


def test_the_module_needs_no_configuration() -> None:
    definition = definition_of(LocalProvider)

    assert definition is not None
    assert definition.kind == "provider"
    assert read_config(LocalConfig, {}, subject="x") == LocalConfig()


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"model_pth": "x"}, "model_path"),
        ({"model_path": 3}, "model_path"),
        ({"sha256": "ab"}, "64 hexadecimal digits"),
        ({"sha256": "a" * 64}, "model_path, which is not set"),
        ({"n_ctx": 0}, "n_ctx: is a whole number above 0; got 0"),
        ({"n_ctx": 800}, "at least 512 tokens; got 800 / 2"),
        ({"n_parallel": -1}, "n_parallel: is a whole number above 0"),
        ({"threads": 0}, "threads: is a whole number above 0"),
        ({"temperature": 3}, "temperature: is a number from 0 to 2; got 3"),
        ({"max_output_tokens": 4096}, "below the 4096 tokens"),
        ({"tool_gate": "model"}, "tool_gate"),
        ({"start_timeout": 0}, "start_timeout: is a number of seconds above 0"),
    ],
)
def test_a_wrong_setting_is_named_with_its_remedy(
    config: Mapping[str, JSONValue], words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        read_config(LocalConfig, config, subject="configuration of LocalProvider")


def test_the_context_is_shared_by_the_requests_that_run_at_once() -> None:
    assert LocalConfig(n_ctx=6000, n_parallel=3).window == 2000


@pytest.mark.parametrize(
    ("config", "environment", "directory"),
    [
        (LocalConfig(cache_dir="/c"), {"AMPLIFIER_CACHE": "/a"}, "/c"),
        (LocalConfig(), {"AMPLIFIER_CACHE": "/a", "AMPLIFIER_HOME": "/h"}, "/a/models"),
        (LocalConfig(), {"AMPLIFIER_HOME": "/h"}, "/h/cache/models"),
        (LocalConfig(cache_dir="~/c"), {}, str(Path.home() / "c")),
    ],
)
def test_the_weights_are_kept_where_the_nearest_setting_says(
    config: LocalConfig, environment: Mapping[str, str], directory: str
) -> None:
    assert cache_directory(config, environment) == Path(directory)


def test_the_weights_are_kept_in_the_users_cache_by_default(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)

    directory = cache_directory(LocalConfig(), {})

    assert directory.is_relative_to(tmp_path)
    assert directory.parts[-2:] == ("amplifier", "models")
