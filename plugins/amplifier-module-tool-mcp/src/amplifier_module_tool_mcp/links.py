"""How a server is reached: the transport that its configuration asks for, with all that it may and may not have."""

from __future__ import annotations

import os
from collections.abc import Callable
from logging import NullHandler, getLogger
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

import attrs
from anyio import to_thread

from amplifier_kit.processes import Command, allowed_environment, foreign_path
from amplifier_module_tool_mcp.config import McpConfig, ServerConfig
from amplifier_module_tool_mcp.projects import ProjectServers, start_folder
from amplifier_module_tool_mcp.server_definitions import ServerDefinition
from amplifier_module_tool_mcp.variables import Expanded

if TYPE_CHECKING:
    # all import the protocol's library
    from amplifier_module_tool_mcp.oauth.authorization import Authorization
    from amplifier_module_tool_mcp.stdio import StdioLink
    from amplifier_module_tool_mcp.web import WebLink

__all__ = ["Link", "Links", "ServerRefusedError"]

Link: TypeAlias = "StdioLink | WebLink"
_Hear: TypeAlias = Callable[[str, bytes], None]

_GRACE_SECONDS: Final = 0.3
_LOGGERS: Final = ("mcp", "client")
"""The loggers of the protocol's library."""


class ServerRefusedError(Exception):
    """A server may not be used; says why, and what a person can do."""


@attrs.frozen(kw_only=True)
class Links:
    """Makes the connections of one session.

    Args:
        config: the module's configuration.
        project: what the project says of servers.
        working_dir: where the person works.
    """

    config: McpConfig
    project: ProjectServers
    working_dir: Path

    async def make(
        self, declared: ServerDefinition, hear: _Hear
    ) -> tuple[Link, Expanded]:
        """Make the connection to a server, and return it with its configuration as it is used.

        A project's server is compared each time: what was trusted is what runs.

        Raises:
            RefusedError: it may not be used.
        """
        return await to_thread.run_sync(self._make, declared, hear)

    def _make(self, declared: ServerDefinition, hear: _Hear) -> tuple[Link, Expanded]:
        expanded = self._expanded(declared)
        # they would write what servers say on the terminal where nobody set logging up
        for name in _LOGGERS:
            # A handler that the person set up stays the one that hears them.
            if not getLogger(name).handlers:
                getLogger(name).addHandler(NullHandler())
        server = expanded.config
        if server.url is not None:
            # imports the protocol's library, in this thread
            from amplifier_module_tool_mcp.web import WebLink

            return WebLink(
                authorization=self._authorization(declared, server),
                url=server.url,
                headers=server.headers,
                max_bytes=self.config.max_message_bytes,
                timeout=self.config.connect_timeout,
                public_only=declared.source == "project",
            ), expanded
        # imports the protocol's library, in this thread
        from amplifier_module_tool_mcp.stdio import StdioLink

        is_own = declared.source != "project"
        if not is_own:
            server = self.project.placed(server)
        command = self._command(server, str(server.command), is_own=is_own)
        return StdioLink(
            command=command, max_bytes=self.config.max_message_bytes, hear=hear
        ), expanded

    async def authorization(self, declared: ServerDefinition) -> Authorization | None:
        """Return the person's authorization at a server; `None` where nobody can sign in to it.

        Raises:
            ServerRefusedError: it may not be used.
        """
        return await to_thread.run_sync(self._found_authorization, declared)

    def _found_authorization(self, declared: ServerDefinition) -> Authorization | None:
        expanded = self._expanded(declared)
        return self._authorization(declared, expanded.config)

    def _authorization(
        self, declared: ServerDefinition, server: ServerConfig
    ) -> Authorization | None:
        if server.url is None or any(
            name.lower() == "authorization" for name in server.headers
        ):
            return None
        # imports the protocol's library, in this thread
        from amplifier_module_tool_mcp.oauth.authorization import Authorization

        return Authorization(
            name=declared.name,
            url=server.url,
            timeout=self.config.connect_timeout,
            public_only=declared.source == "project",
        )

    def _expanded(self, declared: ServerDefinition) -> Expanded:
        if declared.config is None:
            raise ServerRefusedError(declared.problem or "it is not configured")
        if declared.source == "project":
            self._require_trust(declared)
        try:
            return declared.expanded(self.working_dir)
        except ValueError as error:
            # a variable is missing, or holds what cannot be used
            raise ServerRefusedError(str(error)) from error

    def _require_trust(self, declared: ServerDefinition) -> None:
        servers, decision = self.project.look()
        if decision is None or not decision.trusted:
            reason = "the project's files are gone"
            if decision is not None:
                reason = decision.reason
            raise ServerRefusedError(
                f"the project's folder declares it, and {reason}; a person agrees to it with mcp_accept"
            )
        # what a person trusts is what the files say now
        if servers.get(declared.name) != declared.config:
            raise ServerRefusedError(
                "the project's files say otherwise of it than when the session began; begin another one"
            )

    def _command(self, server: ServerConfig, program: str, *, is_own: bool) -> Command:
        directory = start_folder(server, self.working_dir)
        # Made one by one, so that each has the mode of a private folder.
        if server.cwd is None:
            for folder in (directory.parent.parent, directory.parent, directory):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        elif not directory.is_dir():
            raise ServerRefusedError(
                f"its folder {directory} does not exist; create it, or change cwd"
            )
        return Command(
            argv=(os.path.expanduser(program), *server.args),
            directory=str(directory),
            environment=self._environment(server, directory, is_own=is_own),
            grace=_GRACE_SECONDS,
            interactive=True,
        )

    def _environment(
        self, server: ServerConfig, directory: Path, *, is_own: bool
    ) -> dict[str, str]:
        """Return a server's variables: it finds no program of the project, and the person's own no module of it."""
        environment = allowed_environment(server.env_allow)
        environment["PATH"] = (
            foreign_path(environment["PATH"], self.working_dir) or os.defpath
        )
        is_inside = directory.is_relative_to(os.path.realpath(self.working_dir))
        if is_own and is_inside and not {"-m", "-c"}.isdisjoint(server.args):
            # With `-m` and `-c` Python takes modules from the working directory, where
            # a model may write.
            environment["PYTHONSAFEPATH"] = "1"
        return {**environment, **server.env}
