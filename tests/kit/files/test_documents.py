"""Documents are read strictly, and always in bounded time."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TypeAlias

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from amplifier_kit.files.documents import (
    MAX_BYTES,
    MAX_DEPTH,
    find_line,
    find_lines,
    parse_yaml,
    read_document,
    read_mapping,
    yaml_text,
)
from amplifier_sdk.errors import ConfigError

JSONData: TypeAlias = (
    "str | int | float | bool | list[JSONData] | dict[str, JSONData] | None"
)

_TEXTS = st.text(
    st.characters(
        exclude_categories=["Cs", "Cc"],
        exclude_characters="\u2028\u2029\ufffe\uffff\ufeff",
    )
)
_DATA: st.SearchStrategy[JSONData] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | _TEXTS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(_TEXTS, inner, max_size=4)
    ),
    max_leaves=12,
)


def _file(folder: Path, text: str | bytes, name: str = "plan.yaml") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def _error(path: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        read_document(path)
    return str(caught.value)


@pytest.mark.parametrize("name", ["plan.json", "plan.yaml"])
@given(data=_DATA)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
def test_json_reads_the_same_as_json_and_as_yaml(
    tmp_path: Path, name: str, data: JSONData
) -> None:
    assert (
        read_document(_file(tmp_path, json.dumps(data, ensure_ascii=False), name))
        == data
    )


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", "yes"),
        ("off", "off"),
        ("010", 10),
        ("0o17", 15),
        ("0x1F", 31),
        ("+7", 7),
        ("1_000", "1_000"),
        ("12:30", "12:30"),
        ("2024-01-02", "2024-01-02"),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("-1.", -1.0),
        ("True", True),
        ("FALSE", False),
        ("~", None),
        ("Null", None),
        ("", None),
        ("'1'", "1"),
        ("!!str 1", "1"),
        ("!!float 1", 1.0),
        ("<<: 1", {"<<": 1}),
        ("=", "="),
        ("a: &x [1]\nb: *x", {"a": [1], "b": [1]}),
        ("k:", {"k": None}),
        ("\ufeffa: 1", {"a": 1}),
    ],
)
def test_yaml_has_the_core_schema_of_version_1_2(
    tmp_path: Path, text: str, value: JSONData
) -> None:
    read = read_document(_file(tmp_path, text))

    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\na: 2", "line 2, column 1: key 'a' stands twice in one mapping"),
        ("x:\n  1: 2", "line 2, column 3: a key must be text"),
        ("[a]: 1", "line 1, column 1: a key must be text"),
        ("a: .inf", "line 1, column 4: .inf is no JSON number"),
        ("a: .NaN", "line 1, column 4: .NaN is no JSON number"),
        ("a: !env HOME", "line 1, column 4: tag '!env' has no meaning here"),
        ("!!set {a}", "tag 'tag:yaml.org,2002:set' has no meaning here"),
        ("!!python/object/apply:os.system [ls]", "has no meaning here"),
        ("!!int x", "line 1, column 1: invalid literal"),
        ("!!float x", "line 1, column 1: could not convert"),
        ("a: " + "9" * 5000, "line 1, column 4: Exceeds the limit"),
        ("a: [1", "line 2, column 1: "),
        ("a: 1\n--- b", "line 2, column 1: "),
        ("a: \x01", "control characters are not allowed"),
        ("a: &x [*x]", "or holds itself"),
        (
            "[\n" * 200_000,
            f"line {MAX_DEPTH + 1}, column 1: it nests deeper than {MAX_DEPTH} levels",
        ),
        # on one line the parser reads ahead: some versions stop there, at a place of their own
        ("[" * 200_000, f"it nests deeper than {MAX_DEPTH} levels"),
    ],
)
def test_yaml_that_is_not_sound_is_one_error_with_its_place(
    tmp_path: Path, text: str, message: str
) -> None:
    path = _file(tmp_path, text)

    assert re.match(
        rf"The file '{re.escape(str(path))}' has 1 problem:\n  .*{re.escape(message)}",
        _error(path),
    )


def test_aliases_that_multiply_refused_before_they_fill_memory(
    tmp_path: Path,
) -> None:
    lines = [
        "a0: &a0 [x]",
        *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)),
    ]

    assert "with its aliases the document holds more than 100000 values" in _error(
        _file(tmp_path, "\n".join(lines))
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1,\n "b" 2}', "line 2, column 6: "),
        ('{"a": {"b": 1, "b": 2}}', "key 'b' stands twice in one object"),
        ('{"a": NaN}', "NaN is no JSON number"),
        ("[" + "9" * 5000 + "]", "Exceeds the limit"),
        ("[" * 200_000, "it nests too deep"),
        ("", "line 1, column 1: "),
    ],
)
def test_json_that_is_not_sound_is_one_error(
    tmp_path: Path, text: str, message: str
) -> None:
    assert message in _error(_file(tmp_path, text, "plan.json"))


def test_a_file_that_is_no_text_says_where(tmp_path: Path) -> None:
    assert "it is not UTF-8 at byte 3" in _error(_file(tmp_path, b"a: \xff"))


def test_a_file_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    assert "it cannot be read: No such file or directory" in _error(
        tmp_path / "missing.yaml"
    )
    assert "it cannot be read: Is a directory" in _error(tmp_path)


@pytest.mark.parametrize("name", ["a\0b", "\ud83d"], ids=["nul", "half-a-pair"])
def test_a_path_that_no_file_can_have_is_told(tmp_path: Path, name: str) -> None:
    assert "no file can be called so" in _error(tmp_path / name)


def test_what_is_no_regular_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "plan.yaml")
    assert "no regular file" in _error(tmp_path / "plan.yaml")


def test_a_file_beyond_the_limit_is_refused(tmp_path: Path) -> None:
    assert f"larger than {MAX_BYTES} bytes" in _error(
        _file(tmp_path, b" " * (MAX_BYTES + 1))
    )


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ((), None),
        (("a",), 1),
        (("a", "b", 1), 4),
        (("a", "b", 7), 2),
        (("a", "b", 0, "c"), 3),
        (("x",), None),
        ((0,), None),
    ],
)
def test_a_value_is_found_by_its_line_as_far_as_its_path_goes(
    path: tuple[str | int, ...], line: int | None
) -> None:
    assert find_line("a:\n  b:\n    - 1\n    - 2\n", path) == line


def test_lines_of_several_values_are_found_in_one_reading(tmp_path: Path) -> None:
    text = "a:\n  b:\n    - 1\n    - 2\n"
    assert find_lines(text, [("a", "b", 0), ("a", "b", 1)]) == [3, 4]
    path = tmp_path / "x.yaml"
    path.write_text(text)
    assert read_mapping(path) == {"a": {"b": [1, 2]}}
    path.write_text("- 1")
    with pytest.raises(ConfigError, match="a mapping; got list"):
        read_mapping(path)


@given(_DATA)
def test_what_is_written_is_read_back(data: JSONData) -> None:
    text = yaml_text(data)

    assert repr(parse_yaml(text)) == repr(data)


@pytest.mark.parametrize("text", ["yes", "1e3", "0o17", "null", "~", "2026-11-28", ""])
def test_text_that_looks_like_something_else_stays_text(text: str) -> None:
    assert parse_yaml(yaml_text({"key": text})) == {"key": text}


def test_lines_stand_as_lines() -> None:
    assert yaml_text({"a": "one\ntwo\n"}) == "a: |\n  one\n  two\n"
