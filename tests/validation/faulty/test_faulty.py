"""Every behaviour can fail: for each there is a module that breaks it, and the suites say so."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest
import structlog

from amplifier.validation import leftovers
from amplifier.validation.behaviors import (
    Subject,
    _cancelling,
    _context_persistence,
    _context_storage,
    _hook_answers,
    _hook_data,
    _module_release,
    _module_surroundings,
    behavior,
    behaviors,
    check_behavior,
)
from amplifier.validation.behaviors.subject import SAMPLES
from tests.validation.faulty import contexts, diaries, hooks, modules, orchestrators, providers, tools

FAULTY: Final[dict[str, Subject]] = {
    **modules.FAULTY,
    **tools.FAULTY,
    **providers.FAULTY,
    **hooks.FAULTY,
    **orchestrators.FAULTY,
    **contexts.FAULTY,
    **diaries.FAULTY,
}
IDS: Final = sorted({behavior.id for kind in SAMPLES for behavior in behaviors(kind)})


def _drop(logger: object, method: str, event: structlog.typing.EventDict) -> structlog.typing.ProcessorReturnValue:
    raise structlog.DropEvent


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the checks wait less for what will not come; close what faulty modules leave open."""
    monkeypatch.setattr(behavior, "TRIES", 1)
    monkeypatch.setattr(_cancelling, "PATIENCE", 0.25)
    for module in (_hook_answers, _hook_data):
        monkeypatch.setattr(module, "LONGEST_ANSWER", 0.1)
    monkeypatch.setattr(_module_surroundings, "LONGEST_HOLD", 0.3)
    monkeypatch.setattr(_module_release, "CLEANUP_LIMIT", 0.1)
    monkeypatch.setattr(_context_storage, "MANY", 1_000)
    monkeypatch.setattr(_context_storage, "LONGEST", 0.01)
    monkeypatch.setattr(_context_persistence, "LONGEST_OPENING", 0.0001)
    monkeypatch.setattr(leftovers, "_PATIENCE", 0.1)
    structlog.configure(processors=[_drop])  # tracebacks of faulty modules are slow to draw
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
