"""Packages as sources: the ones that are installed, pinned by version and digest, and installing one."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import anyio
import attrs

from amplifier.app.sources.git import OFFLINE, FetchError
from amplifier.app.sources.locations import PackageLocation, hide_credentials
from amplifier.app.sources.pins import Pin, Pins
from amplifier.app.sources.requirements import satisfies
from amplifier_sdk.errors import ModuleNotFoundError

__all__ = ["Installer", "PackageSource", "find_installer", "pin_package"]

_TIMEOUT: Final = 600.0
_SHOWN: Final = 2000


@attrs.frozen(kw_only=True)
class PackageSource:
    """A module of an installed package.

    Args:
        module_id: the module.
        location: the package, as the source names it.
        pins: the version and digest that it was pinned with.
    """

    module_id: str
    location: PackageLocation
    pins: Pins

    def resolve(self) -> Path:
        """Return the folder in which the package's metadata stands.

        Raises:
            ModuleNotFoundError: it is not installed, or not as it was pinned.
        """
        found = _installed(self.location)
        if found is None:
            reason = f"the package {str(self.location)!r} is not installed; run: amplifier module add {self.module_id}"
            raise ModuleNotFoundError(self.module_id, f"{reason} --source '{self.location}'")
        pin = self.pins.find(str(self.location))
        if pin is not None and (pin.version, pin.hash) != (found.version, _digest(found)):
            reason = (
                f"the package {self.location.name} {found.version} is not as it was pinned ({pin.version}, {pin.hash});"
                f" if you changed it, run: amplifier module update {self.module_id}"
            )
            raise ModuleNotFoundError(self.module_id, reason)
        return Path(str(found.locate_file("")))

    def version(self) -> str:
        """Return the version that is installed.

        Raises:
            ModuleNotFoundError: none is.
        """
        found = _installed(self.location)
        if found is None:
            raise ModuleNotFoundError(self.module_id, f"the package {str(self.location)!r} is not installed")
        return found.version


@attrs.frozen(kw_only=True)
class Installer:
    """The tool that installs packages for this interpreter: uv, or pip. It uses the person's own index settings.

    Args:
        name: what it is called.
        argv: its command, to which the requirement is added.
    """

    name: str
    argv: tuple[str, ...]

    def command(self, location: PackageLocation) -> tuple[str, ...]:
        """Return the command that installs a package, for showing it before it runs."""
        return (*self.argv, location.requirement)

    def install(
        self, location: PackageLocation, *, offline: bool = False, environ: Mapping[str, str] = os.environ
    ) -> None:
        """Install a package into this interpreter's environment; the function blocks.

        Args:
            location: the package.
            offline: whether nothing may be fetched.
            environ: the environment of the tool.

        Raises:
            FetchError: the tool cannot be run, or says why it failed.
        """
        if offline:
            raise FetchError(location, f"working offline; leave --offline away or unset {OFFLINE}")
        anyio.run(partial(self._install, location, environ))

    async def _install(self, location: PackageLocation, environ: Mapping[str, str]) -> None:
        from amplifier_sdk.kit.processes import Capture, Command, run_command  # only who installs

        told = Capture(_SHOWN)
        command = Command(argv=self.command(location), directory=str(Path.home()), environment=dict(environ))
        ending = await run_command(command, stdout=told.write, stderr=told.write, timeout=_TIMEOUT)
        if ending.timed_out:
            raise FetchError(location, f"{self.name} took longer than {_TIMEOUT:g} s")
        if ending.code:
            problem = f"{self.name} ended with {ending.code}: {ending.error or told.text().strip()}"
            raise FetchError(location, hide_credentials(problem))


def find_installer(environ: Mapping[str, str] = os.environ) -> Installer:
    """Return the tool that installs packages for this interpreter.

    Raises:
        FetchError: there is neither uv nor pip.
    """
    uv = shutil.which("uv", path=environ.get("PATH"))
    if uv is not None:
        return Installer(name="uv", argv=(uv, "pip", "install", "--python", sys.executable, "--"))
    if find_spec("pip") is not None:
        argv = (sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--")
        return Installer(name="pip", argv=argv)
    raise FetchError("The package", f"neither uv nor pip is there for {sys.executable}; install one of them")


def pin_package(location: PackageLocation, pins: Pins) -> Pin | None:
    """Pin an installed package as it is now; `None` where it is not installed."""
    found = _installed(location)
    if found is None:
        return None
    now = datetime.now(UTC).isoformat(timespec="seconds")
    pin = Pin(source=str(location), version=found.version, hash=_digest(found), fetched_at=now)
    pins.set(pin)
    return pin


def _installed(location: PackageLocation) -> Distribution | None:
    """Find a distribution whose version the source allows."""
    try:
        found = distribution(location.name)
    except PackageNotFoundError:
        return None
    return found if satisfies(found.version, location.versions) else None


def _digest(found: Distribution) -> str:
    """Return the digest of the list of files with the digest of each, which installers write."""
    record = found.read_text("RECORD") or found.read_text("METADATA") or ""
    # Compiled Python comes and goes; the source that it is made of is listed beside it.
    lines = sorted(line for line in record.splitlines() if "__pycache__" not in line)
    return f"sha256:{hashlib.sha256(chr(10).join(lines).encode()).hexdigest()}"
