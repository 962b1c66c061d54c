"""JSON texts by the grammar's rules: what stands at each place where a document may be right or wrong.

Each text is the value of the key `a`; `VALID` texts come with what they mean, `INVALID` ones have no place in JSON.
"""

from __future__ import annotations

from itertools import chain
from typing import Final

from amplifier_sdk.jsontypes import JSONValue

__all__ = ["INVALID", "VALID"]

_SPACES: Final = ("", " ", "\t", "\n", "\r", " \t\r\n ")
_NUMBERS: Final = (
    *(
        "0",
        "-0",
        "1",
        "-1",
        "12",
        "-12",
        "120",
        "9007199254740993",
        "-9223372036854775809",
        "1" + "0" * 60,
    ),
    *(
        "0.0",
        "-0.0",
        "0.5",
        "1.5",
        "-1.25",
        "10.01",
        "0.1000",
        "3.14159265358979",
        "1e0",
        "1E0",
        "1e5",
        "1E5",
        "1e+5",
    ),
    *(
        "1E+5",
        "1e-5",
        "1E-5",
        "0e1",
        "0e+1",
        "0.5e1",
        "-0.5E-1",
        "123e45",
        "123.456e78",
        "1e-10000",
        "5e-324",
    ),
)
_ESCAPES: Final = {
    r"\"": '"',
    r"\\": "\\",
    r"\/": "/",
    r"\b": "\b",
    r"\f": "\f",
    r"\n": "\n",
    r"\r": "\r",
    r"\t": "\t",
    r"\u0000": "\0",
    r"\u0041": "A",
    r"\u00e9": "é",
    r"\u00E9": "é",
    r"\u2028": "\u2028",
    r"\uFFFF": "\uffff",
    r"\uD834\uDD1E": "\U0001d11e",
    r"\\u0041": r"\u0041",
    r"\\\\": r"\\",
}
_CHARACTERS: Final = (
    "\x7f",
    "\x80",
    "é",
    "€",
    "\u2028",
    "\u2029",
    "\ufeff",
    "\ufffd",
    "😀",
    "\U0010ffff",
    "/",
    "'",
    "`",
)
_STRUCTURES: Final[tuple[tuple[str, JSONValue], ...]] = (
    ("[]", []),
    ("{}", {}),
    ("[[]]", [[]]),
    ("[{}]", [{}]),
    ('{"":0}', {"": 0}),
    ('{"b":{"b":{"b":{}}}}', {"b": {"b": {"b": {}}}}),
    ('[null,true,false,0,"",[],{}]', [None, True, False, 0, "", [], {}]),
    ('{"b":1,"c":2}', {"b": 1, "c": 2}),
    ('{"\\u0062":1}', {"b": 1}),
    ("[" * 100 + "]" * 100, None),
)


def _nested(depth: int) -> JSONValue:
    value: JSONValue = []
    for _ in range(depth - 1):
        value = [value]
    return value


VALID: Final[list[tuple[str, JSONValue]]] = [
    *(
        (literal, value)
        for literal, value in (("null", None), ("true", True), ("false", False))
    ),
    *(
        (text, float(text) if set(text) & set(".eE") else int(text))
        for text in _NUMBERS
    ),
    *((f'"{escape}"', meaning) for escape, meaning in _ESCAPES.items()),
    *((f'"x{escape}y"', f"x{meaning}y") for escape, meaning in _ESCAPES.items()),
    *((f'"{character}"', character) for character in _CHARACTERS),
    *(
        (text, value if value is not None else _nested(100))
        for text, value in _STRUCTURES
    ),
    *(
        (f"{space}[{space}1{space},{space}2{space}]{space}", [1, 2])
        for space in _SPACES
    ),
    *(
        (f'{{{space}"b"{space}:{space}1{space},"c":2{space}}}', {"b": 1, "c": 2})
        for space in _SPACES
    ),
]

_BAD_NUMBERS: Final = (
    *(
        "+1",
        "++1",
        "--1",
        "-",
        "+",
        "01",
        "-01",
        "00",
        "1.",
        "-1.",
        ".5",
        "-.5",
        "1.e5",
        ".e5",
        "1e",
        "1E",
        "1e+",
        "1e-",
    ),
    *(
        "1ee5",
        "1e5.5",
        "1.2.3",
        "0x1",
        "0b1",
        "0o7",
        "1_000",
        "1 000",
        "0.1.2",
        "1e0.5",
        "-x",
        "1a",
        "Infinity",
        "-Infinity",
    ),
    *(
        "NaN",
        "-NaN",
        "inf",
        "nan",
        "1/2",
        "1,5x",
        "１",  # noqa: RUF001  # a digit that is none of JSON's
        "²",
        "0e",
        "0e+",
        "2.e-3",
        "1.0e",
        "1 2",
        "- 1",
        "1e1e1",
        "--",
        "1+1",
    ),
    *("1e400", "-1e400", "1" + "0" * 5000),
)
_BAD_STRINGS: Final = (
    *(
        r'"\a"',
        r'"\v"',
        r'"\0"',
        r'"\x41"',
        r'"\ "',
        r'"\u"',
        r'"\u0"',
        r'"\u00"',
        r'"\u004"',
        r'"\u004g"',
        r'"\U0041"',
    ),
    *(
        r'"\uD800"',
        r'"\uDC00"',
        r'"\uD800\uD800"',
        r'"\uDC00\uD800"',
        r'"\uD800x"',
        r'"\uD800\n"',
        r'"x\uDFFF"',
        '"\ud800"',
    ),
    *(
        '"',
        '"x',
        'x"',
        '"x""y"',
        '"x" "y"',
        '"\\"',
        '"\\',
        '"x"y',
        '"x"1',
        '""x""',
        '"""',
        "'",
        "'x",
        '"x\\',
        '"\\u00',
    ),
    *(
        r'"\é"',
        r'"\😀"',
        r'"\q"',
        r'"\\\x"',
        '"a"b"',
        '"a "quoted" b"',
        "`x`",
        "“x”",
        "«x»",
    ),
)
_BAD_WORDS: Final = (
    *(
        "TRUE",
        "FALSE",
        "NULL",
        "Null",
        "tru",
        "truee",
        "nul",
        "nulll",
        "fals",
        "undefined",
        "none",
        "NONE",
        "yes",
        "no",
    ),
    *(
        "x",
        "x y",
        "true false",
        "truefalse",
        "true1",
        "not true",
        "nil",
        "NIL",
        "$x",
        "#",
        "@x",
        "!true",
        "~",
        "…",
        "*",
    ),
)
_BAD_STRUCTURES: Final = (
    *(
        "[",
        "]",
        "{",
        "}",
        "[1",
        "1]",
        "[1}",
        "{1]",
        "[[1]",
        "[1]]",
        "[1,,2]",
        "[,1]",
        "[,]",
        "[,,]",
        "[1 2]",
        "[1;2]",
    ),
    *(
        "[1:2]",
        "[1,2",
        "[1,",
        "[1,[2]",
        "{1}",
        '{"b"}',
        '{"b":}',
        '{"b":1',
        '{"b":1,,"c":2}',
        '{,"b":1}',
        '{"b" 1}',
    ),
    *(
        '{"b":1 "c":2}',
        '{"b"::1}',
        '{"b"=1}',
        '{"b":1;"c":2}',
        '{"b":1:2}',
        "{:1}",
        "{1:2}",
        "{null:1}",
        "{true:1}",
    ),
    *(
        '{"b":1,"b":2}',
        '{"b":{"c":1,"c":1}}',
        "{[]:1}",
        "{{}:1}",
        "{{}}",
        "[{]}",
        '{"b":[}',
        '{"b":[1}',
        '{"b":{]',
        "()",
    ),
    *(
        "(1)",
        "<1>",
        "[1]x",
        "{}x",
        "[]1",
        '[]"x"',
        "[] []",
        "{} {}",
        "1 []",
        "[1,2]3",
        "[\x0b]",
        "[\x0c]",
        "[\xa0]",
    ),
    *(
        "[\u2003]",
        "[\u200b1]",
        "[1\u2060]",
        "\x00",
        "[\x00]",
        "/* c */ 1",
        "// c\n1",
        "# c\n1",
        "[1 /* c */]",
        "1 // c",
    ),
    *(
        "",
        " ",
        ",",
        ":",
        ";",
        "=",
        ",1",
        "1,,",
        ":1",
        "1:",
        "[" * 200 + "]" * 200,
        '{"b":' * 200 + "1" + "}" * 200,
    ),
)

INVALID: Final[list[str]] = list(
    chain(_BAD_NUMBERS, _BAD_STRINGS, _BAD_WORDS, _BAD_STRUCTURES)
)
