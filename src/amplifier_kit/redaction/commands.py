"""Passwords that are recognised by the program, the protocol or the file in whose line they stand."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Final, TypeAlias

from amplifier_kit.redaction.heuristics import PLACEHOLDER, is_random
from amplifier_kit.redaction.places import Found
from amplifier_kit.redaction.windows import line_matches, matches_near

__all__ = ["command_lines"]

_Shape: TypeAlias = tuple[tuple[str, ...], str]
"""Words without one of which it is not there, and what stands before the password."""

_ALONG: Final = r"\b[^\n|;&]{0,200}?[ \t]"
_OPTIONS: Final[tuple[_Shape, ...]] = (
    (("mysql", "mariadb"), rf"(?:mysql|mariadb)[\w\-]{{0,20}}{_ALONG}-p"),
    (("7z",), rf"7z[ar]?{_ALONG}-p"),
    (("mongo",), rf"mongo\w{{0,10}}{_ALONG}-p[ =]"),
    (("cqlsh", "cypher-shell"), rf"(?:cqlsh|cypher-shell){_ALONG}-p[ =]?"),
    (
        (" login",),
        rf"(?:docker|podman|nerdctl|helm registry|oc|az|acr) login{_ALONG}-p[ =]?",
    ),
    (("sshpass",), rf"sshpass{_ALONG}-p ?"),
    (("redis-cli",), rf"redis-cli{_ALONG}-a[ =]?"),
    (("sqlcmd", "osql", "bcp"), rf"(?:sqlcmd|osql|bcp){_ALONG}-P ?"),
    (("zip",), rf"(?:un)?zip{_ALONG}-P ?"),
    (("openssl",), rf"openssl{_ALONG}(?:-[kK] |-pass(?:in|out)? +pass:)"),
    (("ldap",), rf"ldap\w{{2,10}}{_ALONG}-w ?"),
    (("snmp",), rf"snmp\w{{2,10}}{_ALONG}-[AXc] ?"),
    (
        ("keytool", "jarsigner"),
        rf"(?:keytool|jarsigner){_ALONG}-(?:src|dest)?(?:store|key)pass ",
    ),
    (("--passphrase",), rf"gpg2?{_ALONG}--passphrase[ =]"),
    (("smb", "rpcclient"), rf"(?:smb\w{{2,10}}|rpcclient){_ALONG}-U ?[^\s%]{{1,64}}%"),
    (("lftp",), rf"lftp{_ALONG}-u ?[^\s,]{{1,64}},"),
    (("freerdp",), rf"\w{{0,4}}freerdp3?{_ALONG}/p:"),
    (("htpasswd",), r"htpasswd +-\w{0,6}b\w{0,6} +\S{1,200} +\S{1,64} +"),
    (("alias set",), r"mc alias set \S{1,64} \S{1,200} \S{1,64} +"),
    (("net user",), r"net user \S{1,64} +(?![/&|])"),
    (("net use",), rf"net use{_ALONG}/user:\S{{1,64}} +"),
    (("nmcli",), rf"nmcli{_ALONG}password +"),
    (("codecov",), rf"codecov{_ALONG}-t +(?=[0-9a-f]{{8}}-)"),
    (("SecureString",), r"ConvertTo-SecureString(?: +-String)? +(?=[\"'])"),
)
"""Options and operands of programs."""

_LINES: Final[tuple[_Shape, ...]] = (
    (
        ("requirepass", "masterauth", "bindpw", "rootpw"),
        r"^\s{0,20}(?:requirepass|masterauth|bindpw|rootpw) +",
    ),
    (("insecure-password",), r"\binsecure-password +"),
    (("secret ", "password "), r"\b(?:secret|password) +[0-9] +(?=\S{8})"),
    (('"AUTH"',), r"\"AUTH\" +(?=\")"),
    (("AUTH ",), r"\bAUTH +(?:PLAIN|LOGIN|XOAUTH2) +(?=[A-Za-z0-9+/=]{8,}$)"),
    (("LOGIN ",), r"^\w{1,8} LOGIN \S{1,128} +"),
    (
        ("PASS ",),
        r"\bUSER +\S{1,128}[^\n]{0,80}\n(?:[^\n]{0,200}\n)?[^\n]{0,10}\bPASS +",
    ),
    (("PSK ",), r": *PSK +(?=\")"),
    (("* ", "*\t"), r"^[^\s#]{1,64}[ \t]+\*[ \t]+(?=\")"),
    (
        ("oracle:thin:", "sqlplus "),
        r"(?:oracle:thin:|sqlplus +)\w{1,64}/(?=[^@\s/]{3,64}@)",
    ),
    (("DENTIFIED", "dentified"), r"(?i:\bidentified +by +(?:password +)?)(?=[\"'])"),
    (("PASSWORD", "assword"), r"(?i:\bpassword) +(?:= *)?N?(?=')"),
    (("assword",), r"(?i:password[^\n]{0,80}:)\s{1,8}(?=[0-9a-f]{32}$)"),
    (("assword",), r"(?i:password[^\n]{0,80}reset[^\n]{0,40}\n)[^\n]{0,20}: +"),
    (("jsessionid", "JSESSIONID"), r"(?i:;jsessionid=)"),
    (("Signature=", "response="), r"(?:Signature=|response=)(?=\"?[0-9a-f]{32})"),
    (("sonar.",), r"\bsonar\.(?:login|token) *= *(?=\w{20})"),
    (("Key ",), r"\b(?:Unseal|Recovery) Key \d+: +"),
    (
        ("ecret_id", "ecret id", "ecret ID", "ecretId", "ecretID", "ECRET_ID"),
        r"(?i:\bsecret[_ ]?id)[\"' ]{0,8}[:=][\"' ]{0,4}(?=[0-9a-f]{8}-[0-9a-f]{4}-)",
    ),
    (
        ("\tTRUE\t", "\tFALSE\t"),
        r"^\S{1,255}\t(?:TRUE|FALSE)\t\S{1,255}\t(?:TRUE|FALSE)\t\d+\t[^\t\n]{1,200}\t(?=\S{12})",
    ),
    (("PIN",), r"\bPIN\b[^\n:=]{0,24}[:=] *(?=\d{4,8}\b)"),
    (("otp",), r"--otp[ =](?=\d{6})"),
    (("calendar/",), r"/private-(?=[0-9a-f]{32})"),
)
"""Lines of protocols, of files of settings, and of what programs say."""

_SHAPES: Final = (*_OPTIONS, *_LINES)
_WORDS: Final = tuple({word: None for words, _ in _SHAPES for word in words})

_ENTRY: Final = (
    r"^\[?[\w.*\-]{1,128}\]?:(?:(?:\d{3,5}|\*):[A-Za-z_*][\w\-]{0,64}:[A-Za-z_][\w\-]{0,64}:(?=[^\s:]{3,512}$)"
    r"|\d{2,5}[ \t]+[^\s@]{1,64}@[\w.\-]{1,128}:(?=\S{3,512}$)|[\w .\-]{1,64}:(?=[0-9a-f]{32}$))"
)
"""A line of a file of passwords: a host, its ports or a hash, and what stands behind the last colon."""

_VALUE: Final = r"(?:\"(?P<double>[^\"\n]{3,512})\"|'(?P<single>[^'\n]{3,512})'|(?P<bare>[^\s\"'|;&<>\\,?]{3,512}))"
_PIPED: Final = (
    rf"\b(?:echo|printf)(?: +-\w{{1,3}})* +{_VALUE}(?=(?:\\n)?[\"']? *\| *(?:sudo +(?:-\w+ +)*-S\b|sudo +-S\b"
    r"|(?:sudo +)?(?:chpasswd|cryptsetup|passwd)\b|[^\n|]{1,80}-stdin\b))"
)
"""What is handed to a program that reads a password."""

_SIGN_IN: Final = re.compile(
    r"\b(?:login|auth|authtoken|add-authtoken|service install|set token|importprivkey|obscure)[ \t]+[\"']?"
    r"(?P<value>[A-Za-z0-9_\-+/]{20,2048}={0,2})(?![\w.:@/])"
)
"""A made-up token behind a word for signing in."""
_SIGNS: Final = (
    "login ",
    "auth ",
    "authtoken ",
    "install ",
    "token ",
    "importprivkey ",
    "obscure ",
)


def command_lines(text: str) -> Iterator[Found]:
    """Yield the passwords among the arguments of programs, and in the lines of protocols and settings."""
    # To look for all words takes less than to go through the shapes, and few texts have one.
    there = {word for word in _WORDS if word in text}
    for words, before in _SHAPES if there else ():
        if not there.isdisjoint(words):
            yield from _passwords(matches_near(_compiled(before, _VALUE), words, text))
    if "|" in text:
        yield from _passwords(
            matches_near(_compiled(_PIPED, ""), ("echo", "printf"), text)
        )
    # colons stand everywhere
    yield from _passwords(line_matches(_compiled(_ENTRY, _VALUE), text))
    signed_in = matches_near(_SIGN_IN, _SIGNS, text)
    yield from (
        (*match.span("value"), "secret")
        for match in signed_in
        if is_random(match["value"])
    )


@cache
def _compiled(before: str, value: str) -> re.Pattern[str]:
    # Few texts have any of these words; all the patterns together take a while to compile.
    return re.compile(
        # a program's name is a word of its own, and no part of a path
        rf"(?<![\w.\-/]){before}{value}" if before[0].isalnum() else before + value,
        re.MULTILINE,
    )


def _passwords(matches: Iterator[re.Match[str]]) -> Iterator[Found]:
    for match in matches:
        part = match.lastgroup or "bare"
        if not PLACEHOLDER.search(match[part]) and not match[part].startswith("-"):
            yield (*match.span(part), "password")
