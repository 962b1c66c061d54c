"""Commands in Markdown: front matter, and a prompt with places for arguments, files and the output of commands."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, Literal

import attrs

from amplifier_kit.claude_plugins.loosefields import parse_loosely
from amplifier_kit.files.documents import named_errors, read_text
from amplifier_sdk.errors import ConfigError

__all__ = [
    "CommandFile",
    "PromptPart",
    "command_patterns",
    "parse_command",
    "read_command",
]

_FIELDS: Final = frozenset(
    {
        "description",
        "allowed-tools",
        "model",
        "argument-hint",
        "disable-model-invocation",
        "name",
    }
)
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_DIRECTIVE: Final = re.compile(
    r"(?<![^\s(\[*])(?:!(?: ?)`(?P<run>[^`\n]+)`|@(?P<file>[^\s`'\"<>|@]+))"
)
_TRAILING: Final = ".,;:!?)]}*"
_PLACE: Final = re.compile(r"\$(?:ARGUMENTS\b|([1-9][0-9]?)(?![0-9]))")
_LONGEST_DESCRIPTION: Final = 200


@attrs.frozen(kw_only=True)
class PromptPart:
    """A piece of a prompt: text as it stands, a shell text whose output stands there, or a file whose content does."""

    kind: Literal["text", "run", "file"]
    text: str


@attrs.frozen(kw_only=True)
class CommandFile:
    """A command.

    Args:
        name: the file's name without its end.
        body: the prompt, with its places.
        folder: the folders between `commands` and the file, joined by `:`.
        description: what it does; default the first line of the prompt.
        argument_hint: what to type behind it.
        allowed_tools: the tools it names, `Bash(git:*)` among them; `None` where it names none.
        model: the model that answers it, as the file names it.
        is_manual: whether a person alone may use it.
    """

    name: str
    body: str
    folder: str = ""
    description: str = ""
    argument_hint: str = ""
    allowed_tools: tuple[str, ...] | None = None
    model: str | None = None
    is_manual: bool = False

    def parts(self, arguments: str) -> tuple[PromptPart, ...]:
        """Return the prompt in pieces, with the arguments in their places; what arguments say is never a directive.

        `$ARGUMENTS` is all that was typed. Of `$1`, `$2`, … each is one word, and the highest the rest. What has no
        place stands at the end.
        """
        body = self.body.strip("\n")
        highest = max((int(n) for n in _PLACE.findall(body) if n), default=0)
        found = [
            PromptPart(
                # filled in after the parts were found: an argument such as !`rm`
                # stays a text
                kind=part.kind,
                text=_filled(part.text, arguments, highest),
            )
            for part in _split_parts(body)
        ]
        if arguments.strip() and not _PLACE.search(body):
            found.append(
                PromptPart(kind="text", text=f"\n\nARGUMENTS: {arguments.strip()}")
            )
        return tuple(found)

    def takes_arguments(self) -> bool:
        """Tell whether a shell text or the name of a file is made of arguments."""
        return any(
            part.kind != "text" and _PLACE.search(part.text)
            for part in _split_parts(self.body)
        )

    def allowed_programs(self) -> tuple[str, ...]:
        """Return the beginnings of shell commands that `allowed-tools` names; `$` ends one that is whole.

        `Bash` alone, and `Bash(*)`, name no program.
        """
        return command_patterns(self.allowed_tools or ())


def command_patterns(entries: Iterable[str]) -> tuple[str, ...]:
    """Return the beginnings of shell commands that entries such as `Bash(git:*)` name; `$` ends one that is whole."""
    found = []
    for entry in entries:
        inner = re.fullmatch(r"Bash\((.+)\)", entry.strip(), re.DOTALL)
        if inner is None:
            continue
        words, star, _ = inner[1].partition(":*")
        if not star and words.endswith(" *"):
            words, star = words[:-2], "*"
        if (
            words.strip()
            and words.strip() != "*"
            and not re.search(r"[*?|\[\]$]", words)
        ):
            found.append(words.strip() if star else f"{words.strip()} $")
    return tuple(found)


def read_command(path: Path, folder: str = "") -> CommandFile:
    """Read the file of a command.

    Args:
        path: the Markdown file.
        folder: the folders between `commands` and the file, joined by `:`.

    Raises:
        ConfigError: the file cannot be read, or its name is none for a command.
    """
    return parse_command(read_text(path), path, folder)


def parse_command(text: str, path: Path, folder: str = "") -> CommandFile:
    """Read what the file of a command holds.

    Args:
        text: its content.
        path: the Markdown file, which gives the command its name.
        folder: the folders between `commands` and the file, joined by `:`.

    Raises:
        ConfigError: the text is not understood, or the file's name is none for a command.
    """
    if not _NAME.fullmatch(path.stem):
        problem = f"{path.stem!r:.80} is no name for a command: letters, digits, '.', '_' and '-', 64 at most"
        raise ConfigError.of("", problem, subject=f"file {str(path)!r}")
    with named_errors(f"file {str(path)!r}"):
        read = parse_loosely(text, _FIELDS)
    first = next(
        (
            line.lstrip("# ").strip()
            for line in read.body.splitlines()
            if line.strip("# \t")
        ),
        "",
    )
    return CommandFile(
        name=path.stem,
        body=read.body,
        folder=folder,
        description=" ".join((read.text("description") or first).split())[
            :_LONGEST_DESCRIPTION
        ],
        argument_hint=" ".join(read.text("argument-hint").split())[
            :_LONGEST_DESCRIPTION
        ],
        allowed_tools=read.words("allowed-tools"),
        model=read.text("model") or None,
        is_manual=read.flag("disable-model-invocation"),
    )


def _split_parts(body: str) -> Iterator[PromptPart]:
    end = 0
    for found in _DIRECTIVE.finditer(body):
        yield PromptPart(kind="text", text=body[end : found.start()])
        end = found.end()
        if found["run"] is not None:
            yield PromptPart(kind="run", text=found["run"])
            continue
        name = found["file"].rstrip(_TRAILING)
        end -= len(found["file"]) - len(name)
        yield (
            PromptPart(kind="file", text=name)
            if name
            else PromptPart(kind="text", text="@")
        )
    yield PromptPart(kind="text", text=body[end:])


def _filled(text: str, arguments: str, highest: int) -> str:
    try:
        words = shlex.split(arguments)
    except ValueError:  # a quotation mark without its second one
        words = arguments.split()

    def fill(place: re.Match[str]) -> str:
        if place[1] is None:
            return arguments.strip()
        number = int(place[1])
        # the last place takes the rest, so that a sentence needs no quotes
        if number == highest:
            return " ".join(words[number - 1 :])
        if number <= len(words):
            return words[number - 1]
        return ""

    return _PLACE.sub(fill, text)
