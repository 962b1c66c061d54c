"""Names of keys, variables and fields: which of them say that what stands under them is a secret."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

__all__ = [
    "IDENTITY_NAMES",
    "is_password_name",
    "is_place",
    "is_secret_name",
    "kind_of",
]

_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+|\d+")
_FOLDER: Final = re.compile(r"[/~]|[A-Za-z]:\\")
_PASSWORDS: Final = frozenset({
    "pass", "passcode", "passphrase", "passwd", "password", "passwords", "psk", "pw",
    "pwd", "secret", "secrets",
    "passwort", "kennwort", "contraseña", "contrasena", "senha", "wachtwoord", "heslo",
    "hasło", "haslo",
    "lösenord", "losenord", "lozinka", "mdp", "motdepasse", "parola", "adgangskode",
    "salasana", "parolachiave",
    "clavesecreta", "palavrapasse",
})  # fmt: skip
_SECRETS: Final = _PASSWORDS | {
    "accesstoken",
    "apikey",
    "authorization",
    "authtoken",
    "bearer",
    "cookie",
    "cookies",
    "credential",
    "credentials",
    "jwt",
    "token",
}
_KEYS: Final = frozenset({
    "access", "account", "admin", "aes", "api", "app", "application", "auth", "cipher",
    "client", "consumer", "crypto", "deploy", "encryption", "fernet", "hmac", "ingest",
    "ingestion", "integration", "license", "master", "preshared", "private", "secret",
    "service", "session", "shared", "signing", "ssh", "storage", "subscription",
    "unseal", "webhook", "write",
})  # fmt: skip
"""What a key may be called that is a secret; a primary, public or sort key is none."""
_HARMLESS_TOKENS: Final = frozenset({
    "before", "bos", "cancel", "cancellation", "cls", "continuation", "continue",
    "cursor", "end", "eos", "image", "last", "mask", "next", "pad", "page",
    "pagination", "per", "prev", "previous", "sep", "special", "start", "stop", "sync",
    "unk",
})  # fmt: skip
_QUALIFIERS: Final = frozenset(
    {
        "b64",
        "base",
        "current",
        "data",
        "dev",
        "encoded",
        "env",
        "live",
        "new",
        "old",
        "plain",
        "plaintext",
        "prod",
        "production",
        "raw",
        "staging",
        "str",
        "string",
        "test",
        "text",
        "value",
    }
)
"""Words behind the noun that change nothing about it, as in `api_key_prod` or `PASSWORD_2`."""
_GLUED: Final = (
    "accesskey",
    "accesstoken",
    "apikey",
    "apisecret",
    "apitoken",
    "authkey",
    "authtoken",
    "bearertoken",
    "clientsecret",
    "codeverifier",
    "connectionstring",
    "dockerconfigjson",
    "passphrase",
    "passwd",
    "password",
    "privatekey",
    "refreshtoken",
    "secretkey",
    "sessiontoken",
    "signingkey",
)

IDENTITY_NAMES: Final = frozenset({
    "agent_id", "call_id", "checksum", "created_at", "digest", "encrypted_content",
    "etag", "event", "hash", "id", "instance_id", "message_id", "model", "module",
    "parallel_group_id", "parent", "parent_id", "parent_session_id", "parent_span_id",
    "provider", "request_id", "response_id", "root_session_id", "seq", "session_id",
    "sha256", "signature", "span_id", "thought_signature", "timestamp", "tool_call_id",
    "tool_name", "tool_use_id", "trace_id", "ts", "turn_id", "type",
    "vendor_request_id",
})  # fmt: skip
"""Fields by which events and messages are found and checked again; nothing in them is guessed to be a secret."""


@lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """Tell whether what stands under a name is a secret, as under `OPENAI_API_KEY`, `db.password`, `clientSecret`."""
    words = _words(name)
    if not words:
        return False
    last = words[-1]
    before = ""
    if len(words) > 1:
        before = words[-2]
    # `next_page_token` and `pad_token` are cursors and words of a vocabulary
    if last == "token":
        return before not in _HARMLESS_TOKENS
    if last in _SECRETS or is_password_name(name):
        return True
    # keys are mostly those of tables and maps: only a word that makes one secret
    # counts
    if last in ("key", "keys", "schlüssel", "schluessel"):
        return before in _KEYS
    # `max_tokens` counts tokens of a model, and an exit code is no code for
    # signing in
    if last in ("tokens", "codes", "code"):
        return before in (
            "access",
            "api",
            "auth",
            "backup",
            "bearer",
            "device",
            "recovery",
            "refresh",
        )
    return (last == "string" and before == "connection") or "".join(
        words[-2:]
    ).endswith(_GLUED)


@lru_cache(maxsize=4096)
def is_password_name(name: str) -> bool:
    """Tell whether a name says that a word which a person chose stands under it, and not a made-up token."""
    words = _words(name)
    return bool(words) and (
        words[-1].endswith(("password", "passwd", "passphrase"))
        or any("".join(words[-count:]) in _PASSWORDS for count in (1, 2, 3))
    )


def kind_of(name: str) -> str:
    """Return what the mark calls a secret that stands under a name."""
    if is_password_name(name):
        return "password"
    return "secret"


def is_place(name: str, value: object) -> bool:
    """Tell whether a value is the working directory of a shell, which calls that as others call a password."""
    return (
        name in ("PWD", "OLDPWD")
        and isinstance(value, str)
        and _FOLDER.match(value) is not None
    )


def _words(name: str) -> list[str]:
    # the end of a name says what it names, and a bound keeps long "names" cheap
    words = [word.lower() for word in _WORDS.findall(name[-100:])]
    while len(words) > 1 and (words[-1] in _QUALIFIERS or words[-1].isdigit()):
        # here `string` is the noun and no qualifier
        if words[-2:] == ["connection", "string"]:
            break
        words.pop()
    return words
