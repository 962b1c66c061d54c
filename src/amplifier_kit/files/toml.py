"""Projects' files in TOML, which others wrote: read as far as that costs little.

The reader of the standard library takes time with the square of the parts of a dotted key, and one call for each
level of nesting.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Final

from amplifier_kit.files.documents import read_text
from amplifier_sdk.errors import ConfigError

__all__ = ["read_toml"]

_LONG_KEY: Final = re.compile(r"(?<![\w\"'.-])(?:[\w\"'-]++[ \t]*+\.[ \t]*+){500}")


def read_toml(path: Path) -> dict[str, object]:
    """Read a file of TOML.

    Raises:
        ConfigError: it cannot be read, is no regular file of at most 4 MB of UTF-8, or is no TOML.
    """
    text = read_text(path)
    try:
        # possessive, so that the check itself takes linear time
        if _LONG_KEY.search(text):
            raise ValueError("a key has more than 500 parts")
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        problem = "it nests too deep"
        if isinstance(error, ValueError):
            problem = str(error)
        raise ConfigError.of("", problem, subject=f"file {str(path)!r}") from error
