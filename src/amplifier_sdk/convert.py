"""Values to JSON data and back: messages, requests, responses, results, and whatever a tool returns.

Fields keep their names. A field that is `None` and defaults to it is left out; `extras` stand among the other
fields. Decimals become text, enums their values, paths, dates, durations and ids their text; of a `Secret`
nothing is written but that it is withheld.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar, cast

from amplifier_sdk.jsontypes import JSONValue

if TYPE_CHECKING:
    from cattrs import Converter

__all__ = ["converter", "from_json", "to_json"]

C = TypeVar("C")


def converter() -> Converter:
    """Return a cattrs converter that reads and writes as `from_json` and `to_json` do, for hooks of your own.

    Each call returns a new one, so that a hook changes nothing for others; keep it, since it makes its readers
    once for each class. What does not fit is a `ValueError` that names every problem's path.
    """
    # cattrs is for those who bring hooks
    from amplifier_sdk._converter import make_converter

    return make_converter()


def to_json(value: object) -> JSONValue:
    """Turn a value into JSON data; what it holds is copied.

    Raises:
        TypeError: something in it has no JSON form; the message names its path and type.
        ValueError: it holds a number that is not finite, or it holds itself.
    """
    from amplifier_sdk._writers import write  # not every process writes values

    try:
        return cast("JSONValue", write(value))
    except RecursionError:
        # the writer keeps no list of where it is: a value in itself ends here
        raise ValueError(
            f"A {type(value).__name__} that holds itself, or nests too deep, has no JSON form"
        ) from None


def from_json(data: JSONValue, cls: type[C]) -> C:
    """Turn JSON data into a value of a class that `to_json` wrote.

    Fields that the class does not know go into its `extras` when it has them.

    Args:
        data: the object, as JSON reads it.
        cls: an attrs class, a dataclass or a TypedDict.

    Raises:
        ValueError: the data does not fit the class; the message names every problem's path.
        TypeError: the data is for an annotation without a JSON form.
    """
    from amplifier_sdk._reader.loaders import (
        loader_of,  # not every process reads values
    )
    from amplifier_sdk._reader.readers import MisfitError

    try:
        return cast("C", loader_of(cls)(data))
    except MisfitError as misfit:
        # only a mistake needs it
        from amplifier_sdk._reader.confidential import without_secrets

        problems, withheld = without_secrets(cls, misfit.problems)
        cause = misfit.__cause__
        if withheld:
            cause = None
        raise ValueError(
            f"This is no {cls.__name__}: {MisfitError(problems)}"
        ) from cause
