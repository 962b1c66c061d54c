"""Hashes of passwords: whoever has one tries words on it without asking anybody."""

from __future__ import annotations

from typing import Final

from amplifier_kit.redaction.rules import LEFT, TokenRule

__all__ = ["HASH_RULES"]

HASH_RULES: Final = (
    TokenRule(
        name="password-hash",
        starts=("$1$", "$5$", "$6$", "$y$", "$apr1$"),
        pattern=r"\$(?:[156y]|apr1)\$(?:rounds=\d{1,9}\$)?[A-Za-z0-9./]{2,64}\$(?:[A-Za-z0-9./]{1,32}\$)?[A-Za-z0-9./]{22,128}",
        shapes=(
            "$6$<w16>$<w86>",
            "$5$rounds=5000$<w16>$<w43>",
            "$1$<w8>$<w22>",
            "$apr1$<w8>$<w22>",
            "$y$j9T$<w22>$<w43>",
        ),
        refuses=("$1$2", "cost $5$ or $6$"),
    ),
    TokenRule(
        name="bcrypt-hash",
        starts=("$2a$", "$2b$", "$2y$", "$2x$"),
        pattern=r"\$2[abxy]\$\d{2}\$[A-Za-z0-9./]{50,53}",
        shapes=("$2b$12$<w53>", "$2y$10$<w53>"),
        refuses=("$2a$10$short",),
    ),
    TokenRule(
        name="argon2-hash",
        starts=("$argon2", "$scrypt$", "$pbkdf2"),
        pattern=r"\$(?:argon2(?:id|i|d)|scrypt|pbkdf2(?:-sha\d{1,3})?)\$[A-Za-z0-9=,$]{1,60}\$[A-Za-z0-9+/.]{8,128}\$[A-Za-z0-9+/.]{16,128}",
        shapes=("$argon2id$v=19$m=65536,t=3,p=4$<s22>$<s43>",),
        refuses=("$argon2id$",),
    ),
    TokenRule(
        name="framework-hash",
        starts=("pbkdf2_sha", "bcrypt_sha", "pbkdf2:sha", "scrypt:", "argon2$"),
        pattern=LEFT + r"(?:(?:pbkdf2|bcrypt)_sha\d{1,3}\$|pbkdf2:sha\d{1,3}:|scrypt:|argon2\$)[^\s\"'|]{40,256}",
        shapes=(
            "pbkdf2_sha256$600000$<w22>$<s43>=",
            "pbkdf2:sha256:600000$<w16>$<h64>",
            "scrypt:32768:8:1$<w16>$<h128>",
        ),
        refuses=("pbkdf2_sha256", "scrypt: a function"),
    ),
    TokenRule(
        name="ldap-hash",
        starts=("SHA}", "SHA256}", "SHA512}", "MD5}", "CRYPT}"),
        pattern=r"\{(?:S?SHA(?:256|384|512)?|S?MD5|CRYPT)\}[A-Za-z0-9+/=$.]{16,256}",
        shapes=("{SSHA}<s38>==", "{SHA}<s27>=", "{SMD5}<s28>"),
        refuses=("{SHA}", "${SHA}/file"),
    ),
)
