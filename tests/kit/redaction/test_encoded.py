"""Encoded texts: what is found in a text is found in what encodes it, and what is written back decodes as before."""

from __future__ import annotations

import ast
import json
from base64 import b64encode
from collections.abc import Callable, Mapping
from functools import cache
from random import Random
from typing import Final, NamedTuple
from urllib.parse import quote, unquote

import pytest

from amplifier_kit.redaction import KnownSecrets, StrictRedactor, token_rules
from amplifier_sdk.jsontypes import JSONValue
from tests.kit.redaction.held_out import negatives, positives
from tests.kit.redaction.test_held_out import EVERYDAY
from tests.timing import grows_in_proportion

TOKEN: Final = "ghp_aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"
GONE: Final = "[REDACTED:github-token]"
AROUND: Final = (
    "{}",
    "first line\n{}",
    "a\t{}",
    'she said "{}" loudly',
    "{}\r\nnext",
    "é{}\n",
    "back\\{}",
)
"""Where a token stands once its text is encoded: behind an escape, before one, between quotes that are none."""


class Encoding(NamedTuple):
    """How a text is written, and how what was written is read."""

    write: Callable[[str], str]
    read: Callable[[str], object]


def _every_character(text: str) -> str:
    return "".join(
        f"\\u{ord(each):04x}" if ord(each) < 0x10000 else json.dumps(each)[1:-1]
        for each in text
    )


ENCODINGS: Final[Mapping[str, Encoding]] = {
    "a JSON text": Encoding(json.dumps, json.loads),
    "an object": Encoding(
        lambda text: json.dumps({"a": 1, "output": text}),
        lambda text: json.loads(text)["output"],
    ),
    "a key": Encoding(
        lambda text: json.dumps({text: None}), lambda text: next(iter(json.loads(text)))
    ),
    "content": Encoding(
        lambda text: json.dumps([{"type": "text", "text": text}], indent=2),
        lambda text: json.loads(text)[0]["text"],
    ),
    "not only ASCII": Encoding(
        lambda text: json.dumps({"o": text}, ensure_ascii=False),
        lambda text: json.loads(text)["o"],
    ),
    "JSON in JSON": Encoding(
        lambda text: json.dumps({"body": json.dumps({"o": text})}),
        lambda text: json.loads(json.loads(text)["body"])["o"],
    ),
    "JSON in JSON in JSON": Encoding(
        lambda text: json.dumps(json.dumps(json.dumps(text))),
        lambda text: json.loads(json.loads(json.loads(text))),
    ),
    "every character escaped": Encoding(
        lambda text: f'{{"o": "{_every_character(text)}"}}',
        lambda text: json.loads(text)["o"],
    ),
    "an object that is cut off": Encoding(
        lambda text: f'{{"a": 1, "o": {json.dumps(text)[:-1]}',
        lambda text: json.loads(text + '"}')["o"],
    ),
    "among words": Encoding(
        lambda text: f"It says {json.dumps({'o': text})} and ends.\n",
        lambda text: json.loads(text[8:-11])["o"],
    ),
    "a line of several": Encoding(
        lambda text: f'{{"a": "b"}}\n{json.dumps([text])}\n{{"c": 1}}',
        lambda text: json.loads(text.split("\n")[1])[0],
    ),
    "shown by Python": Encoding(
        lambda text: repr({"o": text, "a": None}),
        lambda text: ast.literal_eval(text)["o"],
    ),
    "a URL": Encoding(lambda text: quote(text, safe=""), unquote),
    "JSON in a URL": Encoding(
        lambda text: quote(json.dumps({"o": text}), safe=""), unquote
    ),
}


@cache
def corpus() -> tuple[tuple[str, str, str], ...]:
    """Return kinds, texts and their secrets: those which are found where nothing encodes them."""
    random, plain = Random(7), StrictRedactor(known=KnownSecrets())
    tokens = [
        (rule.name, next(rule.samples(random)), AROUND[at % len(AROUND)])
        for at, rule in enumerate(token_rules())
    ]
    texts = [(kind, around.format(token), token) for kind, token, around in tokens]
    texts += [
        (case["id"], case["text"], case["secret"]) for case in EVERYDAY["secrets"]
    ]
    texts += random.sample([*positives(Random(2026))], 300)
    found = tuple(case for case in texts if case[2] not in plain.redact_text(case[1]))
    assert len(found) >= 0.97 * len(texts) >= 900
    return found


@pytest.mark.figures  # every sample in every encoding takes seconds
@pytest.mark.parametrize("encoding", ENCODINGS.values(), ids=ENCODINGS)
def test_what_is_found_in_a_text_is_found_in_what_encodes_it(
    encoding: Encoding,
) -> None:
    redactor = StrictRedactor(known=KnownSecrets())

    missed = []
    for kind, text, secret in corpus():
        redacted = redactor.redact_text(encoding.write(text))
        if secret in redacted or secret in str(encoding.read(redacted)):
            missed.append(kind)
    assert missed == []


def test_what_is_found_in_a_text_is_found_in_its_base64() -> None:
    redactor = StrictRedactor(known=KnownSecrets())
    texts = [text for _, text, _ in corpus() if len(text) >= 24]

    encoded = [b64encode(text.encode()).decode() for text in texts]
    assert [
        text
        for text, code in zip(texts, encoded, strict=True)
        if code in redactor.redact_text(f"x {code}\n")
    ] == []


@pytest.mark.figures  # every sample in every encoding takes seconds
@pytest.mark.parametrize("encoding", ENCODINGS.values(), ids=ENCODINGS)
def test_what_left_alone_in_text_left_alone_in_what_encodes_it(
    encoding: Encoding,
) -> None:
    redactor = StrictRedactor(known=KnownSecrets())
    texts = [case["text"] for case in EVERYDAY["harmless"]]
    texts += [text for _, text in Random(3).sample([*negatives(Random(2026))], 200)]

    plain = [text for text in texts if redactor.redact_text(text) == text]
    assert [
        text
        for text in plain
        if redactor.redact_text(written := encoding.write(text)) != written
    ] == []


def test_data_and_the_same_data_as_text_lose_the_same() -> None:
    redactor = StrictRedactor(known=KnownSecrets())
    data: JSONValue = {
        "password": "h4Xk9-Qz7vR2",
        "nested": {"client_secret": "q8Zr2LmX5tVb7NcK1pWd", "note": f"line\n{TOKEN}"},
        "env": [
            {"name": "API_KEY", "value": "q8Zr2LmX5tVb7NcK1pWd"},
            ["DB_PASSWORD", "h4Xk9-Qz7vR2"],
        ],
        "argv": ["run", "--token", "q8Zr2LmX5tVb7NcK1pWd"],
    }

    redacted = redactor.redact(data)
    assert json.loads(redactor.redact_text(json.dumps(data))) == redacted
    assert json.loads(redactor.redact_text(json.dumps(data, indent=1))) == redacted
    assert redactor.redact({"content": json.dumps(data)}) == {
        "content": json.dumps(redacted)
    }


def test_private_parts_of_key_are_withheld_in_data_as_in_text() -> None:
    redactor = StrictRedactor(known=KnownSecrets())
    key: JSONValue = {
        "kty": "OKP",
        "d": "q8Zr2LmX5tVb7NcK1pWdq8Zr2LmX5tVb7NcK1pWd",
        "x": "public",
    }

    assert redactor.redact(key) == {
        "kty": "OKP",
        "d": "[REDACTED:secret]",
        "x": "public",
    }
    assert (
        json.loads(redactor.redact_text(json.dumps(key)))["d"]
        == "[REDACTED:private-key]"
    )


CASES: Final = {
    '{"password": "a\\"b h4Xk9-Qz7vR2"}': '{"password": "[REDACTED:password]"}',
    '{"password": "correct \\u0068orse 7 staple"}': '{"password": "[REDACTED:password]"}',
    '{"password": "string", "pin_password": 12345678}': '{"password": "string", "pin_password": [REDACTED:password]}',
    f'{{"a": 1, "a": "x\\n{TOKEN}", "a": 2}}': f'{{"a": 1, "a": "x\\n{GONE}", "a": 2}}',
    f'{{"a": ["x\\n{TOKEN}", }} "b\\n{TOKEN}"': f'{{"a": ["x\\n{GONE}", }} "b\\n{GONE}"',
    f'{{"a" "b" 1 {{2: "\\n{TOKEN}"}}': f'{{"a" "b" 1 {{2: "\\n{GONE}"}}',
    f'{{["\\n{TOKEN}"]}}': f'{{["\\n{GONE}"]}}',
    f'{{"a": ["\\n{TOKEN}"}}': f'{{"a": ["\\n{GONE}"}}',
    f"print('done\\n{TOKEN}')": f"print('done\\n{GONE}')",
    f"\\x1b[32m{TOKEN}\\033[0m": f"\\x1b[32m{GONE}\\033[0m",
    f"%C3%BC%0A{TOKEN}%0A": f"%C3%BC%0A{GONE}%0A",
    f'"\\ud83d\\ude00\\u000a{TOKEN}"': f'"\\ud83d\\ude00\\u000a{GONE}"',
    f'{{"key": "-----BEGIN PRIVATE KEY-----\\nMIIEowIBAAKCAQEAx7h4Xk9", "b": "{TOKEN[:9]}"}}': (
        f'{{"key": "[REDACTED:private-key]", "b": "{TOKEN[:9]}"}}'
    ),
    '{"id": "x\\u002dpassword=h4Xk9-Qz7vR2"}': '{"id": "x\\u002dpassword=[REDACTED:password]"}',
}


@pytest.mark.parametrize("text", CASES)
def test_marks_stand_where_the_secrets_were(text: str) -> None:
    assert StrictRedactor(known=KnownSecrets()).redact_text(text) == CASES[text]


def test_base64_in_lines_is_one_text() -> None:
    code = b64encode(f"{'words ' * 20}\n{TOKEN}".encode()).decode()
    folded = "\n".join(code[at : at + 76] for at in range(0, len(code), 76))

    assert (
        StrictRedactor(known=KnownSecrets()).redact_text(f"data:\n{folded}\n")
        == f"data:\n{GONE}\n"
    )


def test_a_known_secret_is_found_in_what_is_encoded_twice() -> None:
    known = StrictRedactor(known=KnownSecrets(['my "quoted" word\n']), secrets=False)
    written = json.dumps({"a": json.dumps({"b": 'It is my "quoted" word\n.'})})

    assert json.loads(json.loads(known.redact_text(written))["a"]) == {
        "b": "It is [REDACTED:known-secret]."
    }


def test_id_is_not_guessed_to_be_secret_but_token_in_it_is() -> None:
    redactor = StrictRedactor(known=KnownSecrets())
    data: JSONValue = {
        "tool_call_id": json.dumps(
            {"a": "password=h4Xk9-Qz7vR2", "b": f"\n{TOKEN}", "c": 1}
        )
    }

    assert redactor.redact(data) == {
        "tool_call_id": json.dumps(
            {"a": "password=h4Xk9-Qz7vR2", "b": f"\n{GONE}", "c": 1}
        ),
    }


@pytest.mark.figures
@pytest.mark.parametrize(
    "unit",
    [
        "[",
        '{"a":',
        '"\\n',
        "\\",
        '\\"',
        "%41",
        '["a",',
        "{'a': '",
        "A" * 80 + "\n",
        '{"a": "b\\nc"}, ',
        "\\\\u0041",
    ],
    ids=repr,
)
def test_time_is_in_proportion_to_the_text(unit: str) -> None:
    redactor = StrictRedactor(known=KnownSecrets())

    assert grows_in_proportion(
        lambda size: redactor.redact_text((unit * size)[:size]), 4_000, 32_000
    )


def test_what_nests_deeper_than_anything_is_still_looked_at() -> None:
    redactor = StrictRedactor(known=KnownSecrets())
    deep = "[" * 300 + json.dumps(f"\n{TOKEN}") + "]" * 300
    for _ in range(3):
        deep = "[" * 60 + json.dumps(deep) + "]" * 60
    value: JSONValue = deep
    for _ in range(99):
        value = [value]

    assert TOKEN not in json.dumps(redactor.redact(value))
