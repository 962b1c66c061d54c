"""The command that installs a distribution of Amplifier, for every text that names one.

`PUBLISHED` is the one switch: until the distributions are on a package index, commands install from the clone that this
installation was made from. `python -m scripts.installation` writes the pages of the documentation accordingly.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from shlex import quote, split
from typing import Final
from urllib.parse import unquote, urlsplit

from amplifier_sdk.errors import AmplifierError

__all__ = [
    "PUBLISHED",
    "clone_arguments",
    "clone_folder",
    "install_arguments",
    "install_command",
]

PUBLISHED: Final = False
"""Whether the distributions are on a package index."""

_ROOT: Final = "amplifier"
_PLUGIN: Final = "amplifier-module-"
_REQUIREMENT: Final = re.compile(r"(?P<name>[A-Za-z0-9._-]+)(?:\[(?P<extras>[^]]*)\])?")
_OF_EXTRA: Final = re.compile(r"""extra\s*==\s*['"](?P<extra>[^'"]+)['"]""")


def install_command(*requirements: str) -> str:
    """Return what to type so that distributions of Amplifier are installed beside this one.

    Args:
        requirements: such as `amplifier[cli]` or `amplifier-module-tool-web`.
    """
    pip = "pip install"
    if find_spec("pip") is None:  # an environment that uv made
        pip = "uv pip install"
    if PUBLISHED:
        return " ".join([pip, *map(quote, requirements)])
    clone = clone_folder()
    arguments = " ".join(clone_arguments(*requirements, clone=str(clone or ".")))
    if clone is None:
        return f"in a clone of Amplifier, {pip} {arguments}"
    return f"{pip} {arguments}"


def install_arguments(*requirements: str) -> list[str]:
    """Return what an installer is given so that distributions of Amplifier are installed beside this one.

    Raises:
        AmplifierError: they are on no package index yet, and this installation was made from no clone.
    """
    if PUBLISHED:
        return ["--", *requirements]
    clone = clone_folder()
    if clone is None:
        raise AmplifierError(
            f"This installation was made from no clone; type: {install_command(*requirements)}"
        )
    return split(" ".join(clone_arguments(*requirements, clone=str(clone))))


def clone_folder() -> Path | None:
    """Return the clone that this installation was made from; `None` where it was made from something else."""
    try:
        written = metadata.distribution(_ROOT).read_text("direct_url.json")
        url = urlsplit(json.loads(written or "{}").get("url", ""))
    except (metadata.PackageNotFoundError, ValueError, AttributeError):
        return None
    folder = Path(unquote(url.path))
    if url.scheme == "file" and (folder / "plugins").is_dir():
        return folder
    return None


def clone_arguments(*requirements: str, clone: str = ".") -> Iterator[str]:
    """Yield pip's arguments that install distributions from a clone: `-e` and a folder for each, plugins of extras too.

    Args:
        requirements: such as `amplifier[default]`.
        clone: the clone's folder.
    """
    plugins: dict[str, None] = {}
    extras: dict[str, None] = {}
    for requirement in requirements:
        name, named = _read(requirement)
        if name == _ROOT:
            for extra in named:
                for each, is_plugin in _brought(extra):
                    (plugins if is_plugin else extras)[each] = None
        else:
            plugins[requirement] = None
    if extras or not plugins:
        bracket = f"[{','.join(extras)}]" if extras else ""
        yield f"-e {quote(clone + bracket)}"
    for plugin in plugins:
        yield f"-e {quote(f'{clone}/plugins/{plugin}'.removeprefix('./'))}"


def _brought(extra: str) -> Iterator[tuple[str, bool]]:
    """Yield what an extra brings: plugins, and extras of Amplifier's own that need none of them."""
    needs_more = False
    for requirement in metadata.requires(_ROOT) or ():
        text, _, marker = requirement.partition(";")
        found = _OF_EXTRA.search(marker)
        if found is None or found["extra"] != extra:
            continue
        name, named = _read(text.strip())
        if name.startswith(_PLUGIN):
            yield name, True
        elif name == _ROOT:
            for each in named:
                yield from _brought(each)
        else:
            needs_more = True
    if needs_more:
        yield extra, False


def _read(requirement: str) -> tuple[str, list[str]]:
    match = _REQUIREMENT.match(requirement)
    assert match is not None  # each begins with a name
    return match["name"], [each for each in (match["extras"] or "").split(",") if each]
