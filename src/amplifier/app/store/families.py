"""Sessions and those that they made."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import attrs

from amplifier.app.store.stored import StoredSession

__all__ = ["Branch", "family_of", "grow"]


@attrs.frozen(kw_only=True)
class Branch:
    """A session with those that it made, the oldest first."""

    session: StoredSession
    branches: tuple[Branch, ...] = ()

    def sessions(self) -> Iterator[StoredSession]:
        """Yield the session and all that came of it."""
        waiting = [self]
        while waiting:
            branch = waiting.pop()
            yield branch.session
            waiting += branch.branches


def grow(sessions: Iterable[StoredSession]) -> list[Branch]:
    """Return sessions as trees, the latest first; each stands in one place, also where records name each other.

    A session whose parent is not among them is the root of a tree.
    """
    every = sorted(sessions, key=lambda session: session.record.latest, reverse=True)
    known = {session.record.session_id for session in every}
    children = _by_parent(every)
    # Shared by all trees: a record that names its own descendant as parent ends there.
    seen: set[str] = set()
    roots = [session for session in every if session.record.parent_id not in known]
    trees = [_branch(session, children, seen) for session in roots]
    return [
        *trees,
        *(
            _branch(one, children, seen)
            for one in every
            if one.record.session_id not in seen
        ),
    ]


def family_of(
    session_id: str, sessions: Iterable[StoredSession]
) -> list[StoredSession]:
    """Return a session and all that came of it, children before their parents."""
    every = list(sessions)
    children = _by_parent(every)
    seen: set[str] = set()
    found: list[StoredSession] = []
    waiting = [session for session in every if session.record.session_id == session_id]
    while waiting:
        session = waiting.pop()
        if session.record.session_id not in seen:
            seen.add(session.record.session_id)
            found.append(session)
            waiting += children.get(session.record.session_id, ())
    # Whoever deletes goes in this order: no child is left without its parent.
    return found[::-1]


def _by_parent(
    sessions: Iterable[StoredSession],
) -> Mapping[str, Sequence[StoredSession]]:
    children: defaultdict[str, list[StoredSession]] = defaultdict(list)
    for session in sorted(sessions, key=lambda session: session.record.created):
        if session.record.parent_id is not None:
            children[session.record.parent_id].append(session)
    return children


def _branch(
    root: StoredSession, children: Mapping[str, Sequence[StoredSession]], seen: set[str]
) -> Branch:
    """Build a tree from its leaves: it may be deeper than Python calls."""
    order: list[tuple[StoredSession, list[StoredSession]]] = []
    waiting = [root]
    seen.add(root.record.session_id)
    while waiting:
        session = waiting.pop()
        own = [
            child
            for child in children.get(session.record.session_id, ())
            if child.record.session_id not in seen
        ]
        seen.update(child.record.session_id for child in own)
        order.append((session, own))
        waiting += own
    built: dict[str, Branch] = {}
    # Children come after their parents in the order, so backwards each is built already.
    for session, own in reversed(order):
        branches = tuple(built.pop(child.record.session_id) for child in own)
        built[session.record.session_id] = Branch(session=session, branches=branches)
    return built[root.record.session_id]
