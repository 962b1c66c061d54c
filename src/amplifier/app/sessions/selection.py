"""Which session an application works in: a new one, or a stored one that is resumed."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

import attrs

from amplifier.app.directories import AppDirs
from amplifier.app.plans.base_plans import PlanOptions
from amplifier.app.projects.files import find_unread_files
from amplifier.app.questions.answer_commands import left_lines
from amplifier.app.sessions.composition import Composition, compose, new_record
from amplifier.app.settings.secrets import SecretStore
from amplifier.app.store.choice import FILES_OF_PROJECT, StoreChoice
from amplifier.app.store.interrupted import InterruptedTurn
from amplifier.app.store.records import SessionRecord
from amplifier.app.store.selection import NoSuchSessionError
from amplifier.app.store.store import ProjectSessions
from amplifier_kit.installation import install_command
from amplifier_kit.redaction import SinkRedactor, StrictRedactor
from amplifier_kit.terminal import one_line
from amplifier_sdk.errors import AmplifierError, Problem

if TYPE_CHECKING:
    from amplifier.app.sessions.opened import OpenSession

__all__ = [
    "SelectedSession",
    "SessionSelector",
    "call_notices",
    "has_locks",
    "opening_notices",
    "require_locks",
    "select_session",
]

_LOCKS: Final = "filelock"


@attrs.frozen(kw_only=True)
class SessionSelector:
    """Which session a person asks for.

    Args:
        resume: the id, the beginning of one, or the name of a stored session to resume.
        latest: the latest session of the project is resumed.
        keep: whether a new session is stored; `None` leaves it to the settings.
        with_current_plan: a stored session is resumed with what a new one would be made of.
        choice: where sessions stand.
    """

    resume: str | None = None
    latest: bool = False
    keep: bool | None = None
    with_current_plan: bool = False
    choice: StoreChoice = FILES_OF_PROJECT


@attrs.frozen(kw_only=True)
class SelectedSession:
    """The session that was asked for.

    Args:
        composition: what it is made of.
        record: who it is.
        store: where it is stored; `None` where it is not.
        notices: what the person should know before it is opened, a line each.
    """

    composition: Composition
    record: SessionRecord
    store: ProjectSessions | None
    notices: tuple[str, ...] = ()


def has_locks() -> bool:
    """Tell whether others can be prevented from writing a session at the same time."""
    return find_spec(_LOCKS) is not None


def require_locks() -> None:
    """Refuse to store or change sessions where that cannot be.

    Raises:
        AmplifierError: the package that locks is missing.
    """
    if not has_locks():
        raise AmplifierError(
            f"To keep, continue or change sessions, {_LOCKS} is needed: {install_command('amplifier[cli]')}"
        )


def select_session(
    options: PlanOptions, selector: SessionSelector, dirs: AppDirs
) -> SelectedSession:
    """Find or begin a session; the person's secrets are in the environment afterwards.

    A stored session is resumed with what it was made of. What a project brings and nobody trusted is left out, and
    the notices say so.

    Args:
        options: what the person chose of what it is made of.
        selector: which one.
        dirs: where it works.

    Raises:
        NoSuchSessionError: there is no such session.
        ConfigError: what it is made of has problems.
        AmplifierError: sessions cannot be stored here.
    """
    # Before anything is composed: plans refer to stored keys as to the environment.
    SecretStore.of(dirs).enter()
    store = selector.choice.sessions(dirs)
    stored = _stored(store, selector)
    if stored is not None:
        # most sessions are new ones
        from amplifier.app.sessions.reopened import reopen

        reopened = reopen(
            store, stored, options, dirs, with_current_plan=selector.with_current_plan
        )
        notices = [*_withheld(reopened.composition)]
        notices += [one_line(notice, 1000) for notice in reopened.notices]
        return SelectedSession(
            composition=reopened.composition,
            record=stored,
            store=store,
            notices=tuple(notices),
        )
    composition = compose(options, dirs)
    notices = [*_withheld(composition), *_unread(composition)]
    is_stored = composition.settings.read().sessions.keep
    if selector.keep is not None:
        is_stored = selector.keep
    if selector.keep:
        require_locks()
    elif is_stored and not has_locks():
        notices.append(
            f"This session is not stored; to store sessions: {install_command('amplifier[cli]')}"
        )
        is_stored = False
    return SelectedSession(
        composition=composition,
        record=new_record(composition),
        store=store if is_stored else None,
        notices=tuple(notices),
    )


def opening_notices(
    opened: OpenSession, *, needs_provider: bool = True
) -> Iterator[str]:
    """Report the modules and instructions that an open session has not, and what became of an interrupted turn.

    Args:
        opened: the session.
        needs_provider: whether it matters that a provider is missing.
    """
    yield from _unmounted(opened, needs_provider=needs_provider)
    yield from opened.instructions.warnings()
    if opened.writer is not None:
        for damage in opened.writer.damage:
            yield f"warning: the session is damaged. {one_line(str(damage), 300)}"
    turn = opened.interrupted
    if turn is None:
        return
    yield f"The last turn was interrupted: {one_line(turn.prompt, 100)}"
    yield from call_notices(turn)
    yield from left_lines(opened.left)
    for cut in opened.cut_off:
        record = cut.session.record
        name = one_line(record.agent_name or "A session")
        yield f"{name} was at work, in session {one_line(record.session_id)}"
        yield from call_notices(cut.turn)


def call_notices(turn: InterruptedTurn) -> Iterator[str]:
    """Say which calls of an interrupted turn are in doubt, and which were not started."""
    redactor = SinkRedactor(StrictRedactor())
    if turn.in_doubt:
        made = zip(turn.in_doubt, turn.arguments, strict=True)
        calls = (
            redactor.redact_text(f"{name} {arguments}") for name, arguments in made
        )
        listed = ", ".join(one_line(call, 200) for call in calls)
        yield f"These calls may have had their effect, or not: {one_line(listed, 1000)}"
    if turn.not_started:
        yield f"These calls were not started: {one_line(', '.join(turn.not_started), 300)}"


def _stored(store: ProjectSessions, selector: SessionSelector) -> SessionRecord | None:
    if selector.resume is None and not selector.latest:
        return None
    require_locks()
    if selector.resume is not None:
        return store.find(selector.resume).record
    latest = store.latest()
    if latest is None:
        raise NoSuchSessionError(
            [Problem("", "there is none in this project yet")],
            subject="choice of a session",
        )
    return latest.record


def _unmounted(opened: OpenSession, *, needs_provider: bool) -> Iterator[str]:
    left_out = set[str]()
    if not needs_provider:
        left_out = {spec.module for spec in opened.session.plan.modules["provider"]}
    for failure in opened.session.failures:
        if failure.module_id not in left_out:
            yield f"warning: not mounted: {one_line(str(failure), 1000)}"
    for module in opened.session.skipped:
        if module not in left_out:
            yield f"warning: not mounted: module {module!r} found nothing to mount; a key may be missing"


def _unread(composition: Composition) -> Iterator[str]:
    """Report which files of the project have no effect because no module reads them."""
    unread = find_unread_files(composition.dirs.root, composition.plan)
    files: dict[str, list[str]] = {}
    for file in unread:
        # A plan file is final: no command adds a module to it.
        if composition.is_plan_file:
            remedy = f"name {file.module} in the plan"
        else:
            remedy = file.remedy
        files.setdefault(remedy, []).append(one_line(file.path))
    for remedy, paths in files.items():
        yield f"Not read in this session: {', '.join(paths)}; to use it: {remedy}"


def _withheld(composition: Composition) -> Iterator[str]:
    """Report what the session has not: invalid files of agents, and what a project brings and nobody trusted."""
    for file in composition.invalid:
        yield f"warning: the agent {one_line(file.name, 100)!r} cannot be used. {one_line(file.problem, 500)}"
    withheld = composition.project.withheld
    for decision in withheld:
        yield f"warning: going on without the {decision.kind} of this folder. {one_line(decision.reason, 300)}"
    if withheld:
        yield "'amplifier trust' shows what they are and asks."
