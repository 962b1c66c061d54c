"""Secrets that are told by what stands before them: assignments, headers, flags, URLs, key blocks."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import Final, TypeAlias

import attrs

from amplifier_sdk.kit.redaction.names import is_password_name, is_secret_name

__all__ = ["Found", "assignments", "credentials", "key_blocks"]

Found: TypeAlias = tuple[int, int, str]
"""Where a secret begins and ends, and what kind it is."""

_HEAD: Final = re.compile(
    r"(?:passw(?:or)?[dt]s?|passphrase|passcode|pwd|secrets?|tokens?|keys?|credentials?|authorization|cookies?|jwt"
    r"|connection_?string|bearer|_pass|-pass|_pw)"
    r"(?P<rest>[a-z0-9_\-.]{0,40}+)"
    r"(?P<close>\\{0,3}[\"'`]?\]?)"
    r"(?P<sep>[ \t]{0,8}(?:[:=]=?>?|,(?=[ \t]{0,4}\\{0,3}[\"']))[ \t]{0,8}|>|[ \t]+(?:is|was)[ \t]*:?[ \t]+|[ \t]{1,4})"
)
"""The end of a name and what separates it from a value, in lower case."""
_VALUE: Final = re.compile(
    r"\\{0,3}\"(?P<double>[^\"\\\n]{1,512}+(?:\\.[^\"\\\n]{0,512}+){0,16}+)"
    r"|\\{0,3}[\"'](?P<single>[^\"'\\\n]{1,512}+)"
    r"|(?P<bare>[^\s\"'`,;<>(){}\[\]\\&|]{4,256}+)"
)
_QUOTED_RUN: Final = re.compile(r"[^\"'\\\n]*+")
_BARE_RUN: Final = re.compile(r"[^\s\"'`,;<>(){}\[\]\\&|]*+")
_MAX_LOOKS: Final = 8
_NAME_CHARACTERS: Final = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-."
_PLACEHOLDER: Final = re.compile(
    r"(?i)^(?:\$|%[({]?|<|\{\{?|\[|\*{2}|\.{2}|x{3}|os\.|process\.env|env[.(\[]|your|my[-_]|example|change|placeholder"
    r"|dummy|redact|\(withheld|hidden|none$|null$|true$|false$|undefined$|todo|insert|replace|enter|fake|sample)"
    r"|\$\{|\{\{|\}\}|%\(|%s|\.\.\.|\*\*\*|xxxx|_here$|-here$|example|changeme|placeholder|\[redacted:|<[a-z]"
)
_IDENTIFIER: Final = re.compile(r"[A-Za-z_$][A-Za-z_$0-9]*(?:(?:\.|::|->|\?\.)[A-Za-z_$][A-Za-z_$0-9]*)*\Z")
_SPACED: Final = re.compile(r"(?i)\b(api|access|secret|private|signing|client|auth) \Z")
"""The first word of a name that is written with a space, as in "the api key is"."""
_UUID: Final = re.compile(r"(?i)[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\Z")
_SCHEME: Final = re.compile(r"(?i)(?:bearer|basic|token|digest|negotiate|apikey|bot)[ \t]+")

_HEADER: Final = re.compile(
    r"(?i:(?:authorization|auth|x-(?:[a-z]{1,12}-){0,2}"
    r"(?:key|token|auth|secret))\\{0,3}[\"']?[ \t]*[:=,][ \t]*\\{0,3}[\"']?)"
    r"(?:(?i:bearer|basic|token|digest|apikey|bot)[ \t]+)?(?P<value>[^\s\"'\\,;<>()\[\]{}]{8,4096})"
)
_BEARER: Final = re.compile(r"(?i:bearer|basic)[ \t]+(?P<value>[A-Za-z0-9+/_\-.~=]{12,4096})")
_COOKIE: Final = re.compile(r"(?i:(?:set-)?cookie)\\{0,3}[\"']?[ \t]*:[ \t]*\\{0,3}[\"']?(?P<value>[^\n\"'\\]{4,4096})")
_COOKIE_VALUE: Final = re.compile(r"[^\s=;]{1,200}=(?P<value>[^\s;]{6,4096})")
_URL: Final = re.compile(r"://(?P<user>[^\s/@:\"'<>\\]{0,256}):(?P<value>[^\s/\"'<>\\@]{1,512})@(?=[\w\[.\-$%{])")
_URL_USER: Final = re.compile(r"://(?P<value>[A-Za-z0-9_\-%.~]{16,512})(?::(?:x-oauth-basic)?)?@(?=[\w\[])")
_QUERY: Final = re.compile(
    r"(?i:[?&](?:key|sig|signature|x-amz-signature|x-amz-security-token|x-goog-signature|code|auth|apikey|pass|pw))"
    r"=(?P<value>[^\s&\"'<>#\\]{12,4096})"
)
_NETRC: Final = re.compile(r"login[ \t\n]+\S{1,128}[ \t\n]+password[ \t\n]+(?P<value>\S{1,512})")
_CURL: Final = re.compile(r"(?:[ \t]-u[ \t]?|--user[ =])[\"']?[^\s:\"']{1,128}:(?P<value>[^\s\"']{3,512})")
_FLAG: Final = re.compile(r"(?:sshpass|docker login)[^\n|;&]{0,120}?[ \t]-p[ \t]*[\"']?(?P<value>[^\s\"']{4,512})")

_Phrases: TypeAlias = tuple[tuple[tuple[str, ...], re.Pattern[str], str], ...]
_HEADERS: Final[_Phrases] = (
    (("?", "&"), _QUERY, "url-parameter"),
    (("auth", "x-"), _HEADER, "header"),
    (("bearer", "basic"), _BEARER, "header"),
)
_PHRASES: Final[_Phrases] = (
    (("login",), _NETRC, "password"),
    (("curl",), _CURL, "password"),
    (("sshpass", "docker login"), _FLAG, "password"),
)
"""What is looked for, each behind the words without which it is not there."""

_BLOCK: Final = re.compile(
    r"-----BEGIN (?P<kind>[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?)-----(?P<body>.*?)(?:-----END (?P=kind)-----|\Z)",
    re.DOTALL,
)
_PUTTY: Final = re.compile(r"Private-Lines: \d+(?P<body>.*?)(?:Private-MAC: [0-9a-f]+|\Z)", re.DOTALL)


def key_blocks(text: str) -> Iterator[Found]:
    """Yield the private keys of a text; one that nothing closes goes to the text's end."""
    if "PRIVATE KEY" in text:
        end = 0
        while (start := text.find("-----BEGIN ", end)) >= 0:
            match = _BLOCK.match(text, start)
            end = match.end() if match else start + 11
            if match and len(match["body"].strip()) > 20:
                yield (*match.span(), "private-key")
    if "Private-Lines:" in text:
        for match in _PUTTY.finditer(text):
            yield (*match.span(), "private-key")


def credentials(text: str) -> Iterator[Found]:
    """Yield the passwords of URLs, the values of headers and what else stands in a fixed place."""
    if "://" in text:
        yield from _urls(text)
    lowered = text.lower()
    for needles, pattern, kind in _HEADERS:
        if any(map(lowered.__contains__, needles)):
            yield from ((*match.span("value"), kind) for match in pattern.finditer(text) if _is_random(match["value"]))
    if "cookie" in lowered:
        yield from _cookies(text)
    for needles, pattern, kind in _PHRASES:
        if any(map(lowered.__contains__, needles)):
            for match in pattern.finditer(text):
                if not _PLACEHOLDER.search(match["value"]):
                    yield (*match.span("value"), kind)


def _cookies(text: str) -> Iterator[Found]:
    for match in _COOKIE.finditer(text):
        for part in _COOKIE_VALUE.finditer(text, *match.span("value")):
            if _is_random(part["value"]):
                yield (*part.span("value"), "cookie")


def _urls(text: str) -> Iterator[Found]:
    index = text.find("://")
    while index >= 0:
        match = _URL.match(text, index)
        if match is not None and _is_url_password(match["user"], match["value"]):
            yield (*match.span("value"), "url-password")
        elif (user := _URL_USER.match(text, index)) is not None and _is_random(user["value"]):
            yield (*user.span("value"), "url-password")
        index = text.find("://", index + 3)


def _is_url_password(user: str, value: str) -> bool:
    if (
        user.startswith("[")
        or _PLACEHOLDER.search(value)
        or value.lower() in _SAID
        or value.lower() == user.lower()
        or len(value) < 3
    ):
        return False
    return not ("/" in value and value.partition("/")[0].isdigit())


_SAID: Final = frozenset(
    {"pass", "passwd", "password", "pwd", "pw", "secret", "token", "key", "passphrase", "foo", "bar", "pass@", "port"}
)
"""What examples have in the place of a password."""


def assignments(text: str) -> Iterator[Found]:
    """Yield the values that are assigned to names of secrets: `API_KEY=…`, `"password": "…"`, `--token …`."""
    lowered = _lower(text)
    head = _HEAD.search(lowered)
    looked, run_end = 0, 0
    while head is not None:
        # A run of names that no value follows is looked at a few times, else it takes quadratic time.
        looked = looked + 1 if head.end() < run_end else 0
        found = None if looked > _MAX_LOOKS else _assigned(text, head)
        if looked == 0:
            run = _BARE_RUN.match(text, head.end())
            run_end = run.end() if run else head.end()
        head = _HEAD.search(lowered, found[1] if found else run_end if looked > _MAX_LOOKS else head.end("rest"))
        if found:
            yield found


def _lower(text: str) -> str:
    """Return a text in lower case, every character where it was."""
    lowered = text.lower()
    return lowered if len(lowered) == len(text) else re.sub(r"[A-Z]+", lambda part: part[0].lower(), text)


def _assigned(text: str, head: re.Match[str]) -> Found | None:
    """Return the value of an assignment if it can be a secret."""
    before = text[max(0, head.start() - 60) : head.start()]
    begin = head.start() - (len(before) - len(before.rstrip(_NAME_CHARACTERS)))
    if not head["sep"].strip() and text[begin : begin + 2] != "--":
        return None
    name = text[begin : head.end("rest")].strip("-.")
    kind_before = _SPACED.search(before[: len(before.rstrip(_NAME_CHARACTERS))])
    if kind_before is not None:
        name = f"{kind_before[1]}_{name}"
    if text[max(0, begin - 2) : begin] == "::":  # a type of a namespace
        return None
    match = _VALUE.match(text, head.end()) if is_secret_name(name) else None
    if match is None:
        return None
    kind = match.lastgroup or "bare"
    start, end = match.span(kind)
    scheme = _SCHEME.match(text, start, end)
    if scheme is not None:
        start = scheme.end()
    is_password = is_password_name(name)
    value = _Value(text, start, end, is_password=is_password)
    if not value.text or not (_is_quoted(value, head) if kind != "bare" else _is_plain(value, head, begin)):
        return None
    if _PLACEHOLDER.search(value.text[:64]):
        return None
    run = _BARE_RUN if kind == "bare" else _QUOTED_RUN
    whole = run.match(text, end)
    return start, whole.end() if whole else end, "password" if is_password else "secret"


@attrs.frozen(kw_only=False)
class _Value:
    """What stands behind a name, where it is, and whether a person may have chosen it."""

    source: str
    start: int
    end: int
    is_password: bool = attrs.field(kw_only=True)

    @property
    def text(self) -> str:
        return self.source[self.start : self.end]

    @property
    def after(self) -> str:
        return self.source[self.end : self.end + 1]


def _is_quoted(value: _Value, head: re.Match[str]) -> bool:
    return head["sep"].strip() != "" and _is_literal(value.text, is_password=value.is_password)


def _is_plain(value: _Value, head: re.Match[str], begin: int) -> bool:
    separator, source = head["sep"].strip(), value.source
    if not separator:
        return _is_bare(value)
    if separator == ">":
        return source[max(0, begin - 1) : begin] in ("<", ":") and _is_literal(value.text, is_password=True)
    return separator != "," and (_is_bare(value) or _is_variable(value, head, begin))


def _is_literal(value: str, *, is_password: bool) -> bool:
    """Tell whether a quoted text is a secret: a password has letters and something else, a token looks random."""
    if not is_password:
        return _is_random(value) or _UUID.match(value) is not None
    if len(value) < 6 or any(map(str.isspace, value)) or not any(map(str.isalpha, value)):
        return False
    kinds = _kinds(value)
    return kinds >= 3 or (kinds == 2 and any(map(str.isdigit, value)))


def _is_bare(value: _Value) -> bool:
    """Tell whether an unquoted text is a secret and not a name, a call or a path of code."""
    text = value.text
    if value.after in ("(", "[", "{"):
        return False
    if not value.is_password:
        return _is_random(text) and sum(map(str.isdigit, text)) >= 2
    if len(text) < 6 or value.after == ")" or text.startswith((".", "/", "-", "=")):
        return False
    if _IDENTIFIER.match(text):
        return any(map(str.isdigit, text)) and "_" not in text and "." not in text
    return _kinds(text) >= 2 and any(map(str.isalnum, text))


def _is_variable(value: _Value, head: re.Match[str], begin: int) -> bool:
    """Tell whether a line is one of a file of variables, such as `DB_PASSWORD=swordfish`: there any text is a value."""
    source = value.source
    name = source[begin : head.end("rest")]
    if head["sep"] != "=" or name != name.upper() or len(value.text) < 6:
        return False
    line = source[source.rfind("\n", 0, begin) + 1 : begin]
    return line.strip() in ("", "export", "set", "ENV", "-e") and value.after in ("", "\n", "\r", " ")


def _kinds(value: str) -> int:
    """Count the kinds of characters: lower case, upper case, digits, others."""
    return sum(
        (
            any(map(str.islower, value)),
            any(map(str.isupper, value)),
            any(map(str.isdigit, value)),
            not value.replace("_", "").isalnum(),
        )
    )


def _is_random(value: str) -> bool:
    """Tell whether a text looks made by chance: long, without spaces, with digits, and no part too frequent."""
    if len(value) < 12 or _PLACEHOLDER.search(value) or any(map(str.isspace, value)):
        return False
    sample = value[:200]
    if not any(map(str.isdigit, sample)) or not any(map(str.isalpha, sample)):
        return False
    if "://" in sample or sample.startswith(("/", "./", "~")):
        return False
    return _entropy(sample) >= (3.0 if len(sample) < 20 else 3.2)


def _entropy(text: str) -> float:
    """Return how many bits each character tells, by how often each is there."""
    size = len(text)
    return -sum(count / size * math.log2(count / size) for count in Counter(text).values())
