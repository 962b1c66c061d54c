"""The figures that reading a model's arguments reaches: every text, no value bent, and the time that it may take.

Times are those of the processor, so that a busy machine does not change them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from random import Random
from typing import Final

import pytest

from amplifier_sdk.arguments import Arguments, ArgumentSchema, read_arguments
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from tests.sdk.json_grammar import INVALID, VALID
from tests.timing import cpu_seconds, takes_at_most


def test_there_are_as_many_texts_as_the_figures_ask_for() -> None:
    assert len({text for text, _ in VALID}) >= 95
    assert len(set(INVALID)) >= 188


@pytest.mark.parametrize(
    ("text", "value"), VALID, ids=lambda v: ascii(v[:30]) if isinstance(v, str) else ""
)
def test_what_is_json_is_read_as_what_it_means(text: str, value: JSONValue) -> None:
    read = read_arguments(f'{{"a":{text}}}')

    assert read == Arguments(values={"a": value})
    assert repr(read.values["a"]) == repr(value)  # 1, 1.0 and True are equal in Python


@pytest.mark.parametrize("text", INVALID, ids=lambda text: ascii(text[:30]))
def test_non_json_is_refused_or_read_one_lossless_way(
    text: str,
) -> None:
    whole = f'{{"a":{text}}}'

    read = read_arguments(whole)

    if read.problem is None:
        assert read.repaired
        assert _written(whole) == _written(json.dumps(read.values, ensure_ascii=False))
    else:
        assert read.values == {}
        assert len(read.problem) < 400


def _written(text: str) -> str:
    """Return the characters of a text but those that only spell JSON, so that no repair may add or lose any."""
    for python, other in (("True", "true"), ("False", "false"), ("None", "null")):
        text = text.replace(python, other)
    for escape, meaning in (
        ("\\n", "\n"),
        ("\\r", "\r"),
        ("\\t", "\t"),
        ("\\\\", ""),
        ("\\", ""),
    ):
        text = text.replace(escape, meaning)
    return "".join(
        character for character in text if character not in "'\"`, \t\r\n\ufeff"
    )


_WORDS: Final = (
    "path",
    "it's",
    'say "hi"',
    "a, b",
    "{x}",
    "[1]",
    "True",
    "None",
    "é",
    "😀",
    "x:y",
    "",
    " ",
    "notes.txt",
)


def _made(random: Random, depth: int = 3) -> JSONValue:
    """Make a value as arguments have them."""
    match random.randrange(7 if depth else 5):
        case 0:
            return random.choice(_WORDS)
        case 1:
            return random.randrange(-5, 1000)
        case 2:
            return random.choice((True, False, None))
        case 3 | 4:
            return " ".join(random.choices(_WORDS, k=random.randrange(4)))
        case 5:
            return [_made(random, depth - 1) for _ in range(random.randrange(4))]
        case _:
            return _object(random, depth - 1)


def _object(random: Random, depth: int = 3) -> JSONObject:
    return {
        random.choice(_WORDS) + str(number): _made(random, depth)
        for number in range(random.randrange(1, 4))
    }


def _harmed(random: Random, text: str) -> str:
    """Change a text as models do: drop, double, swap or replace a character or three, or stop too early."""
    for _ in range(random.randrange(1, 4)):
        at = random.randrange(len(text) + 1)
        match random.randrange(5):
            case 0:
                text = text[:at] + text[at + 1 :]
            case 1:
                text = text[:at] + text[at - 1 : at] + text[at:]
            case 2:
                text = text[:at] + random.choice("{}[]\",':\\ \n`tTNfn0-.") + text[at:]
            case 3:
                text = (
                    text[:at]
                    + random.choice("{}[]\",':\\ \n`tTNfn0-.")
                    + text[at + 1 :]
                )
            case _:
                text = text[: max(1, at)]
    return text or " "  # no text at all is no harm: it means an empty object


def _dumps(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


UNESCAPED: Final[tuple[Callable[[JSONObject], str], ...]] = (
    repr,
    _dumps,
    lambda value: f"```json\n{_dumps(value)}\n```",
    lambda value: "\ufeff" + _dumps(value),
    lambda value: _dumps(_dumps(value)),
    lambda value: _dumps(value)[:-1] + ",}",
)
SPELLINGS: Final = (
    *UNESCAPED,
    json.dumps,
    lambda value: json.dumps(value, indent=2),
    lambda value: json.dumps(json.dumps(value)),
)


@pytest.mark.parametrize("seed", range(4))
def test_ten_thousand_spellings_of_values_are_read_as_the_value(seed: int) -> None:
    random = Random(seed)

    for _ in range(1250):
        value = _object(random)
        for spell in (repr, random.choice(SPELLINGS)):
            text = spell(value)
            read = read_arguments(text)
            assert read.problem is None, text
            assert read.values == value, text


@pytest.mark.parametrize("seed", range(4))
def test_ten_thousand_harmed_texts_read_as_written_or_explained(seed: int) -> None:
    random = Random(seed)

    for _ in range(2500):
        text = _harmed(random, random.choice(UNESCAPED)(_object(random)))
        read = read_arguments(text)
        strict = _strict(text)
        if read.problem is not None:
            assert read.values == {}, text
            assert strict is None or _is_refused_json(text), text
        elif not read.repaired:
            assert read.values == strict, text
        elif strict is None:
            assert _written(_unfenced(text)) == _written(
                json.dumps(read.values, ensure_ascii=False)
            ), text


def _strict(text: str) -> JSONObject | None:
    """Read an object as Python's own reader does, which knows NaN and keys that stand twice."""
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _is_refused_json(text: str) -> bool:
    """Tell whether what Python's reader takes is refused for good reason: a key stands twice."""
    twice: list[str] = []

    def note(pairs: list[tuple[str, JSONValue]]) -> None:
        keys = [key for key, _ in pairs]
        twice.extend(key for key in keys if keys.count(key) > 1)

    json.loads(text, object_pairs_hook=note)
    return bool(twice)


def _unfenced(text: str) -> str:
    """Take away the fence, and the first of two encodings, which a repair may drop."""
    body = text.strip().removeprefix("\ufeff").strip()
    opening, _, rest = body.partition("\n")
    return rest if opening.startswith("```") else body


timed = pytest.mark.skipif(
    sys.gettrace() is not None, reason="a tracer takes most of the time"
)


def _seconds(text: str, read: Callable[[str], object] = read_arguments) -> float:
    return cpu_seconds(lambda: read(text))


def _document(size: int) -> str:
    """Make arguments of some size, with text, numbers and nesting as edits of files have them."""
    edit = {
        "path": "src/notes.txt",
        "line": 12,
        "text": 'print("hello")\n\tif x: \\ é' * 20,
        "flags": [True, None, 1.5],
    }
    length = len(json.dumps(edit, ensure_ascii=False)) + 2
    return json.dumps({"edits": [edit] * (size // length)}, ensure_ascii=False)


SPELLED: Final[dict[str, Callable[[str], str]]] = {
    "plain": str,
    "fenced": lambda text: f"```json\n{text}\n```",
    "comma": lambda text: text[:-1] + ",}",
}


@pytest.mark.figures
@timed
@pytest.mark.parametrize("spelling", SPELLED)
def test_64_kilobytes_cost_small_multiple_of_json(
    spelling: str,
) -> None:
    text = _document(60_000)
    spelled = SPELLED[spelling](text)
    assert read_arguments(spelled).problem is None

    rounds = [sorted(_seconds(spelled) for _ in range(100)) for _ in range(3)]

    assert min(times[98] for times in rounds) < 60 * min(
        _seconds(text, json.loads) for _ in range(100)
    )


@pytest.mark.figures
@timed
def test_ten_megabytes_cost_no_more_per_character() -> None:
    small, large = _document(60_000), _document(9_800_000)
    assert len(large) > 9_000_000

    per_character = min(_seconds(small) for _ in range(100)) / len(small)

    assert min(_seconds(large) for _ in range(3)) / len(large) < 10 * per_character


@pytest.mark.figures
@timed
def test_thirty_levels_cost_no_more_than_their_characters() -> None:
    deep, flat = (
        '{"a":' * 30 + "1" + "}" * 30,
        json.dumps({str(n): {"a": {"a": 1}} for n in range(10)}),
    )

    def cost(text: str) -> float:
        return min(_seconds(text) for _ in range(50)) / len(text)

    assert cost(deep) < 20 * cost(flat)


@pytest.mark.figures
def test_thirty_levels_of_recursive_schema_check_quickly() -> None:
    tree: JSONObject = {
        "type": "object",
        "properties": {
            "a": {"anyOf": [{"$ref": "#"}, {"$ref": "#/$defs/other"}, {"type": "null"}]}
        },
        "additionalProperties": False,
        "$defs": {
            "other": {
                "type": "object",
                "properties": {"b": {"$ref": "#"}},
                "additionalProperties": False,
            }
        },
    }
    schema = ArgumentSchema(tree, "t")
    value: JSONObject = {"a": 3}
    for _ in range(30):
        value = {"a": value}
    schema.compile()

    problem = schema.problem(value)

    assert takes_at_most(0.5, lambda: schema.problem(value))
    assert str(problem).endswith(": expected an object or null, got an integer (3)")
