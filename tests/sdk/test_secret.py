"""A secret is used and never shown."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from typing import Final

import attrs
import pytest

from amplifier_sdk import ConfigError, Secret
from amplifier_sdk.configuration import read_config
from amplifier_sdk.convert import from_json, to_json
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.secret import WITHHELD, live_secrets, withhold

KEY: Final = "hunter2-5f1c"


@attrs.frozen(kw_only=True)
class Account:
    name: str
    key: Secret = attrs.field(validator=attrs.validators.instance_of(Secret))


@attrs.frozen(kw_only=True)
class Settings:
    api: Secret | None = None
    spare: list[Secret] = attrs.field(factory=list)
    headers: Mapping[str, Secret] = attrs.field(factory=dict)
    account: Account | None = None
    accounts: list[Account] = attrs.field(factory=list)


@dataclasses.dataclass
class Plain:
    api: Secret = dataclasses.field(default_factory=lambda: Secret(KEY))


def _checked(text: Secret) -> Secret:
    if text.reveal().startswith("hunter"):
        raise ValueError(f"{text.reveal()} is too well known")
    return text


@attrs.frozen(kw_only=True)
class Careless:
    """Its converter tells what it was given."""

    api: Secret = attrs.field(converter=_checked)


def test_its_text_is_revealed_to_who_asks() -> None:
    secret = Secret(KEY)

    assert secret.reveal() == KEY
    assert secret
    assert not Secret("")


@pytest.mark.parametrize(
    "show",
    [repr, str, "{}".format, "%s".__mod__, ascii, "{0!r}".format],
    ids=["repr", "str", "format", "percent", "ascii", "format-repr"],
)
def test_no_way_to_write_it_shows_it(show: Callable[[object], str]) -> None:
    assert KEY not in show(Secret(KEY))
    assert KEY not in show({"api": Secret(KEY)})
    assert KEY not in show(
        Settings(
            api=Secret(KEY),
            spare=[Secret(KEY)],
            account=Account(name="a", key=Secret(KEY)),
        )
    )
    assert KEY not in show(Plain())


def test_it_equals_a_secret_of_the_same_text_alone() -> None:
    assert Secret(KEY) == Secret(KEY)
    assert Secret(KEY) != Secret("other")
    assert Secret(KEY) != KEY
    assert len({Secret(KEY), Secret(KEY), Secret("\ud800")}) == 2


def test_it_may_be_copied_and_not_pickled() -> None:
    settings = Settings(api=Secret(KEY))

    assert copy.deepcopy(settings) == copy.copy(settings) == settings
    assert copy.copy(Secret(KEY)) == Secret(KEY)
    with pytest.raises(TypeError, match="A Secret is not pickled"):
        pickle.dumps(settings)


def test_it_is_read_from_a_configuration_wherever_it_stands() -> None:
    config: JSONObject = {
        "api": KEY,
        "spare": [KEY],
        "headers": {"x": KEY},
        "account": {"name": "a", "key": KEY},
    }

    settings = read_config(Settings, config, subject="x")

    secret = Secret(KEY)
    assert settings == Settings(
        api=secret,
        spare=[secret],
        headers={"x": secret},
        account=Account(name="a", key=secret),
    )
    assert read_config(Settings, {"api": secret}, subject="x") == Settings(api=secret)  # type: ignore[dict-item]  # an embedding program's own


def test_json_data_says_that_it_is_withheld() -> None:
    written = to_json(
        Settings(api=Secret(KEY), spare=[Secret(KEY)], headers={"x": Secret(KEY)})
    )

    assert written == {
        "api": "(withheld)",
        "spare": ["(withheld)"],
        "headers": {"x": "(withheld)"},
        "accounts": [],
    }


NUMBER: Final = 991188227733


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        (
            {"api": NUMBER},
            "api: expected a string or null, got something else (not shown: it may be a secret)",
        ),
        (
            {"api": [KEY]},
            "api: expected a string or null, got something else (not shown: it may be a secret)",
        ),
        (
            {"spare": KEY},
            "spare: expected an array, got something else (not shown: it may be a secret)",
        ),
        (
            {"spare": [NUMBER]},
            "spare[0]: expected a string, got something else (not shown: it may be a secret)",
        ),
        (
            {"headers": KEY},
            "headers: expected an object, got something else (not shown: it may be a secret)",
        ),
        (
            {"headers": {"x": NUMBER}},
            "headers.x: expected a string, got something else",
        ),
        (
            {"account": {"name": "a", "key": NUMBER}},
            "account.key: expected a string, got something else",
        ),
        ({"account": {"name": "a"}}, "account.key: missing; expected a string"),
        (
            {"account": {"name": 5, "key": KEY}},
            "account.name: expected a string, got an integer (5)",
        ),
        (
            {"accounts": [{"name": "a", "key": NUMBER}]},
            "accounts[0].key: expected a string, got something else",
        ),
        ({"apy": KEY}, "apy: unknown; did you mean 'api'?"),
    ],
    ids=str,
)
def test_no_error_about_a_configuration_shows_it(
    config: JSONObject, problem: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        read_config(Settings, config, subject="x")
    text = "".join(traceback.format_exception(caught.value))

    assert str(caught.value.problems[0]).startswith(problem)
    assert KEY not in text
    assert str(NUMBER) not in text


def test_a_converter_that_tells_it_is_not_quoted() -> None:
    with pytest.raises(ConfigError) as caught:
        read_config(Careless, {"api": KEY}, subject="x")

    assert [str(problem) for problem in caught.value.problems] == [
        "api: not valid (not shown)"
    ]
    assert KEY not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("data", [{"api": NUMBER}, {"spare": str(NUMBER)}])
def test_no_error_about_json_data_shows_it(data: JSONValue) -> None:
    with pytest.raises(ValueError, match="not shown") as caught:
        from_json(data, Settings)

    assert str(NUMBER) not in "".join(traceback.format_exception(caught.value))


def test_copied_data_omits_values_under_secret_keys() -> None:
    plan = {
        "providers": [
            {"module": "x", "config": {"api_key": "k", "model": "m", "max_tokens": 5}}
        ],
        "credentials": {"user": "ada", "tries": 3, "old": ["p", b"q"]},
        "headers": {"Authorization": "Bearer t"},
        "password": None,
    }

    assert withhold(plan) == {
        "providers": [
            {
                "module": "x",
                "config": {"api_key": WITHHELD, "model": "m", "max_tokens": 5},
            }
        ],
        "credentials": {"user": WITHHELD, "tries": 3, "old": [WITHHELD, WITHHELD]},
        "headers": {"Authorization": WITHHELD},
        "password": None,
    }
    assert plan["headers"] == {"Authorization": "Bearer t"}


@pytest.mark.parametrize(
    "name",
    [
        "api_key",
        "TOKEN",
        "dbPassword",
        "passphrase",
        "db_pwd",
        "session-cookie",
        "connectionString",
        "bearer",
    ],
)
def test_names_of_secrets_withhold_what_stands_under_them(name: str) -> None:
    assert withhold({name: KEY, "list": [{name: [KEY]}]}) == {
        name: WITHHELD,
        "list": [{name: [WITHHELD]}],
    }


@pytest.mark.parametrize("name", ["keys", "tokens", "max_tokens", "model", "keyboard"])
def test_other_names_withhold_nothing(name: str) -> None:
    assert withhold({name: KEY}) == {name: KEY}


def test_secrets_are_known_while_other_threads_make_some() -> None:
    stored = [Secret(f"kept-{number}") for number in range(2_000)]
    done = threading.Event()

    def make() -> None:
        while not done.is_set():
            made = [Secret(f"made-{number}") for number in range(50)]
            del made

    maker, interval = threading.Thread(target=make), sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    maker.start()
    try:
        found = [live_secrets() for _ in range(200)]
    finally:
        done.set()
        maker.join()
        sys.setswitchinterval(interval)

    assert all(each >= {secret.reveal() for secret in stored} for each in found)


@pytest.mark.parametrize(
    "data",
    [
        {"args": ["serve", "--token", KEY]},
        {"args": ["--api-key", KEY]},
        {"args": [f"--token={KEY}"]},
        {"env": {"SSHPASS": KEY}},
        {"headers": {"X-Auth": KEY}},
        {"env": [{"name": "API_TOKEN", "value": KEY}]},
        {"api_keys": [KEY]},
        {"auth": ["u", KEY]},
        {"auth": f"u:{KEY}"},
        {"basic_auth": {"pass": KEY}},
        {"webhook_url": f"https://host/{KEY}"},
    ],
    ids=str,
)
def test_secrets_are_withheld_wherever_a_name_tells_of_them(data: JSONObject) -> None:
    assert KEY not in str(withhold(data))


@pytest.mark.parametrize(
    "data",
    [
        {"args": ["--verbose", "--port", "80", "--mode=fast"]},
        {"env": [{"name": "HOME", "value": "/home/u"}]},
        {"max_tokens": "9", "session_tokens": "9", "author": "Ada"},
        {"keys": {"limit": 5}},
    ],
    ids=str,
)
def test_what_is_no_secret_stays(data: JSONObject) -> None:
    assert withhold(data) == data
