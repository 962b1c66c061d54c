"""One plugin folder: its manifest, and what stands in its folders."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeVar

import attrs

from amplifier_kit.claude_plugins.agents import ClaudeAgent, read_agent
from amplifier_kit.claude_plugins.commandfiles import CommandFile, read_command
from amplifier_kit.claude_plugins.hookfiles import HookEntry, read_hooks
from amplifier_kit.files.documents import read_mapping
from amplifier_kit.open_data import as_text
from amplifier_sdk.errors import ConfigError
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = ["ClaudePlugin", "is_plugin", "path_inside", "read_plugin"]

_MANIFEST: Final = ".claude-plugin/plugin.json"
_PARTS: Final = ("commands", "agents", "skills", "hooks")
_SETTINGS: Final = ("settings.json", "settings.local.json")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_MAX_FILES: Final = 1_000
_MAX_FOLDERS: Final = 8

F = TypeVar("F")


@attrs.frozen(kw_only=True)
class ClaudePlugin:
    """What a plugin folder brings.

    Args:
        name: what its manifest calls it, else the folder's name.
        root: the folder, links resolved.
        description: what its manifest says of it.
        version: its version, as the manifest has it.
        hooks: its hooks, in the order of the file.
        commands: its commands, by file name.
        agents: its agents, by file name.
        skills: the folders in which its skills stand, one folder each.
        problems: what of it cannot be used, and why.
    """

    name: str
    root: Path
    description: str = ""
    version: str = ""
    hooks: tuple[HookEntry, ...] = ()
    commands: tuple[CommandFile, ...] = ()
    agents: tuple[ClaudeAgent, ...] = ()
    skills: tuple[Path, ...] = ()
    problems: tuple[str, ...] = ()


def is_plugin(folder: Path) -> bool:
    """Tell whether a folder has a manifest, or a part of a plugin."""
    return (folder / _MANIFEST).is_file() or any(
        (folder / part).is_dir() for part in _PARTS
    )


def read_plugin(folder: Path, name: str | None = None) -> ClaudePlugin:
    """Read a plugin folder, or a `.claude` folder, whose hooks stand in its settings.

    A command or agent that cannot be read is a problem, and the others are there.

    Args:
        folder: the folder.
        name: what to call it; default what its manifest says, else the folder's name.

    Raises:
        ConfigError: the manifest or a hook cannot be read.
    """
    root = Path(folder).resolve()
    if not root.is_dir():
        raise ConfigError.of(
            "", "there is no such folder", subject=f"plugin {str(folder)!r}"
        )
    if (root / _MANIFEST).is_file():
        manifest = read_mapping(root / _MANIFEST)
    else:
        manifest = {}
    reader = _Reader(
        root=root, manifest=manifest, subject=f"file {str(root / _MANIFEST)!r}"
    )
    named = name or manifest.get("name") or root.name.lstrip(".")
    if not isinstance(named, str) or not _NAME.fullmatch(named):
        problem = f"letters, digits, '.', '_' and '-', 64 at most; got {named!r:.80}"
        raise ConfigError.of("name", problem, subject=reader.subject)
    # read first and not as a problem: a hook that guards must not be missing
    # silently
    hooks = tuple(reader.hooks())
    return ClaudePlugin(
        name=named,
        root=root,
        description=as_text(manifest.get("description")),
        version=as_text(manifest.get("version")),
        hooks=hooks,
        commands=tuple(reader.each("commands", read_command)),
        agents=tuple(reader.each("agents", lambda path, _: read_agent(path))),
        skills=tuple(reader.folders("skills")),
        problems=tuple(reader.problems),
    )


@attrs.define(eq=False)
class _Reader:
    """Reads the parts of one plugin, and notes what is wrong with them."""

    root: Path
    manifest: JSONObject
    subject: str
    problems: list[str] = attrs.field(factory=list)

    def hooks(self) -> Iterator[HookEntry]:
        """Yield the hooks of the manifest, of `hooks/hooks.json`, and of settings."""
        declared = self.manifest.get("hooks")
        documents: list[tuple[JSONObject, str]] = []
        named: list[Path] = []
        if isinstance(declared, Mapping):
            documents.append((dict(declared), f"hooks of {self.subject}"))
        elif declared is not None:
            named = self._named("hooks", declared)
        files = [self.root / "hooks" / "hooks.json", *named]
        if not self.manifest:
            files += [self.root / name for name in _SETTINGS]
        for path in dict.fromkeys(
            path for path in files if path in named or path.is_file()
        ):
            document = read_mapping(path)
            if path.name in _SETTINGS:
                if document.get("permissions"):
                    declared = "'permissions' have no effect here; write them as rules of hooks-approval"
                    self.problems.append(f"file {str(path)!r}: {declared}")
                if "hooks" not in document:
                    continue
            documents.append((document, f"file {str(path)!r}"))
        for document, subject in documents:
            entries, unknown = read_hooks(document, subject)
            self.problems += unknown
            yield from entries

    def each(self, part: str, read: Callable[[Path, str], F]) -> Iterator[F]:
        """Yield what each Markdown file of a part holds, by name; what cannot be read is noted."""
        count = 0
        for place in self._places(part):
            for path in [place] if place.is_file() else _markdown(place):
                count += 1
                if count > _MAX_FILES:
                    self.problems.append(
                        f"{place}: of more than {_MAX_FILES} files the rest is left out"
                    )
                    return
                folder = ""
                if not place.is_file():
                    folder = ":".join(path.relative_to(place).parts[:-1])
                try:
                    yield read(path, folder)
                except ConfigError as error:
                    self.problems.append(" ".join(str(error).split()))

    def folders(self, part: str) -> Iterator[Path]:
        """Yield the folders of a part."""
        yield from (place for place in self._places(part) if place.is_dir())

    def _places(self, part: str) -> list[Path]:
        declared = self.manifest.get(part)
        named: list[Path] = []
        if declared is not None:
            named = self._named(part, declared)
        return list(
            dict.fromkeys(path for path in (self.root / part, *named) if path.exists())
        )

    def _named(self, part: str, declared: JSONValue) -> list[Path]:
        """Return the paths that the manifest names.

        Raises:
            ConfigError: one is no path, leads out of the plugin, or to nothing.
        """
        if isinstance(declared, list):
            entries = declared
        else:
            entries = [declared]
        found = []
        for entry in entries:
            path = path_inside(self.root, entry)
            if path is None or not path.exists():
                problem = (
                    f"a path to something in the plugin, as ./{part}; got {entry!r:.80}"
                )
                raise ConfigError.of(part, problem, subject=self.subject)
            found.append(path)
        return found


def _markdown(folder: Path, depth: int = 0) -> Iterator[Path]:
    """Yield the Markdown files below a folder, in order; hidden ones and links to folders are passed over."""
    for path in sorted(folder.iterdir()):
        if path.name.startswith("."):
            continue
        if path.is_dir():
            # a link may lead to a folder above, and the walk would not end
            if depth < _MAX_FOLDERS and not path.is_symlink():
                yield from _markdown(path, depth + 1)
        elif path.suffix == ".md" and path.name.upper() != "README.MD":
            yield path


def path_inside(folder: Path, named: object, base: Path | None = None) -> Path | None:
    """Return the file or folder that is named, links resolved; blocks.

    Args:
        folder: the folder that it has to be in.
        named: what somebody else wrote there.
        base: what a relative path is relative to; default `folder`.

    Returns:
        `None` where it is no text that a path can be, or leads out of the folder.
    """
    if not isinstance(named, str):
        return None
    try:
        # resolved before it is compared: `..` and links may lead out
        path = Path(base or folder, named).resolve()
        # what is not there may be made later, and is no other place then
        with suppress(FileNotFoundError):
            path.lstat()
    except (OSError, ValueError):
        # longer than a path may be, below a file, a NUL, or half of a surrogate pair
        return None
    if path.is_relative_to(folder.resolve()):
        return path
    return None
