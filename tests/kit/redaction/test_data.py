"""JSON data: names of keys, exact values, and the sinks' wall."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Final
from urllib.parse import quote

import pytest

from amplifier.testing import TestCoordinator
from amplifier_kit.redaction import (
    REDACTION_FAILED,
    KnownSecrets,
    SinkRedactor,
    StrictRedactor,
    is_password_name,
    is_secret_name,
    redactor_of,
    secrets_of_environment,
)
from amplifier_sdk import JSONValue, Redactor, Secret
from amplifier_sdk.redaction import REDACTOR

TOKEN: Final = "ghp_aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"


def strict(**options: object) -> StrictRedactor:
    return StrictRedactor(known=KnownSecrets(), **options)  # type: ignore[arg-type]  # each test names its option


SECRET_NAMES: Final = [
    "password",
    "openai_api_key",
    "ANTHROPIC_API_KEY",
    "clientSecret",
    "X-Api-Key",
    "dbpassword",
    "aws_secret_access_key",
    "authToken",
    "API_KEY_PROD",
    "PASSWORD_2",
    "Set-Cookie",
    "connection_string",
    "refresh_tokens",
    "private-key",
]
OTHER_NAMES: Final = [
    "max_tokens",
    "primary_key",
    "public_key",
    "key",
    "page_token",
    "token_count",
    "author",
    "password_file",
    "--",
    "secret_name",
    "keyboard",
    "passenger",
    "tokens",
    "string",
    "code",
]


@pytest.mark.parametrize("name", SECRET_NAMES)
def test_names_of_secrets(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", ["", *OTHER_NAMES])
def test_other_names(name: str) -> None:
    assert not is_secret_name(name)


def test_a_password_is_what_a_person_chose() -> None:
    assert is_password_name("db_password")
    assert not is_password_name("api_token")
    assert not is_password_name("")


def test_data_lose_secrets_by_name_and_by_form() -> None:
    data: JSONValue = {
        "api_key": "abc",
        "password": 12345678,
        "token": 7,
        "credentials": {"user": "ann", "list": ["x", None, True]},
        "note": ["see", TOKEN],
        TOKEN: 1,
        TOKEN + "6": 2,
        "properties": {"api_key": {"type": "string"}},
        "secret": "${API_SECRET}",
        "cookie": "",
    }

    assert strict().redact(data) == {
        "api_key": "[REDACTED:secret]",
        "password": "[REDACTED:password]",
        "token": 7,
        "credentials": {
            "user": "[REDACTED:secret]",
            "list": ["[REDACTED:secret]", None, True],
        },
        "note": ["see", "[REDACTED:github-token]"],
        "[REDACTED:github-token]": 1,
        "[REDACTED:github-token] 2": 2,
        "properties": {"api_key": {"type": "string"}},
        "secret": "${API_SECRET}",
        "cookie": "",
    }


@pytest.mark.parametrize(
    "value",
    [
        {"env": [{"name": "DB_PASSWORD", "value": "swordfish"}]},
        {"Variables": [{"Key": "API_KEY", "Value": "swordfish"}]},
        {"args": ["login", "--password", "swordfish", "--verbose"]},
        {"args": ["--api-key", "q8Zr2swordfishNcK1pWd"]},
        {"headers": [["X-Api-Key", "q8Zr2swordfishNcK1pWd"], ["Host", "h"]]},
    ],
)
def test_a_secret_stands_beside_its_name(value: JSONValue) -> None:
    redactor = StrictRedactor(known=KnownSecrets())

    shown = redactor.redact(value)
    assert "swordfish" not in json.dumps(shown)
    assert json.dumps(shown).count("[REDACTED:") == 1
    assert redactor.redact(shown) == shown
    assert StrictRedactor(known=KnownSecrets(), secrets=False).redact(value) == value


@pytest.mark.parametrize(
    "value",
    [
        {"name": "MAX_TOKENS", "value": "swordfish"},
        {"name": "DB_PASSWORD", "value": "${DB_PASSWORD}"},
        {"name": "password", "type": "string", "description": "the new one"},
        {"words": ["password", "token"]},
        {"args": ["--password", "--verbose"]},
        {"args": ["--token", "count", "--max-tokens", "4096"]},
        {"edges": [["token", "expression"], ["PWD", "/home/me"]]},
        {"headers": [["Authorization", "<your token here>"]]},
    ],
)
def test_what_stands_beside_other_names_stays(value: JSONValue) -> None:
    assert StrictRedactor(known=KnownSecrets()).redact(value) == value


def test_redacted_data_stay_as_they_are() -> None:
    once = strict().redact({"password": "abcdefg1", "text": f"password={TOKEN}"})

    assert strict().redact(once) == once


def test_ids_and_signatures_are_not_guessed_at() -> None:
    data: JSONValue = {
        "signature": "token=q8Zr2LmX5tVb7NcK1pWd+/==",
        "session_id": "secret:q8Zr2LmX5tVb7NcK1pWd1",
    }

    assert strict().redact(data) == data
    assert strict().redact({"session_id": TOKEN}) == {
        "session_id": "[REDACTED:github-token]"
    }


def test_an_allowed_path_keeps_all_but_known_secrets() -> None:
    redactor = StrictRedactor(
        known=KnownSecrets(["known-value"]), allowlist=["a.token", "b.0"]
    )

    data: JSONValue = {
        "a": {"token": "abcdef", "text": TOKEN},
        "b": [TOKEN, "known-value"],
    }
    assert redactor.redact(data) == {
        "a": {"token": "abcdef", "text": "[REDACTED:github-token]"},
        "b": [TOKEN, "[REDACTED:known-secret]"],
    }


def test_a_redactor_may_look_for_other_things_than_secrets() -> None:
    assert strict(secrets=False).redact({"api_key": "abc", "id": TOKEN}) == {
        "api_key": "abc",
        "id": TOKEN,
    }


def test_what_nests_too_deep_or_holds_too_much_is_withheld() -> None:
    deep: JSONValue = "end"
    secret: JSONValue = "end"
    for _ in range(300):
        deep, secret = [deep], {"a": secret}
    bombs: JSONValue = "x"
    for _ in range(18):
        bombs = [bombs, bombs]

    assert "nested too deep" in str(strict().redact(deep))
    assert "nested too deep" in str(strict().redact({"password": secret}))
    assert "too large to check" in str(strict().redact(bombs))
    assert "too large to check" in str(strict().redact({"password": bombs}))


def test_what_is_no_json_is_refused() -> None:
    with pytest.raises(TypeError, match="convert it first"):
        strict().redact({"a": object()})  # type: ignore[dict-item]  # the mistake


@pytest.mark.parametrize(
    "kind", ["plain", "quoted", "hex", "base64", "basic", "urlsafe", "json"]
)
def test_a_known_secret_is_found_in_every_form(kind: str) -> None:
    value = 'p@ss/wörd"+7?'
    data = value.encode()
    text = {
        "plain": value,
        "quoted": quote(value, safe=""),
        "hex": data.hex(),
        "base64": base64.b64encode(data).decode(),
        "basic": base64.b64encode(b"ann:" + data + b"!").decode(),
        "urlsafe": base64.urlsafe_b64encode(b"a" + data).decode(),
        "json": 'p@ss/w\\u00f6rd\\"+7?',
    }[kind]

    assert "[REDACTED:known-secret]" in StrictRedactor(
        known=KnownSecrets([value])
    ).redact_text(f"<{text}>")


def test_every_secret_that_lives_is_known_and_no_word() -> None:
    redactor = strict()
    secret = Secret("zq-living-value")

    assert redactor.redact_text("a zq-living-value b") == "a [REDACTED:known-secret] b"
    assert redactor.redact_text("password is short") == "password is short"
    del secret
    assert redactor.redact_text("a zq-living-value b") == "a zq-living-value b"


def test_the_environment_tells_secrets_by_their_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SHOP_API_KEY", "q-value-of-the-shop")

    assert secrets_of_environment({"A_TOKEN": "one", "HOME": "/root"}) == ("one",)
    assert (
        StrictRedactor().redact_text("q-value-of-the-shop") == "[REDACTED:known-secret]"
    )


class Broken:
    def redact_text(self, text: str) -> str:
        raise ValueError(text)

    def redact(self, value: JSONValue) -> JSONValue:
        raise ValueError(value)


def test_a_redactor_that_fails_withholds() -> None:
    assert isinstance(Broken(), Redactor)
    assert SinkRedactor(Broken()).redact_text("a") == REDACTION_FAILED
    assert SinkRedactor(Broken()).redact({"a": 1}) == REDACTION_FAILED


def test_the_strict_redactor_holds_until_another_is_offered() -> None:
    coordinator = TestCoordinator()
    assert redactor_of(coordinator).redact(TOKEN) == "[REDACTED:github-token]"

    coordinator.register_capability(REDACTOR, Broken())
    assert redactor_of(coordinator).redact_text("a") == REDACTION_FAILED
    coordinator.register_capability(REDACTOR, "no redactor")
    assert redactor_of(coordinator).redact("a") == REDACTION_FAILED
    coordinator.register_capability(REDACTOR, sink := SinkRedactor(strict()))
    assert redactor_of(coordinator) is sink


def test_repeated_long_text_is_redacted_with_newer_secrets() -> None:
    redactor, text = strict(), "word " * 12_000 + "zq-living-value"

    assert redactor.redact_text(text) == redactor.redact_text(text) == text
    secret = Secret("zq-living-value")
    assert redactor.redact_text(text).endswith("[REDACTED:known-secret]")
    assert secret


def test_a_known_secret_may_be_short() -> None:
    assert (
        StrictRedactor(known=KnownSecrets(["zq7!x9"])).redact_text("a zq7!x9 b")
        == "a [REDACTED:known-secret] b"
    )


@pytest.mark.parametrize(
    "place",
    ["https://cdn.acme.io/Ab3xK9d2Lq12", "/srv/Ab3xK9d2Lq12", "./Ab3xK9d2Lq12x"],
)
def test_a_place_is_no_token(place: str) -> None:
    text = f'token = "{place}"'

    assert StrictRedactor(known=KnownSecrets()).redact_text(text) == text


LIKE_A_TOKEN: Final = "AIzaSyD4f9Kx2LmQ8rT7vB1nC6yH3wZ5pE0aJ9q"
"""It can stand in a picture by chance."""


@pytest.mark.parametrize(
    "begin", ["iVBORw0KGgo", "/9j/", "data:image/png;base64,iVBORw0KGgo"]
)
def test_a_picture_stays_as_it_is(begin: str) -> None:
    picture: JSONValue = {
        "source": {"data": f"{begin}{'ab1+' * 20}/{LIKE_A_TOKEN}+{'ab1/' * 20}=="}
    }

    assert strict().redact(picture) == picture


@pytest.mark.parametrize(
    "data",
    [
        LIKE_A_TOKEN,
        f"iVBORw0KGgo {LIKE_A_TOKEN}",
        f"/9j/{'a' * 80} key: {LIKE_A_TOKEN}",
    ],
)
def test_what_is_no_picture_is_redacted_under_the_same_name(data: str) -> None:
    assert LIKE_A_TOKEN not in str(strict().redact({"data": data}))


def test_a_known_secret_is_taken_out_of_a_picture() -> None:
    redactor = StrictRedactor(known=KnownSecrets(["a1b2c3d4e5f6"]))

    assert "a1b2c3d4e5f6" not in str(
        redactor.redact({"data": f"iVBORw0KGgo{'ab1+' * 20}a1b2c3d4e5f6"})
    )


def test_the_working_directory_is_no_password(tmp_path: Path) -> None:
    variables = {
        "PWD": "/srv/project",
        "OLDPWD": "/srv/other",
        "KEY_TOKEN": str(tmp_path),
        "DB_PWD": "/q8Zr2LmX5tVb",
    }

    assert secrets_of_environment(variables) == ("/q8Zr2LmX5tVb",)
    assert strict().redact({"PWD": "/srv/project"}) == {"PWD": "/srv/project"}
    assert (
        strict().redact_text("PWD=/srv/project\nOLDPWD=/srv\n")
        == "PWD=/srv/project\nOLDPWD=/srv\n"
    )
    assert (
        strict().redact_text("DRIVER=x;PWD=h4Xk9-Qz7vR2;")
        == "DRIVER=x;PWD=[REDACTED:password];"
    )
