"""Kinds of arguments: what a word must be so that a program may be given it unasked."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from amplifier_kit.shell.awk import is_plain_awk
from amplifier_kit.shell.path_policy import PathPolicy, may_find_secret
from amplifier_kit.shell.programs import is_plain_sed
from amplifier_kit.shell.risky_variables import is_steering
from amplifier_kit.shell.scripts import Word, word_of

__all__ = ["KINDS", "Kind", "kind_fits"]

Kind: TypeAlias = Callable[[Word, PathPolicy], bool]
"""Decides whether a word is of a kind, by where paths lead."""

_MAX_BYTES: Final = 100 * 1024 * 1024
_UNITS: Final = {"": 1, "b": 512, "k": 1024, "m": 1024**2, "g": 1024**3}
_COUNT: Final = re.compile(r"[-+]?(\d{1,15})([bkmg]?)(?:i?b)?", re.IGNORECASE)
_WIDE: Final = re.compile(r"%[^A-Za-z%]*(?:\d{5}|\*)")
_JQ_REACHING: Final = re.compile(
    r"\$ENV|\$__|\b(?:env|import|include|input_filename|input_line_number|load|strenv|envsubst|range|repeat|until"
    r"|recurse|while|limit|def|getpath|modulemeta|get_search_list|load_str|filename|system|eval)\b"
)
_JQ_REPEATING: Final = re.compile(
    r"\"\s*\*|\*\s*\"|\*\s*(?:\d{5}|[\d.]+[eE])|\*[^|,;]*\*"
)
"""A text that is repeated a number of times."""

_DEFINITION: Final = re.compile(
    r"([A-Za-z_][\w.]*)\??:?=(-[\w.,=/:+*-]*(?: -?[\w.,=/:+*-]+)*|[\w.,/:+@%-]*)"
)
_SCRIPTED: Final = ("/dev/", "/proc/")


def kind_fits(kind: str, word: Word, path_policy: PathPolicy) -> bool:
    """Whether a word certainly is of a kind; `{a,b}` is the kind of these two words."""
    if kind.startswith("{"):
        return set(kind[1:-1].split(",")).issuperset(word.values)
    return KINDS[kind](word, path_policy)


def _matches(pattern: str) -> Kind:
    compiled = re.compile(pattern, re.DOTALL)
    return lambda word, _: all(
        compiled.fullmatch(value) is not None for value in word.values
    )


def _is_text(word: Word, _: PathPolicy) -> bool:
    return bool(word.values)


def _is_bounded(word: Word, _: PathPolicy) -> bool:
    """A number of bytes or lines that fills no disk."""
    for value in word.values:
        found = _COUNT.fullmatch(value)
        # without a unit it may be lines or bytes; counted as bytes it stays a
        # bound
        if found is None or int(found[1]) * _UNITS[found[2].lower()] > _MAX_BYTES:
            return False
    return True


def _is_format(word: Word, _: PathPolicy) -> bool:
    """A format of `printf` that makes no text longer than a few thousand characters."""
    return word.is_known and not any(map(_WIDE.search, word.values))


def _is_read(word: Word, path_policy: PathPolicy) -> bool:
    return (
        path_policy.may_read(word)
        and not _names_list(word)
        and not any(map(path_policy.is_endless, word.values))
    )


def _names_list(word: Word) -> bool:
    """Whether a program may take a word for a file with more arguments in it, as compilers and `nm` do."""
    return any(value.startswith("@") for value in word.values)


def _is_source(word: Word, path_policy: PathPolicy) -> bool:
    """A file that is read, and that a program does not take for a list of options, a command or another machine's."""
    return _is_read(word, path_policy) and not any(
        value.startswith("+") or ":" in value for value in word.values
    )


def _is_tree(word: Word, path_policy: PathPolicy) -> bool:
    return _is_read(word, path_policy) and not any(
        map(path_policy.holds_secret, word.values)
    )


def _is_copied(word: Word, path_policy: PathPolicy) -> bool:
    """A tree that brings no repository along: with its settings git would run what they name."""
    return _is_tree(word, path_policy) and not any(
        map(path_policy.holds_repository, word.values)
    )


def _is_kept(word: Word, path_policy: PathPolicy) -> bool:
    """Where something is moved or linked to: not a name under which it would be removed or written over unasked."""
    return _is_worked_on(word, path_policy) and not any(
        map(path_policy.has_scrap_name, word.values)
    )


def _is_shown(word: Word, path_policy: PathPolicy) -> bool:
    return _is_read(word, path_policy) and not any(
        path_policy.holds_secret(value, hidden=False) for value in word.values
    )


def _is_listed(word: Word, path_policy: PathPolicy) -> bool:
    return path_policy.may_read(word)


def _is_written(word: Word, path_policy: PathPolicy) -> bool:
    return path_policy.may_write(word) and not _names_list(word)


def _is_worked_on(word: Word, path_policy: PathPolicy) -> bool:
    return path_policy.may_use(word) and not _names_list(word)


def _is_scrap(word: Word, path_policy: PathPolicy) -> bool:
    return path_policy.may_write(word) and all(map(path_policy.is_scrap, word.values))


def _is_script(word: Word, path_policy: PathPolicy) -> bool:
    """A file of the folder that a program runs."""
    return path_policy.may_use(word) and not any(
        value.startswith(_SCRIPTED) or ":" in value or value == "-"
        for value in word.values
    )


def _is_argument(word: Word, path_policy: PathPolicy) -> bool:
    """An argument of a program of the folder: it may name what the program may use."""
    return path_policy.may_use(word) and not any(
        value.startswith(_SCRIPTED) for value in word.values
    )


def _is_branch(word: Word, path_policy: PathPolicy) -> bool:
    """A revision that git cannot take for a file, whose changes it would discard."""
    return _REVISION(word, path_policy) and not any(
        path_policy.exists(value) or _FILE_NAME.search(value) is not None
        for value in word.values
    )


def _is_classpath(word: Word, path_policy: PathPolicy) -> bool:
    parts = [part for value in word.values for part in value.split(":") if part]
    return all(path_policy.may_use(word_of(part)) for part in parts)


def _is_definition(word: Word, _: PathPolicy) -> bool:
    """A variable of a build and a value that no shell takes apart, or the name of what is built."""
    for value in word.values:
        found = _DEFINITION.fullmatch(value)
        if found is None and (
            _TARGET.fullmatch(value) is None or value.startswith("/")
        ):
            return False
        if found is not None and (
            found[1] in _OF_MAKE
            or (is_steering(found[1]) and found[1] not in _OF_COMPILERS)
        ):
            return False
    return True


def _is_sed(word: Word, _: PathPolicy) -> bool:
    return word.static is not None and is_plain_sed(word.static)


def _is_awk(word: Word, _: PathPolicy) -> bool:
    return word.static is not None and is_plain_awk(word.static)


def _is_jq(word: Word, _: PathPolicy) -> bool:
    # `"x" * 100000000` fills the memory without reading a file
    if word.static is not None and _JQ_REPEATING.search(word.static):
        return False
    return (
        word.static is not None
        and _JQ_REACHING.search(re.sub(r'"[^"\\(]*"|\.\w+', "", word.static)) is None
    )


def _is_yq(word: Word, path_policy: PathPolicy) -> bool:
    """A program of jq's that is no file either: one of the programs called yq reads a file in its place."""
    return _is_jq(word, path_policy) and path_policy.may_read(word)


def _is_awk_operand(word: Word, path_policy: PathPolicy) -> bool:
    return _is_read(word, path_policy) and not any(
        value.startswith("/inet") for value in word.values
    )


def _is_path_like(word: Word, path_policy: PathPolicy) -> bool:
    """An archive to be written: a colon would be another machine."""
    return path_policy.may_write(word) and not any(
        ":" in value for value in word.values
    )


def _is_directory(word: Word, path_policy: PathPolicy) -> bool:
    """A folder that a program goes to before it does anything."""
    return word.static is not None and not word.is_pattern and path_policy.may_use(word)


_REVISION: Final = _matches(r"-|@|[\w@^~][\w./@{}^~+-]*")
_FILE_NAME: Final = re.compile(r"\.[A-Za-z]\w*$|/$")
_TARGET: Final = re.compile(r"[\w.][\w./@%+-]*")
_OF_MAKE: Final = frozenset(
    {"SHELL", ".SHELLFLAGS", "MAKEFLAGS", "MAKEFILES", "MAKE", "VPATH"}
)
_OF_COMPILERS: Final = frozenset(
    {"CC", "CXX", "CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS"}
)

_GLOB: Final = _matches(r"!?[^\0./][^\0]*|!?\*\.[^\0]*")


def _is_glob(word: Word, path_policy: PathPolicy) -> bool:
    """A pattern of files; one that names hidden files makes a search look into them, unless it leaves them out."""
    return _GLOB(word, path_policy) and not any(
        not value.startswith("!")
        and (path_policy.is_secret(value) or may_find_secret(value))
        for value in word.values
    )


KINDS: Final[Mapping[str, Kind]] = {
    "ARCHIVE": _is_path_like,
    "ARG": _is_argument,
    "ADDRESS": _matches(r"(?:https?://)?[\w.-]+(?::\d+)?(?:[/?#][^\0{}\[\]]*)?"),
    "AWK": _is_awk,
    "AWKFILE": _is_awk_operand,
    "BRANCH": _is_branch,
    "CLASSPATH": _is_classpath,
    "COPIED": _is_copied,
    "COUNT": _is_bounded,
    "DATE": _matches(r"\+.*"),
    "DEFINE": _is_definition,
    "DEPENDENCY": _matches(
        r"(?:@[\w-][\w.-]*/)?[\w-][\w.-]*(?:\[[\w,-]+\])?(?:(?:@|[=<>~]=|[<>])[\w.^~<>=*-]+)?(?<!\.whl)(?<!\.gz)(?<!\.zip)"
    ),
    "DIR": _is_directory,
    "EDIT": _is_worked_on,
    "FORMAT": _is_format,
    "FORMATTED": _is_worked_on,
    "GLOB": _is_glob,
    "HEADER": _matches(r"[\w-]+:[^\0]*"),
    "HOST": _matches(r"\w[\w.-]*"),
    "IMAGE": _matches(r"\w[\w./:@-]*"),
    "INTEGER": _matches(r"-?\d{1,6}"),
    "INTO": _is_worked_on,
    "JQ": _is_jq,
    "KEPT": _is_kept,
    "LINKED": _is_written,
    "LIST": _is_listed,
    "LISTING": _is_listed,
    "MODE": _matches(r"0?[0-7]{3}|[ugoa]*[+-][rwx]+"),
    "MOVED": _is_written,
    "NAME": _matches(r"[A-Za-z_]\w*"),
    "NUMBER": _matches(r"[-+]?\d{1,7}[\d.,:]{0,8}[a-zA-Z%]{0,2}"),
    "PACKAGE": _matches(r"\.(?:/[\w./-]*)?|all|std|[a-z]\w*(?:/\w+)*(?:\.go)?"),
    "PLUGIN": _matches(r"no:\w+"),
    "PROJECT": _matches(r"\.(?:\[[\w,-]+\])?|\./[\w./-]+(?:\[[\w,-]+\])?"),
    "READ": _is_read,
    "REFSPEC": _matches(r"[+:]?[\w@^~][\w./@{}^~+-]*(?::[\w./-]+)?"),
    "REV": _REVISION,
    "SCRAP": _is_scrap,
    "SCRIPT": _is_script,
    "SED": _is_sed,
    "SETTING": _matches(r"[A-Za-z][\w-]*\.[\w./@%+-]*[\w-]"),
    "SET": _matches(r"[A-Za-z_]\w*(?:=[^\0$`(\[\\]*)?"),
    "SHOWN": _is_shown,
    "SMALL": _matches(r"\d{1,4}"),
    "SOURCE": _is_source,
    "SUFFIX": _matches(r"\.?\w+~?"),
    "SUM": _matches(r"[\w\s=+*/%<>!&|-]+"),
    "SWITCH": _matches(r"[\w=+.-]*"),
    "TARGET": _matches(r"[\w.][\w./@%+:=-]*"),
    "TEXT": _is_text,
    "TREE": _is_tree,
    "WORD": _matches(r"[\w][\w.,:@+-]*"),
    "WORK": _is_worked_on,
    "WRITE": _is_written,
    "YQ": _is_yq,
}
"""By name."""
