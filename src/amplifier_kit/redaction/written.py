"""Secrets that are recognised by where they stand: headers, URLs, cookies, pairs of a name and a value."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterator
from typing import Final, TypeAlias

from amplifier_kit.redaction.heuristics import PLACEHOLDER, is_literal, is_random
from amplifier_kit.redaction.names import is_password_name, is_secret_name, kind_of
from amplifier_kit.redaction.places import Found
from amplifier_kit.redaction.windows import lower, matches_near, places_of

__all__ = ["credentials", "pairs"]

_HEADER: Final = re.compile(
    r"(?i:(?:authorization|auth|(?<![a-z0-9\-])(?!sec-|public-|primary-|idempotency-|surrogate-)[a-z]{1,20}-(?:[a-z]{1,12}-){0,2}"
    r"(?:key|token|auth|secret))\\{0,3}[\"']?[ \t]*[:=,][ \t]*(?:b(?=[\"']))?\\{0,3}[\"']?)"
    r"(?:[A-Za-z][A-Za-z0-9\-]{2,20}[ \t]+)?(?P<value>[^\s\"'\\,;<>()\[\]{}]{8,4096})"
)
_BEARER: Final = re.compile(
    r"(?i:bearer|basic)[ \t]+(?P<value>[A-Za-z0-9+/_\-.~=]{12,4096})"
)
_COOKIE: Final = re.compile(
    r"(?i:(?:set-)?cookie)\\{0,3}[\"']?[ \t]*:[ \t]*\\{0,3}[\"']?(?P<value>[^\n\"'\\]{4,4096})"
)
_COOKIE_VALUE: Final = re.compile(r"[^\s=;]{1,200}=(?P<value>[^\s;]{6,4096})")
_URL: Final = re.compile(
    r"://(?P<user>[^\s/@:\"'<>\\]{0,256}):(?P<value>[^\s/\"'<>\\@]{1,512})@(?=[\w\[.\-$%{])"
)
_URL_USER: Final = re.compile(
    r"://(?P<value>[A-Za-z0-9_\-%.~]{16,512})(?::(?:x-oauth-basic)?)?@(?=[\w\[])"
)
_QUERY: Final = re.compile(
    r"(?i:[?&](?:appid|key|(?:private|access|auth)_?token|sig|signature|x-amz-signature|x-amz-security-token|x-goog-signature|code|auth|apikey|pass|pw))"
    r"=(?P<value>[^\s&\"'<>#\\]{12,4096})"
)
_NETRC: Final = re.compile(
    r"login[ \t\n]+\S{1,128}[ \t\n]+password[ \t\n]+(?P<value>\S{1,512})"
)
_CURL: Final = re.compile(
    r"(?:[ \t]-u[ \t]?|--user[ =])[\"']?[^\s:\"']{0,128}:(?P<value>[^\s\"']{3,512})"
)

_Phrases: TypeAlias = tuple[tuple[tuple[str, ...], re.Pattern[str], str], ...]
_HEADERS: Final[_Phrases] = (
    (("?", "&"), _QUERY, "url-parameter"),
    (("auth", "-key", "-token", "-secret"), _HEADER, "header"),
    (("bearer", "basic"), _BEARER, "header"),
)
_PHRASES: Final[_Phrases] = (
    (("login",), _NETRC, "password"),
    (("curl",), _CURL, "password"),
)
"""What is looked for, each behind the words without which it is not there."""

_PAIR: Final = re.compile(
    r"(?i:\b(?:name|key))\\{0,3}[\"']?[ \t]{0,4}[:=][ \t]{0,4}\\{0,3}[\"']?(?P<name>[A-Za-z/][\w.\-/]{2,80})"
    r"\\{0,3}[\"']?"
    r"(?:,\s{0,40}\"\w{1,40}\"\s{0,4}:\s{0,4}\"[^\"\n]{0,80}\")?"
    r"(?:[ \t]{0,4},\s{0,40}|\s{1,40})\\{0,3}[\"']?(?i:value)\\{0,3}[\"']?[ \t]{0,4}[:=][ \t]{0,4}"
    r"(?:\\{0,3}[\"'](?P<quoted>[^\"'\\\n]{6,4096})|(?P<bare>[^\s\"',}]{6,4096}))"
)
"""A name and its value side by side, as in `{"name": "API_KEY", "value": "…"}`."""

_ENCODED: Final = re.compile(
    r"(?i:\bauth)\\{0,3}\"?[ \t]*[:=][ \t]*\\{0,3}\"?(?P<value>[A-Za-z0-9+/]{8,1024}={0,2})"
)
"""A name and a password in base64."""


def credentials(text: str) -> Iterator[Found]:
    """Yield the passwords of URLs, the values of headers and what else stands in a fixed place."""
    if "://" in text:
        yield from _urls(text)
    lowered = lower(text)
    for needles, pattern, kind in _HEADERS:
        for match in matches_near(pattern, needles, text, lowered):
            # a header such as `X-Auth-Key: required` has a word as its value
            if is_random(match["value"]):
                yield (*match.span("value"), kind)
    for match in matches_near(_ENCODED, ("auth",), text, lowered):
        if _is_basic(match["value"]):
            yield (*match.span("value"), "password")
    yield from _cookies(text, lowered)
    for needles, pattern, kind in _PHRASES:
        for match in matches_near(pattern, needles, text, lowered):
            if not PLACEHOLDER.search(match["value"]):
                yield (*match.span("value"), kind)


def pairs(text: str) -> Iterator[Found]:
    """Yield the values that stand beside the names of secrets: `<add key="ApiKey" value="…"/>`."""
    if "alue" not in text and "ALUE" not in text:
        return
    end = 0
    for index in places_of(("name", "key"), lower(text)):
        match = _PAIR.match(text, index) if index >= end else None
        if match is None:
            continue
        end = match.end()
        if not is_secret_name(match["name"]):
            continue
        is_password = is_password_name(match["name"])
        part = "bare"
        if match["quoted"]:
            part = "quoted"
        if is_literal(match[part], is_password=is_password) and not PLACEHOLDER.search(
            match[part]
        ):
            yield (*match.span(part), kind_of(match["name"]))


def _is_basic(value: str) -> bool:
    """Tell whether a text is base64 of a name and a password."""
    try:
        name, colon, password = (
            b64decode(value, validate=True).decode("ascii").partition(":")
        )
    except ValueError:
        return False
    return bool(name and colon and password) and (name + password).isprintable()


def _cookies(text: str, lowered: str) -> Iterator[Found]:
    for match in matches_near(_COOKIE, ("cookie",), text, lowered):
        for part in _COOKIE_VALUE.finditer(text, *match.span("value")):
            if is_random(part["value"]):
                yield (*part.span("value"), "cookie")


def _urls(text: str) -> Iterator[Found]:
    index = text.find("://")
    while index >= 0:
        match = _URL.match(text, index)
        if match is not None and _is_url_password(match["user"], match["value"]):
            yield (*match.span("value"), "url-password")
        # a token in the place of the user, as in clone URLs of forges
        elif (user := _URL_USER.match(text, index)) is not None and is_random(
            user["value"]
        ):
            yield (*user.span("value"), "url-password")
        index = text.find("://", index + 3)


def _is_url_password(user: str, value: str) -> bool:
    # examples write `user:password@host`; such a word is a placeholder
    if (
        user.startswith("[")
        or PLACEHOLDER.search(value)
        or value.lower() in _SAID
        or value.lower() == user.lower()
        or len(value) < 3
    ):
        return False
    return not ("/" in value and value.partition("/")[0].isdigit())


_SAID: Final = frozenset(
    {
        "pass",
        "passwd",
        "password",
        "pwd",
        "pw",
        "secret",
        "token",
        "key",
        "passphrase",
        "foo",
        "bar",
        "pass@",
        "port",
    }
)
"""What examples have in the place of a password."""
