"""Cases: what an agent is asked, and what is expected of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final, Generic, Never, cast, overload

import attrs
from typing_extensions import TypeVar

from amplifier_kit.files.documents import read_document
from amplifier_sdk.convert import converter
from amplifier_sdk.errors import ConfigError
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["EvalCase", "load_cases"]

InputT_co = TypeVar("InputT_co", covariant=True)
# a case that expects nothing fits an agent with any output
OutputT_co = TypeVar("OutputT_co", covariant=True, default=Never)
InputT = TypeVar("InputT")
OutputT = TypeVar("OutputT")

_MAX_NAME: Final = 60


def _default_name(case: EvalCase[object, object]) -> str:
    """Name a case after its inputs, so that it keeps its name when others come and go."""
    name = " ".join(str(case.inputs).split())
    if len(name) > _MAX_NAME:
        return f"{name[: _MAX_NAME - 1]}…"
    return name


@attrs.frozen
class EvalCase(Generic[InputT_co, OutputT_co]):
    """One thing to ask.

    Args:
        inputs: what the agent or the function is given.
        expected: the answer; `None` where scorers need none.
        name: what reports and comparisons call it, unique in an experiment; default the beginning of the inputs.
        metadata: JSON data for scorers and readers.
    """

    inputs: InputT_co
    expected: OutputT_co | None = None
    name: str = attrs.field(
        default=attrs.Factory(_default_name, takes_self=True), kw_only=True
    )
    metadata: Mapping[str, JSONValue] = attrs.field(factory=dict, kw_only=True)

    def __str__(self) -> str:
        return self.name


@overload
def load_cases(path: str | Path) -> tuple[EvalCase[str, str], ...]: ...
@overload
def load_cases(
    path: str | Path, *, expected: type[OutputT]
) -> tuple[EvalCase[str, OutputT], ...]: ...
@overload
def load_cases(
    path: str | Path, *, inputs: type[InputT], expected: type[OutputT]
) -> tuple[EvalCase[InputT, OutputT], ...]: ...
def load_cases(
    path: str | Path, *, inputs: type[object] = str, expected: type[object] = str
) -> tuple[EvalCase[object, object], ...]:
    """Read cases from a YAML or JSON file: a list of mappings with the fields of `EvalCase`.

    Args:
        path: the file.
        inputs: the type of the inputs.
        expected: the type of the expected outputs.

    Raises:
        ConfigError: the file cannot be read, or a case does not fit; names the case and the place in it.
    """
    document = read_document(Path(path))
    row = _row_class(inputs, expected)
    try:
        rows = converter().structure(document, list[row])  # type: ignore[valid-type]  # made of the caller's types
        if not rows:
            raise ValueError("there is no case in it")
    except ValueError as error:
        raise ConfigError.of("", str(error), subject=f"file {str(path)!r}") from error
    return tuple(_case(attrs.asdict(each, recurse=False)) for each in rows)


def _row_class(inputs: type[object], expected: type[object]) -> type[object]:
    """Make the class of a file's cases: a generic one's fields say nothing of their types when it is read."""
    optional = cast("type[object]", expected | None)
    name = cast("type[object]", str | None)
    fields = {
        "inputs": attrs.field(type=inputs),
        "expected": attrs.field(type=optional, default=None),
        "name": attrs.field(type=name, default=None),
        "metadata": attrs.field(type=dict[str, JSONValue], factory=dict),
    }
    return attrs.make_class("EvalCase", fields, frozen=True, kw_only=True)


def _case(fields: dict[str, object]) -> EvalCase[object, object]:
    if fields["name"] is None:
        # the default is made of the inputs
        del fields["name"]
    return EvalCase(**fields)  # type: ignore[arg-type]  # read as these types
