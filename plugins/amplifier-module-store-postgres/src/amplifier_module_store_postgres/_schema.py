"""The tables, and the steps that lead from each version of them to the next.

Data that must come back as it went in is of the type `json`, which stores the text, or is a line with a checksum:
`jsonb` changes the order of keys and takes no U+0000. What is searched is `jsonb` beside it.
"""

from __future__ import annotations

from typing import Final

import psycopg

from amplifier_sdk.errors import StoreVersionError

__all__ = ["MIGRATIONS", "migrate"]

_LOCK: Final = 0x616D706C  # "ampl": whoever migrates this database

_EXISTS: Final = "SELECT to_regclass('amplifier.schema_version') IS NOT NULL"

_VERSION_1: Final = """
CREATE TABLE amplifier.sessions (
    namespace text NOT NULL,
    session_id text NOT NULL,
    parent_id text,
    created double precision NOT NULL DEFAULT 0,
    latest double precision NOT NULL DEFAULT 0,
    facts jsonb,
    record json,
    change bigint NOT NULL DEFAULT 0,
    lease_token bigint NOT NULL,
    lease_owner text NOT NULL,
    lease_expires timestamptz NOT NULL,
    PRIMARY KEY (namespace, session_id)
);
CREATE INDEX sessions_latest ON amplifier.sessions (namespace, latest DESC);
CREATE INDEX sessions_parent ON amplifier.sessions (namespace, parent_id);
CREATE TABLE amplifier.logs (
    namespace text NOT NULL,
    session_id text NOT NULL,
    log text NOT NULL,
    began double precision NOT NULL,
    count bigint NOT NULL,
    PRIMARY KEY (namespace, session_id, log),
    FOREIGN KEY (namespace, session_id)
        REFERENCES amplifier.sessions ON DELETE CASCADE
);
CREATE TABLE amplifier.entries (
    namespace text NOT NULL,
    session_id text NOT NULL,
    log text NOT NULL,
    number bigint NOT NULL,
    line text NOT NULL,
    PRIMARY KEY (namespace, session_id, log, number),
    FOREIGN KEY (namespace, session_id, log)
        REFERENCES amplifier.logs ON DELETE CASCADE
);
CREATE TABLE amplifier.documents (
    namespace text NOT NULL,
    session_id text NOT NULL,
    name text NOT NULL,
    content bytea NOT NULL,
    PRIMARY KEY (namespace, session_id, name),
    FOREIGN KEY (namespace, session_id)
        REFERENCES amplifier.sessions ON DELETE CASCADE
);
CREATE TABLE amplifier.questions (
    namespace text NOT NULL,
    question_id text NOT NULL,
    session_id text NOT NULL,
    asked json NOT NULL,
    answer text,
    answered_by text,
    is_void boolean NOT NULL DEFAULT false,
    PRIMARY KEY (namespace, question_id),
    FOREIGN KEY (namespace, session_id)
        REFERENCES amplifier.sessions ON DELETE CASCADE
);
CREATE INDEX questions_session ON amplifier.questions (namespace, session_id);
CREATE SEQUENCE amplifier.lease_tokens;
CREATE SEQUENCE amplifier.changes;
"""

_ACCOUNTS: Final = """
CREATE TABLE amplifier.accounts (
    namespace text NOT NULL,
    account text NOT NULL,
    bucket text NOT NULL,
    spent numeric NOT NULL DEFAULT 0,
    PRIMARY KEY (namespace, account, bucket)
);
CREATE TABLE amplifier.reservations (
    namespace text NOT NULL,
    reservation_id text NOT NULL,
    account text NOT NULL,
    bucket text NOT NULL,
    amount numeric NOT NULL,
    expires timestamptz NOT NULL,
    PRIMARY KEY (namespace, reservation_id, account, bucket)
);
CREATE INDEX reservations_account
    ON amplifier.reservations (namespace, account, bucket);
CREATE TABLE amplifier.pauses (
    namespace text NOT NULL,
    account text NOT NULL,
    until timestamptz NOT NULL,
    PRIMARY KEY (namespace, account)
);
"""

MIGRATIONS: Final = (_VERSION_1, _ACCOUNTS)
"""The step to version 1, the one from there to version 2, and so on; one that was released never changes."""


def migrate(
    connection: psycopg.Connection, migrations: tuple[str, ...] = MIGRATIONS
) -> None:
    """Bring the tables to the newest version, all steps or none; others that want the same wait.

    Close the connection after it: it holds the lock until then.

    Raises:
        StoreVersionError: a newer version of this module made them, or the user may not change them.
        psycopg.Error: the server refuses.
    """
    wanted = len(migrations)
    if _version(connection) == wanted:
        return
    # Held until the connection is closed, also by the death of this process. Within the
    # transaction that waited for it the server would not yet see the tables of another.
    connection.execute("SELECT pg_advisory_lock(%s)", (_LOCK,))
    try:
        with connection.transaction():
            found = _version(connection)
            if found > wanted:
                problem = f"has version {found}; this module knows {wanted}. Update"
                raise StoreVersionError(
                    f"The schema of the store {problem} amplifier-module-store-postgres"
                )
            connection.execute("CREATE SCHEMA IF NOT EXISTS amplifier")
            connection.execute(
                "CREATE TABLE IF NOT EXISTS amplifier.schema_version (version integer)"
            )
            for step in migrations[found:]:
                connection.execute(step.encode())
            connection.execute("DELETE FROM amplifier.schema_version")
            connection.execute(
                "INSERT INTO amplifier.schema_version VALUES (%s)", (wanted,)
            )
    except psycopg.errors.InsufficientPrivilege as error:
        problem = "is to be brought up to date, and the user may not do that"
        raise StoreVersionError(
            f"The schema of the store {problem}: {error.diag.message_primary}."
            " Open it once as a user who may create schemas"
        ) from error


def _version(connection: psycopg.Connection) -> int:
    """Return the version of the tables; 0 where there are none."""
    if connection.execute(_EXISTS).fetchone() != (True,):
        return 0
    found = connection.execute("SELECT max(version) FROM amplifier.schema_version")
    ((version,),) = found.fetchall()
    return int(version or 0)
