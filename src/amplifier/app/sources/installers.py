"""Installing packages into this interpreter's environment, with the tool that is there: uv, or pip."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Final

import anyio
import attrs

from amplifier.app.sources.fetch_errors import OFFLINE, SourceFetchError, offline_error
from amplifier.app.sources.locations import PackageLocation, hide_credentials
from amplifier_kit.installation import install_arguments

__all__ = ["Installer", "find_installer"]

_TIMEOUT: Final = 600.0
_SHOWN: Final = 2000
_VARIABLES: Final = (
    "PIP_*",
    "UV_*",
    "NETRC",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "CC",
    "CXX",
    "*FLAGS",
    "SSH_*",
)
"""The person's own settings of index, proxy and compiler."""


@attrs.frozen(kw_only=True)
class Installer:
    """The tool that installs packages for this interpreter: uv, or pip. It uses the person's own index settings.

    Args:
        name: what it is called.
        argv: its command, to which what is installed is added.
    """

    name: str
    argv: tuple[str, ...]

    def command(self, location: PackageLocation) -> tuple[str, ...]:
        """Return the command that installs a package, for showing it before it runs."""
        # Two dashes end the options: no requirement is read as one.
        return (*self.argv, "--", location.requirement)

    def install(self, location: PackageLocation, *, offline: bool = False) -> None:
        """Install a package into this interpreter's environment; the function blocks.

        Args:
            location: the package.
            offline: whether nothing may be fetched.

        Raises:
            FetchError: the tool cannot be run, or says why it failed.
        """
        if offline:
            raise offline_error(location)
        anyio.run(partial(self._install, self.command(location), location))

    def install_own(self, requirement: str) -> None:
        """Install a distribution of Amplifier's own, from where this one came from; the function blocks.

        Args:
            requirement: its name.

        Raises:
            FetchError: the tool cannot be run, or says why it failed.
            AmplifierError: there is nothing that it could be installed from.
        """
        if os.environ.get(OFFLINE, "0") not in ("", "0"):
            raise offline_error(requirement)
        argv = (*self.argv, *install_arguments(requirement))
        anyio.run(partial(self._install, argv, requirement))

    async def _install(
        self, argv: Sequence[str], location: PackageLocation | str
    ) -> None:
        # only who installs
        from amplifier_kit.processes import (
            Capture,
            Command,
            python_environment,
            run_command,
        )

        output = Capture(_SHOWN)
        # In an empty folder, so that no file of the name of a package is taken for one.
        with tempfile.TemporaryDirectory(prefix="amplifier-install-") as folder:
            command = Command(
                argv=tuple(argv),
                directory=folder,
                environment=python_environment(_VARIABLES),
            )
            ending = await run_command(
                command, stdout=output.write, stderr=output.write, timeout=_TIMEOUT
            )
        if ending.timed_out:
            problem = f"{self.name} took longer than {_TIMEOUT:g} s"
            raise SourceFetchError(location, problem)
        if ending.code:
            problem = f"{self.name} ended with {ending.code}: {ending.error or output.text().strip()}"
            raise SourceFetchError(location, hide_credentials(problem))


def find_installer(environ: Mapping[str, str] = os.environ) -> Installer:
    """Return the tool that installs packages for this interpreter.

    Raises:
        FetchError: there is neither uv nor pip.
    """
    from amplifier_kit.processes import find_program, python_argv  # only who installs

    uv = find_program("uv", environ=environ)
    if uv is not None:
        argv = (uv, "pip", "install", "--python", sys.executable)
        return Installer(name="uv", argv=argv)
    if find_spec("pip") is not None:
        options = ("install", "--disable-pip-version-check", "--no-input")
        return Installer(name="pip", argv=python_argv("pip", *options, packages=True))
    problem = f"neither uv nor pip is there for {sys.executable}; install one of them"
    raise SourceFetchError("The package", problem)
