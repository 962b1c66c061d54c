"""Rules that protect paths by their names or their places."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Callable, Collection, Sequence
from fnmatch import translate
from functools import lru_cache
from pathlib import Path
from typing import Final

__all__ = ["OWN_RULE", "SECRET_NAMES", "PathRules", "folded", "path_parts"]

SECRET_NAMES: Final = (
    ".env", ".env.*", "!.env.example", "!.env.sample", "!.env.template", "!.env.dist", ".envrc",
    ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".password-store", "id_rsa*", "id_dsa*", "id_ecdsa*",
    "id_ed25519*", "!id_*.pub", ".netrc", "_netrc", ".pgpass", ".my.cnf", ".git-credentials", ".npmrc", ".pypirc",
    ".htpasswd", ".vault-token", ".*_history", "credentials.json", "credentials.toml", "credentials.y*ml",
    "credentials.db", "access_tokens.db", "application_default_credentials.json", "client_secret*.json",
    "secrets.json", "secrets.toml", "secrets.y*ml", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore",
    "*.kdbx", "*.keychain*", "Login Data", "cookies.sqlite", "logins.json", "key4.db",
)  # fmt: skip
"""Names of files and directories that commonly hold secrets, as rules for names."""


OWN_RULE: Final = "the product's own files"
"""What errors call the rule that nothing lifts."""

_MAX_KNOWN: Final = 10_000


class PathRules:
    """What is protected: names at any depth, and places with all below them.

    Names are compared as a file system without case compares them, and characters that nobody sees do not count.

    Args:
        names: with `*`, `?` and `[…]`; of those that match a name the last one decides, and one that begins
            with `!` says that the name is not protected.
        paths: absolute paths; links in them are resolved each time.
        refuses: whether the real parts of a path are refused whatever the rules allow: the product's own files.
    """

    def __init__(
        self,
        names: Collection[str] = (),
        paths: Sequence[Path] = (),
        refuses: Callable[[Sequence[str]], bool] = lambda _: False,
    ) -> None:
        self._refuses = refuses
        self._names = [
            (_pattern(name), name, name.startswith("!"))
            for name in names
            # the last one that matches decides, so the search goes from the end
        ][::-1]
        self._paths = tuple(paths)
        self._known: dict[str, str | None] = {}

    def name_rule(self, name: str) -> str | None:
        """Return the rule that protects a name, if one does."""
        if name not in self._known:
            # a walk over a large tree asks for the same names again and again;
            # emptied at once, since every answer can be found again
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
            self._known[name] = self._evaluate(folded(name))
        return self._known[name]

    def rule(self, root: Sequence[str], below: Sequence[str]) -> str | None:
        """Return the rule that protects a path, if one does; `root`'s own names do not count.

        Args:
            root: the real parts of a directory that may be used.
            below: the real parts below it.
        """
        for part in below:
            if (found := self.name_rule(part)) is not None:
                return found
        # places count with the root's own parts: a protected place may hold the
        # root
        parts = [folded(part) for part in (*root, *below)]
        for path, protected in self._places():
            if parts[: len(protected)] == protected:
                return str(path)
        # after the rules, so that an error names the person's own rule where one
        # fits
        if self._refuses((*root, *below)):
            return OWN_RULE
        return None

    def rule_inside(self, parts: Sequence[str]) -> str | None:
        """Return the rule that protects a place below a directory, which cannot be moved or deleted then."""
        directory = [folded(part) for part in parts]
        for path, protected in self._places():
            if protected[: len(directory)] == directory:
                return str(path)
        return None

    def below(self, directory: Path) -> Callable[[Sequence[str]], bool]:
        """Return a predicate on the parts of an entry below a directory: whether the entry itself is protected.

        For a walk that does not enter protected directories.
        """
        real = path_parts(str(directory))
        start = [folded(part) for part in real]
        places = {
            tuple(place[len(start) :])
            for _, place in self._places()
            if place[: len(start)] == start
        }

        def is_protected(parts: Sequence[str]) -> bool:
            if self.name_rule(parts[-1]) is not None:
                return True
            if bool(places) and tuple(folded(part) for part in parts) in places:
                return True
            return self._refuses((*real, *parts))

        return is_protected

    def _evaluate(self, name: str) -> str | None:
        for pattern, rule, is_exception in self._names:
            if pattern.match(name):
                if is_exception:
                    return None
                return rule
        return None

    def _places(self) -> list[tuple[Path, list[str]]]:
        return [
            (path, [folded(part) for part in path_parts(os.path.realpath(path))])
            for path in self._paths
        ]


@lru_cache(maxsize=1024)  # each tool of each session has the same rules
def _pattern(rule: str) -> re.Pattern[str]:
    return re.compile(translate(folded(rule.removeprefix("!"))))


def path_parts(path: str) -> list[str]:
    """Split a path into its parts, without empty ones and dots."""
    return [part for part in path.split("/") if part not in ("", ".")]


def folded(name: str) -> str:
    """Return the form that two names share when a file system without case takes them for one."""
    if name.isascii():
        return name.lower()
    # characters of the category Cf show nothing: `.env` with one inside would
    # look the same and name another rule
    visible = "".join(
        character for character in name if unicodedata.category(character) != "Cf"
    )
    return unicodedata.normalize("NFC", visible).casefold()
