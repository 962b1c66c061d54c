"""How long an injected text may be."""

from __future__ import annotations

import pytest

from amplifier import ModuleCoordinator
from amplifier_kit.injections import longest_injection


@pytest.mark.parametrize(
    ("session", "longest"),
    [
        pytest.param({"injection_size_limit": 500}, 500, id="small-limit"),
        pytest.param({"injection_size_limit": 90_000}, 6_000, id="large-limit"),
        pytest.param({"injection_size_limit": None}, 6_000, id="no-limit"),
        pytest.param({}, 6_000, id="usual-limit"),
        pytest.param(None, 6_000, id="no-session"),
    ],
)
def test_an_injection_is_as_long_as_wanted_and_allowed(
    session: object, longest: int
) -> None:
    coordinator = ModuleCoordinator(config={"session": session})

    assert longest_injection(coordinator, 6_000) == longest
