"""Writing a new module's package from the templates beside this file."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path, PurePosixPath
from string import Template
from tempfile import mkdtemp
from typing import Final

import attrs

from amplifier.app.scaffold.names import ModuleNames, name_module
from amplifier_sdk.errors import ConfigError

__all__ = ["NewModule", "make_module"]

_ENDING: Final = ".template"
_PACKAGE: Final = "PACKAGE"
"""The folder that stands for the package in the templates."""


@attrs.frozen(kw_only=True)
class NewModule:
    """A package that was made: its names, its folder, and its files, relative to the folder and sorted."""

    names: ModuleNames
    folder: Path
    files: tuple[str, ...]


def make_module(name: str, type: str | None = None, *, parent: Path) -> NewModule:  # noqa: A002  # as in the command
    """Make the package of a new module in a folder of its own; nothing that exists is touched.

    The folder appears whole or not at all.

    Args:
        name: the module's name; see `name_module`.
        type: its type; default the one with which the name begins.
        parent: where the folder is made; it is made as well if it is missing.

    Raises:
        ConfigError: the name or the type cannot be used, or the folder exists or cannot be written.
    """
    names = name_module(name, type)
    folder = parent / names.distribution
    if os.path.lexists(folder):
        problem = "exists; choose another name, or another place with --path"
        raise _refuse(f"{str(folder)!r} {problem}")
    texts = dict(_render(names))
    try:
        parent.mkdir(parents=True, exist_ok=True)
        _write(folder, texts)
    except OSError as error:
        problem = f"cannot be written: {error.strerror or error}"
        raise _refuse(f"{str(folder)!r} {problem}") from error
    return NewModule(names=names, folder=folder, files=tuple(sorted(texts)))


def _refuse(message: str) -> ConfigError:
    return ConfigError.of("path", message, subject="new module")


def _render(names: ModuleNames) -> Iterator[tuple[str, str]]:
    words = ("cls", "distribution", "id", "package", "snake", "title", "word")
    values = {word: getattr(names, word) for word in words}
    templates = files(__package__) / "templates"
    for folder in ("common", names.type):
        for path, template in _templates(templates / folder, PurePosixPath()):
            text = Template(template.read_text("utf-8")).substitute(values)
            place = str(path).replace(_PACKAGE, names.package)
            yield place.replace("NAME", names.snake).removesuffix(_ENDING), text


def _templates(
    folder: Traversable, path: PurePosixPath
) -> Iterator[tuple[PurePosixPath, Traversable]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _templates(entry, path / entry.name)
        elif entry.name.endswith(_ENDING):
            yield path / entry.name, entry


def _write(folder: Path, texts: dict[str, str]) -> None:
    """Write the files into a hidden folder beside the real one, then give it its name."""
    hidden = Path(mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        for path, text in texts.items():
            file = hidden / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, "utf-8")
        hidden.chmod(0o777 & ~_umask())
        os.rename(hidden, folder)
    except BaseException:
        shutil.rmtree(hidden, ignore_errors=True)
        raise


def _umask() -> int:
    """Return the process's umask, which can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
