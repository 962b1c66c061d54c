"""Assignments: values that stand behind the name of a secret, in code, files of settings, commands and talk."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from amplifier_kit.redaction.heuristics import (
    PLACEHOLDER,
    SHORTEST_TOKEN,
    SHORTEST_WORD,
    is_literal,
    is_phrase,
    is_random,
    kinds,
)
from amplifier_kit.redaction.names import (
    is_password_name,
    is_place,
    is_secret_name,
    kind_of,
)
from amplifier_kit.redaction.places import Found
from amplifier_kit.redaction.windows import lower, places_of

__all__ = ["NAMES", "NEEDED", "assignments"]

NAMES: Final = (
    r"passw(?:or)?[dt]s?|passphrase|passcode|pwd|secrets?|tokens?|keys?|credentials?|authorization|cookies?|jwt"
    r"|connection_?string|bearer|_pass|-pass|_pw|(?<![a-z0-9])(?:pass|pw|psk|mdp)(?![a-z])"
    r"|code_verifier|device_code|dockerconfigjson"
)
"""The end of a secret's name."""
NEEDED: Final = (
    "pass",
    "_pass",
    "-pass",
    "pw",
    "_pw",
    "psk",
    "mdp",
    "secret",
    "token",
    "key",
    "credential",
    "jwt",
    "authorization",
    "cookie",
    "connection",
    "bearer",
    "code_verifier",
    "device_code",
    "dockerconfigjson",
)
"""Each of these names begins with one of these, which few texts have."""
_FOREIGN: Final = {
    "adgangskode": "",
    "chiave": "",
    "contrase": "[nñ]a",
    "has": "[lł]o",
    "heslo": "",
    "kennwort": "",
    "lozinka": "",
    "mot de passe": "",
    "mot-de-passe": "",
    "mot_de_passe": "",
    "parola": "",
    "salasana": "",
    "schl": "(?:ü|ue)ssel",
    "secreta": "",
    "senha": "",
    "senord": "",
    "wachtwoord": "",
}
"""Words of other languages: what few texts have, and how it goes on."""
_REST: Final = (
    r"(?P<rest>[a-z0-9_\-.]{0,40}+)"
    r"(?P<close>\\{0,3}[\"'`]?\]?\*{0,2}|(?: [\w:.\-]{1,40}=\"[^\"\n]{0,80}\"){1,3}(?=>)|</key>\s{0,40}<string(?=>))"
    r"(?P<sep>[ \t]{0,8}:[ \t]{0,4}[&a-z0-9_.\[\]|]{1,40}+[ \t]{0,4}=[ \t]{0,4}(?=[\"'`])"
    r"|[ \t]{0,8}[:=][ \t]{0,4}(?:[>|][+\-]?|\\)[ \t]{0,4}\r?\n[ \t]{0,40}+"
    r"|[ \t]{0,16}(?:[:=]=?>?\*{0,2}|,(?=[ \t]{0,16}\\{0,3}[\"']))[ \t]{0,16}"
    r"(?:(?:some|just|secret|secretstr|string)\((?=[\"']))?"
    r"|>(?:<value>)?|[ \t]+(?:is|was|lautet|ist|est|es)[ \t]*:?[ \t]+|[ \t]{1,4})"
)
_HEAD: Final = re.compile(
    f"(?:{NAMES}|{'|'.join(map(''.join, _FOREIGN.items()))}){_REST}"
)
"""The end of a name and what separates it from a value, in lower case."""
_STARTS: Final = (*NEEDED, *_FOREIGN)
_VALUE: Final = re.compile(
    r"(?:[bBrRuUN@]{1,2}(?=[\"']))?+(?:\\{0,3}\"(?P<double>[^\"\\\n]{1,512}+(?:\\.[^\"\\\n]{0,512}+){0,16}+)"
    r"|'(?P<single>[^'\\\n]{1,512}+(?:\\.[^'\\\n]{0,512}+){0,16}+)(?=')"
    r"|\\{0,3}[\"'`](?P<quoted>[^\"'`\\\n]{1,512}+)"
    r"|(?P<bare>[^\s\"'`,;<>(){}\[\]\\&|]{4,256}+))"
)
_QUOTED_RUN: Final = re.compile(r"[^\"'\\\n]*+")
_BARE_RUN: Final = re.compile(r"[^\s\"'`,;<>(){}\[\]\\&|]*+")
_MAX_LOOKS: Final = 8
_NAME_CHARACTERS: Final = (
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-."
)
_IDENTIFIER: Final = re.compile(
    r"[A-Za-z_$][A-Za-z_$0-9]*(?:(?:\.|::|->|\?\.)[A-Za-z_$][A-Za-z_$0-9]*)*\Z"
)
_STRICT: Final = frozenset({"=", ":", ":=", "=>"})
_FIRST_WORDS: Final = (
    "api ",
    "access ",
    "secret ",
    "private ",
    "signing ",
    "client ",
    "auth ",
)
_SPACED: Final = re.compile(r"(?i)\b(api|access|secret|private|signing|client|auth) \Z")
_DIGIT_WITHIN: Final = re.compile(r"[A-Za-z]\d+(?=[A-Za-z])")
_SETTERS: Final = ("set -gx ", "set -x ", "set -Ux ", "setenv ")
_BLOCK: Final = re.compile(r"(?P<block>[^\n]{1,256}+)")
_BLOCK_STARTS: Final = frozenset({">", "|", ">-", "|-", ">+", "|+"})
"""How YAML begins a text that stands in the lines below its name."""
_SCHEME: Final = re.compile(
    r"(?i)(?:bearer|basic|token|digest|negotiate|apikey|bot)[ \t]+"
)


def assignments(text: str) -> Iterator[Found]:
    """Yield the values that are assigned to names of secrets: `API_KEY=…`, `"password": "…"`, `--token …`."""
    lowered = lower(text)
    looked, run_end, at = 0, 0, 0
    # `re` finds no literal in the pattern that it could search for, and tries it
    # at each character; where one of the words stands is found thirty times faster.
    for start in places_of(_STARTS, lowered):
        head = _HEAD.match(lowered, start)
        if start < at or head is None:
            continue
        # A run of names that no value follows is searched a few times, else it takes quadratic time.
        if head.end() < run_end:
            looked = looked + 1
        else:
            looked = 0
        if looked > _MAX_LOOKS:
            found = None
        else:
            # the pattern ran over the lower-case copy; values are read from the
            # text itself, whose case says how random they are
            found = _assigned(text, head)
        # `run_end` is where the run of name-like characters ends: searches that
        # start within it are the ones that could add up to quadratic time
        if looked == 0:
            run_end = _end_of(_BARE_RUN, text, head.end())
        if found:
            at = found[1]
            yield found
        elif looked > _MAX_LOOKS:
            at = run_end
        else:
            at = head.end("rest")


def _assigned(text: str, head: re.Match[str]) -> Found | None:
    """Return the value of an assignment if it can be a secret."""
    at, name_end = head.start(), head.end("rest")
    # a bound, since a name may stand behind a line of any length
    before = text[max(0, at - 60) : at]
    # the pattern matches the end of a name alone; what it begins with decides
    # whether `key` is `api_key` or `primary_key`
    left = before.rstrip(_NAME_CHARACTERS)
    begin = at - len(before) + len(left)
    separator = head["sep"].strip()
    if (
        not separator
        and text[begin : begin + 2] != "--"
        and not left.endswith(_SETTERS)
    ):
        return None
    name = _first_word(left) + text[begin:name_end].strip("-.")
    if (
        not is_secret_name(name)
        or left.endswith("::")
        or (left.endswith(":") and "arn:" in left)
    ):
        return None  # a type of a namespace, a name in a cloud
    is_block = "\n" in head["sep"] and separator.strip(": \t") in _BLOCK_STARTS
    match = (_BLOCK if is_block else _VALUE).match(text, head.end())
    if match is None:
        return None
    is_password = is_password_name(name)
    kind = match.lastgroup or "bare"
    start, end = match.span(kind)
    if end - start < (
        SHORTEST_WORD if is_password or separator[:1] in ("=", ">") else SHORTEST_TOKEN
    ):
        return None
    # without quotes a value may as well be a name, a call or a type of code, so
    # more is asked of it than of a quoted one
    if kind == "bare":
        place = _Place(text, separator, begin, name_end, end)
        is_secret = _is_plain(text[start:end], place, is_password=is_password)
    else:
        scheme = _SCHEME.match(text, start, end)
        if scheme:
            start = scheme.end()
        may_be_phrase = is_password and (is_block or separator in _STRICT)
        value = ""
        if separator:
            value = text[start:end]
        is_secret = is_literal(value, is_password=is_password) or (
            may_be_phrase and is_phrase(value)
        )
    if not is_secret or PLACEHOLDER.search(text[start : min(end, start + 64)]):
        return None
    # the value was matched up to a limit; what goes on behind it belongs to it
    if kind == "bare":
        end = _end_of(_BARE_RUN, text, end)
    else:
        end = _end_of(_QUOTED_RUN, text, end)
    return start, end, kind_of(name)


def _end_of(run: re.Pattern[str], text: str, at: int) -> int:
    """Return where a run of characters ends that begins at a place; it may be empty."""
    return next(run.finditer(text, at)).end()


def _first_word(left: str) -> str:
    """Return the first word of a name that is written with a space, as in "the api key is"."""
    if not left.endswith(" ") or not left[-9:].lower().endswith(_FIRST_WORDS):
        return ""
    found = _SPACED.search(left)
    if found:
        return f"{found[1]}_"
    return ""


class _Place(NamedTuple):
    """Where an unquoted value stands."""

    text: str
    separator: str
    name_start: int
    name_end: int
    value_end: int

    def before(self) -> str:
        return self.text[max(0, self.name_start - 1) : self.name_start]

    def after(self) -> str:
        return self.text[self.value_end : self.value_end + 1]


def _is_plain(value: str, place: _Place, *, is_password: bool) -> bool:
    if place.separator.startswith(">"):
        return place.before() in ("<", ":") and is_literal(value, is_password=True)
    is_said = place.separator.strip(": ").isalpha()
    return _is_bare(value, place.after(), is_password=is_password, is_said=is_said) or (
        place.separator != "" and _is_variable(place)
    )


def _is_bare(value: str, after: str, *, is_password: bool, is_said: bool) -> bool:
    """Tell whether an unquoted text is a secret and not a name, a call or a path of code."""
    # `password = get_password(`, and not a value
    if after in ("(", "[", "{"):
        return False
    if is_said:
        value = value.rstrip(".,:;!?")
    if not is_password:
        return is_random(value) and sum(map(str.isdigit, value)) >= 2
    # an argument's end, a path, an option or a comparison
    if after == ")" or value.startswith((".", "/", "-", "=")):
        return False
    if _IDENTIFIER.match(value):
        is_name = "_" in value or (
            "." in value
            and not is_said
            and not _DIGIT_WITHIN.search(value.partition(".")[0])
        )
        return (not is_name and any(map(str.isdigit, value))) or _is_made_up(value)
    return kinds(value) >= 2 and any(map(str.isalnum, value))


def _is_made_up(value: str) -> bool:
    """Tell whether what could be a name of code is none: long, of both cases, with digits between letters."""
    return (
        "." not in value
        and len(value) >= 24
        and kinds(value) >= 3
        and len(_DIGIT_WITHIN.findall(value)) > 1
    )


def _is_variable(place: _Place) -> bool:
    """Tell whether a line is one of a file of variables, such as `DB_PASSWORD=swordfish`: there any text is a value."""
    if place.separator != "=":
        return False
    text = place.text
    name = text[place.name_start : place.name_end]
    value = text[place.name_end + 1 : place.value_end].strip()
    if is_place(name, value) or place.before() == ";":
        return place.before() == ";" and place.after() in (";", '"', "'", "")
    line = text[text.rfind("\n", 0, place.name_start) + 1 : place.name_start]
    if name != name.upper():  # code is indented, or has spaces round the sign
        return (
            line == ""
            and place.after() in ("", "\n", "\r")
            and text[place.name_end + 1 : place.value_end] == value
            and value.isalnum()
            and value.lower() not in name.lower()
        )
    return line.strip() in ("", "export", "set", "ENV", "-e") and place.after() in (
        "",
        "\n",
        "\r",
        " ",
    )
