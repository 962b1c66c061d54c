"""What no error may show: the values of keys that are marked as secret, or whose names say that they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, get_args

from amplifier_sdk._reader.annotations import is_named_alias
from amplifier_sdk._reader.problems import Path
from amplifier_sdk._reader.records import fields_of, is_record
from amplifier_sdk.secret import Secret, is_secret_name

__all__ = ["without_secrets"]

_NOT_SHOWN: Final = "not valid (not shown)"


def without_secrets(
    cls: type, problems: Sequence[tuple[Path, str]]
) -> tuple[list[tuple[Path, str]], bool]:
    """Take the values out of what is wrong with secret keys, and report whether there were any.

    Args:
        cls: the class that the problems are about: it says which keys are secret.
        problems: each one's path and message.
    """
    shown = [(path, _shown(cls, path, message)) for path, message in problems]
    return shown, shown != list(problems)


def _shown(cls: type, path: Path, message: str) -> str:
    # such messages name keys, and hold no value
    if message.startswith(("missing", "unknown")) or not _is_secret(cls, path):
        return message
    # the readers' messages say at their end what there was
    expected, got, _ = message.partition(", got ")
    if got:
        return f"{expected}{got}something else (not shown: it may be a secret)"
    return _NOT_SHOWN


def _is_secret(cls: type, path: Path) -> bool:
    if any(isinstance(part, str) and is_secret_name(part) for part in path):
        return True
    annotations: list[object] = [cls]
    for part in path:
        annotations = [
            found for annotation in annotations for found in _inside(annotation, part)
        ]
        if any(
            part is Secret for annotation in annotations for part in _parts(annotation)
        ):
            return True
    return False


def _inside(annotation: object, part: str | int) -> Iterator[object]:
    """Yield the annotations of what stands under a key or index of a value."""
    for cls in _parts(annotation):
        if not isinstance(cls, type) or not is_record(cls):
            yield from get_args(cls)
        elif isinstance(part, str):
            yield from (
                annotation for key, annotation, *_ in fields_of(cls) if key == part
            )


def _parts(annotation: object) -> Iterable[object]:
    """Yield an annotation and all that it is made of, but not the fields of classes."""
    yield annotation
    inner = (
        [getattr(annotation, "__value__", None)]
        if is_named_alias(annotation)
        else get_args(annotation)
    )
    for part in inner:
        yield from _parts(part)
