"""A PostgreSQL server on loopback for tests: made, started, stopped and removed by them."""

from __future__ import annotations

import atexit
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Final

import attrs

from amplifier_kit.processes.programs import find_program

__all__ = [
    "PASSWORD",
    "PostgresServer",
    "SmallDisk",
    "find_programs",
    "running_server",
    "small_disk",
]

PASSWORD: Final = "s3cret/of:the@tests"  # noqa: S105  # of a server that lives as long as a test
_USER: Final = "postgres"
_SETTINGS: Final = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "60",
    # what is tested is the store, and not the disk
    "fsync": "off",
}


@attrs.frozen
class PostgresServer:
    """A server that runs.

    Args:
        port: where it listens on 127.0.0.1.
        data: the folder of its data.
        programs: the folder of its programs.
    """

    port: int
    data: Path
    programs: Path

    def url(self, database: str = "postgres", user: str = _USER) -> str:
        """Return where a database is, without the password, which is in the environment."""
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self._control("start", "-l", str(self.data / "log"))

    def stop(self) -> None:
        """End it, and the connections to it."""
        self._control("stop", "-m", "immediate")

    def _control(self, *words: str) -> None:
        pg_ctl = self.programs / "pg_ctl"
        _run([str(pg_ctl), "-s", "-w", "-D", str(self.data), *words])


def find_programs() -> Path | None:
    """Return the folder of the newest server that is installed; `None` where there is none."""
    # Debian puts it on no search path
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if debian:
        return debian[-1].parent
    initdb = find_program("initdb")
    if initdb is None:
        return None
    return Path(initdb).parent


@contextmanager
def running_server(programs: Path) -> Iterator[PostgresServer]:
    """Run a server for a block, with the password `PASSWORD`.

    What new servers begin with is made once for all of this process, and removed at its end.

    Args:
        programs: the folder of its programs.
    """
    template = _template(programs)
    folder = _make_folder()
    try:
        server = PostgresServer(_free_port(), folder / "data", programs)
        _run(["cp", "-a", str(template), str(server.data)])
        settings = {**_SETTINGS, "port": str(server.port)}
        lines = [f"{name} = '{value}'\n" for name, value in settings.items()]
        with (server.data / "postgresql.conf").open("a", encoding="utf-8") as file:
            file.writelines(lines)
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder)


@attrs.frozen
class SmallDisk:
    """A database on a disk of a few megabytes.

    Args:
        url: where it is.
    """

    url: str

    def fill(self) -> None:
        """Leave no room on it."""
        import psycopg

        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute("CREATE TABLE ballast (piece text)")
            connection.execute("ALTER TABLE ballast ALTER piece SET STORAGE EXTERNAL")
            with suppress(psycopg.errors.DiskFull):
                while True:
                    connection.execute("INSERT INTO ballast VALUES (repeat('x', 8000))")

    def make_room(self) -> None:
        """Take off again what fills it."""
        import psycopg

        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute("DROP TABLE ballast")
            connection.execute("CHECKPOINT")


@contextmanager
def small_disk(server: PostgresServer) -> Iterator[SmallDisk | None]:
    """Make a database on a small disk for a block; yield `None` where no file system may be mounted.

    Args:
        server: where it is made; the password is in the environment.
    """
    # the store's module brings it along
    import psycopg
    from psycopg import sql

    folder = Path(tempfile.mkdtemp(prefix="amplifier-disk-"))
    mount = ["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", str(folder)]
    unmount = ["umount", "--lazy", str(folder)]
    try:
        if subprocess.run(mount, capture_output=True, check=False).returncode:
            yield None
            return
        try:
            shutil.chown(folder, _USER)
            place = sql.SQL("CREATE TABLESPACE small LOCATION {}")
            with psycopg.connect(server.url(), autocommit=True) as connection:
                connection.execute(place.format(sql.Literal(str(folder))))
                connection.execute("CREATE DATABASE small TABLESPACE small")
                try:
                    yield SmallDisk(server.url("small"))
                finally:
                    connection.execute("DROP DATABASE small WITH (FORCE)")
                    connection.execute("DROP TABLESPACE small")
        finally:
            subprocess.run(unmount, check=True)
    finally:
        folder.rmdir()


def _make_folder() -> Path:
    # not below pytest's folder: the server does not run as root, and its user may not enter that
    folder = Path(tempfile.mkdtemp(prefix="amplifier-postgres-"))
    if _is_root():
        shutil.chown(folder, _USER)
    return folder


@cache
def _template(programs: Path) -> Path:
    """Make the data of a new server; a copy of them takes a third of the time."""
    folder = _make_folder()
    atexit.register(shutil.rmtree, folder)
    secret, data = folder / "secret", folder / "data"
    secret.write_text(PASSWORD, "utf-8")
    if _is_root():
        shutil.chown(secret, _USER)
    _run(
        [
            *(str(programs / "initdb"), "-D", str(data), "-U", _USER),
            *("--auth=scram-sha-256", f"--pwfile={secret}", "--no-sync"),
            *("-E", "UTF8", "--locale=C"),
        ]
    )
    return data


def _is_root() -> bool:
    return os.geteuid() == 0


def _run(command: list[str]) -> None:
    if _is_root():
        user = _USER
    else:
        user = None
    # A file and no pipe: a server that is started keeps its starter's output open.
    with tempfile.TemporaryFile() as output:
        done = subprocess.run(
            command, user=user, cwd="/", stdout=output, stderr=output, check=False
        )
        output.seek(0)
        said = output.read().decode("utf-8", "replace")
    if done.returncode:
        raise OSError(f"{' '.join(command[:2])} failed: {said}")


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port
