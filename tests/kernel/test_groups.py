"""Exception groups of one become the error; several stay a group."""

from __future__ import annotations

import pytest

from amplifier.kernel.groups import ungrouped


def test_one_error_is_raised_as_itself() -> None:
    error = ValueError("no")

    with pytest.raises(ValueError, match="no") as raised, ungrouped():
        raise ExceptionGroup("group", [error])

    assert raised.value is error


def test_several_errors_stay_a_group() -> None:
    group = ExceptionGroup("group", [ValueError("a"), TypeError("b")])

    with pytest.raises(ExceptionGroup) as raised, ungrouped():
        raise group

    assert raised.value is group
