"""Which session a command works in: a new one, or a stored one that goes on."""

from __future__ import annotations

import attrs

from amplifier.app.base_plans import PlanOptions
from amplifier.app.directories import Places
from amplifier.app.reopened import reopen
from amplifier.app.session_plan import Composition, compose
from amplifier.app.sessions import OpenSession, new_record
from amplifier.app.settings.secrets import SecretStore
from amplifier.app.store.records import SessionRecord
from amplifier.app.store.store import SessionStore
from amplifier.app.unread_files import find_unread_files
from amplifier.cli._sessions import (
    calls_of,
    has_locks,
    moved_reported,
    report_moved,
    require_locks,
)
from amplifier.cli._terminal import notice, one_line
from amplifier_sdk.errors import ConfigError, Problem

__all__ = ["Chosen", "Wanted", "choose_session", "tell_opening"]


@attrs.frozen(kw_only=True)
class Wanted:
    """Which session a person asks for.

    Args:
        resume: the id, the beginning of one, or the name of a stored session to resume.
        latest: the latest session of the project goes on.
        keep: whether a new session is stored; `None` leaves it to the settings.
        with_current_plan: a stored session is resumed with what a new one would be made of.
    """

    resume: str | None = None
    latest: bool = False
    keep: bool | None = None
    with_current_plan: bool = False


@attrs.frozen(kw_only=True)
class Chosen:
    """The session that was asked for: what it is made of, who it is, and where it is stored if it is."""

    composition: Composition
    record: SessionRecord
    store: SessionStore | None


def choose_session(options: PlanOptions, wanted: Wanted) -> Chosen:
    """Find or begin a session of the working directory; the person's secrets are in the environment afterwards.

    A stored session is resumed with what it was made of. What a project brings and nobody trusted is reported and left
    out.

    Raises:
        ConfigError: there is no such session, or what it is made of has problems.
        AmplifierError: sessions cannot be stored here.
    """
    places = Places.find()
    # Before anything is composed: plans refer to stored keys as to the environment.
    SecretStore.of(places).enter()
    store = SessionStore.of(places)
    stored = _stored(store, wanted)
    if stored is not None:
        reopened = reopen(
            store, stored, options, places, with_current_plan=wanted.with_current_plan
        )
        _report_withheld(reopened.composition)
        for told in reopened.notices:
            notice(one_line(told, 1000))
        return Chosen(composition=reopened.composition, record=stored, store=store)
    composition = compose(options, places)
    _report_withheld(composition)
    _report_unread(composition)
    return Chosen(
        composition=composition,
        record=new_record(composition),
        store=store if _keeps(composition, wanted) else None,
    )


def tell_opening(opened: OpenSession, *, needs_provider: bool = True) -> None:
    """Report the modules that the session has not, and what became of a turn that was interrupted.

    Args:
        opened: the session.
        needs_provider: whether it matters that a provider is missing.
    """
    _report_unmounted(opened, needs_provider=needs_provider)
    for damage in opened.kept.damage if opened.kept is not None else ():
        notice(f"warning: the session is damaged. {one_line(str(damage), 300)}")
    turn = opened.interrupted
    if turn is None:
        return
    notice(f"The last turn was interrupted: {one_line(turn.prompt, 100)}")
    for line in calls_of(turn):
        notice(line)
    for cut in opened.cut_off:
        record = cut.session.record
        notice(
            f"{one_line(record.agent_name or 'A session')} was at work, in session {one_line(record.session_id)}"
        )
        for line in calls_of(cut.turn):
            notice(line)


def _report_unmounted(opened: OpenSession, *, needs_provider: bool) -> None:
    left_out = set[str]()
    if not needs_provider:
        left_out = {spec.module for spec in opened.session.plan.modules["provider"]}
    for failure in opened.session.failures:
        if failure.module_id not in left_out:
            notice(f"warning: not mounted: {one_line(str(failure), 1000)}")
    for module in opened.session.skipped:
        if module not in left_out:
            notice(
                f"warning: not mounted: module {module!r} found nothing to mount; a key may be missing"
            )


def _stored(store: SessionStore, wanted: Wanted) -> SessionRecord | None:
    if wanted.resume is None and not wanted.latest:
        return None
    require_locks()
    if wanted.resume is not None:
        with moved_reported():
            return store.find(wanted.resume).record
    # Sessions of one tool call are no conversation that a person means by "the latest".
    every = [session for session in store.all() if session.record.command is None]
    if not every:
        report_moved()
        raise ConfigError(
            [Problem("", "there is none in this project yet")],
            subject="choice of a session",
        )
    return every[0].record


def _keeps(composition: Composition, wanted: Wanted) -> bool:
    if not (
        composition.settings.read().sessions.keep
        if wanted.keep is None
        else wanted.keep
    ):
        return False
    if wanted.keep:
        require_locks()
    elif not has_locks():
        notice(
            "This session is not stored; to store sessions: pip install 'amplifier[cli]'"
        )
        return False
    return True


def _report_unread(composition: Composition) -> None:
    """Report, once a session, which files of the project have no effect because no module reads them."""
    unread = find_unread_files(composition.places.root, composition.plan)
    if unread:
        listed = ", ".join(
            f"{one_line(file.path)} (needs {file.module})" for file in unread
        )
        notice(
            f"Not read in this session: {listed}. A module is added to the settings, a profile or a plan."
        )


def _report_withheld(composition: Composition) -> None:
    """Report what the session has not: invalid files of agents, and what a project brings and nobody trusted."""
    for file in composition.invalid:
        notice(
            f"warning: the agent {one_line(file.name, 100)!r} cannot be used. {one_line(file.problem, 500)}"
        )
    withheld = composition.project.withheld
    for decision in withheld:
        notice(
            f"warning: going on without the {decision.kind} of this folder. {one_line(decision.reason, 300)}"
        )
    if withheld:
        notice("'amplifier trust' shows what they are and asks.")
