"""Every behaviour can fail: for each there is a module that breaks it, and the suites say so."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest
import structlog

from amplifier.validation import leftovers
from amplifier.validation.behaviors import (
    Subject,
    _limits,
    behavior,
    behaviors,
    check_behavior,
)
from amplifier.validation.behaviors.subject import SAMPLES
from tests.validation.faulty import (
    contexts,
    diaries,
    hooks,
    modules,
    orchestrators,
    providers,
    tools,
)

FAULTY: Final[dict[str, Subject]] = {
    **modules.FAULTY,
    **tools.FAULTY,
    **providers.FAULTY,
    **hooks.FAULTY,
    **orchestrators.FAULTY,
    **contexts.FAULTY,
    **diaries.FAULTY,
}
LIMITS: Final = {
    "ANSWER": 0.05,
    "CANCELLATION": 0.15,
    "CLEANUP": 0.05,
    "HELD_LOOP": 0.1,
    "HISTORY_OF": 1_000,
    "LONG_HISTORY": 0.01,
    "OPENING": 0.0001,
}
"""Lower limits: a faulty module exceeds these as well, and sooner."""
IDS: Final = sorted({behavior.id for kind in SAMPLES for behavior in behaviors(kind)})


def _drop(
    logger: object, method: str, event: structlog.typing.EventDict
) -> structlog.typing.ProcessorReturnValue:
    raise structlog.DropEvent


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the checks wait less for what will not come; close what faulty modules leave open."""
    monkeypatch.setattr(behavior, "ATTEMPTS", 1)
    for name, value in LIMITS.items():
        monkeypatch.setattr(_limits, name, value)
    monkeypatch.setattr(leftovers, "_GRACE", 0.1)
    # tracebacks of faulty modules are slow to draw
    structlog.configure(processors=[_drop])
    yield
    structlog.reset_defaults()
    modules.RELEASED.set()
    for file in modules.LEAKED:
        file.close()
    modules.LEAKED.clear()
    modules.RELEASED.clear()


def test_there_is_a_faulty_module_for_every_behavior() -> None:
    assert sorted(FAULTY) == IDS


@pytest.mark.parametrize("name", sorted(FAULTY))
async def test_a_faulty_module_fails_the_behavior_that_it_breaks(name: str) -> None:
    subject = FAULTY[name]
    broken = next(found for found in behaviors(subject.kind) if found.id == name)

    outcome = await check_behavior(broken, subject, timeout=8)

    assert (outcome.status, bool(outcome.detail)) == ("failed", True), outcome.detail
