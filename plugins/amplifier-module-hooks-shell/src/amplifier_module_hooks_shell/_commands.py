"""The commands of plugin folders, as the chat lists and runs them."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

import attrs

from amplifier_kit.claude_plugins import CommandFile
from amplifier_kit.commands import CommandError, CommandPrompt, SessionCommand
from amplifier_kit.files.path_rules import SECRET_NAMES
from amplifier_kit.files.paths import ConfinedPaths
from amplifier_kit.shell import CommandRule, PathPolicy, ShellPolicy
from amplifier_kit.trust.untrusted import mark_untrusted
from amplifier_module_hooks_shell._loaded import LoadedPlugin
from amplifier_module_hooks_shell._surroundings import NAME, HookEnvironment
from amplifier_sdk.errors import AmplifierError
from amplifier_sdk.results import HookResult
from amplifier_sdk.threads import run_blocking

__all__ = ["Commands", "PluginCommand"]

_SECONDS: Final = 120.0
_MAX_FILE_BYTES: Final = 256_000
_MAX_PROMPT: Final = 1_000_000
_ROOT: Final = re.compile(
    r"\$(?:\{CLAUDE_PLUGIN_ROOT\}|CLAUDE_PLUGIN_ROOT(?![A-Za-z0-9_]))"
)
_OWN_SCRIPT: Final = re.compile(
    r"(?:(?:bash|sh|node|python3?|ruby|perl) )?(\"?)\$(?:\{CLAUDE_PLUGIN_ROOT\}|CLAUDE_PLUGIN_ROOT)\1/[\w./-]+"
    r"(?: [\w./=:,@%+-]+)*"
)


@attrs.frozen(kw_only=True)
class PluginCommand:
    """A command, the plugin that brings it, and the name that it has among all of them."""

    loaded: LoadedPlugin
    file: CommandFile
    name: str

    @property
    def aliases(self) -> tuple[str, ...]:
        """Its other names: the one with its plugin's before it."""
        whole = f"{self.loaded.plugin.name}:{self.file.name}"
        if whole == self.name:
            return ()
        return (whole,)

    @property
    def source(self) -> str:
        """Who offers it."""
        return ":".join(
            filter(None, ("plugin", self.loaded.plugin.name, self.file.folder))
        )


class Commands:
    """The commands of a session's plugins.

    Args:
        surroundings: where they run what they run.
        plugins: whose they are; of two commands with one name each is called by its plugin's as well.
    """

    def __init__(
        self, surroundings: HookEnvironment, plugins: Sequence[LoadedPlugin]
    ) -> None:
        self._surroundings = surroundings
        every = [
            (loaded, file) for loaded in plugins for file in loaded.plugin.commands
        ]
        count = Counter(file.name for _, file in every)
        self.found: Final = tuple(
            PluginCommand(
                loaded=loaded,
                file=file,
                name=file.name
                if count[file.name] == 1
                else f"{loaded.plugin.name}:{file.name}",
            )
            for loaded, file in every
        )

    def listed(self) -> list[SessionCommand]:
        """Return them as the channel `cli.commands` takes them."""
        return [
            SessionCommand(
                name=command.name,
                make=partial(self.prompt, command),
                description=command.file.description,
                argument_hint=command.file.argument_hint,
                source=command.source,
                aliases=command.aliases,
            )
            for command in self.found
        ]

    def named(self, name: str) -> PluginCommand | None:
        """Return the command that goes by a name."""
        return next(
            (
                command
                for command in self.found
                if name in (command.name, *command.aliases)
            ),
            None,
        )

    async def prompt(self, command: PluginCommand, arguments: str) -> CommandPrompt:
        """Make the prompt of a command that a person typed.

        Raises:
            CommandError: a program that it wants to run was not allowed, or a file cannot be read.
        """
        text = await self.expand(command, arguments)
        model = None
        if command.file.model is not None:
            model = self._surroundings.config.models.get(command.file.model)
        return CommandPrompt(
            text=text, metadata={} if model is None else {"model": model}
        )

    async def expand(
        self, command: PluginCommand, arguments: str, *, by_model: bool = False
    ) -> str:
        """Write a command's prompt, with the output of its programs and the content of its files.

        Args:
            command: which.
            arguments: what stands behind its name.
            by_model: whether a model wrote the arguments; programs are then asked about where they are given any.

        Raises:
            CommandError: as `prompt`.
        """
        asks = by_model and command.file.takes_arguments()
        written = []
        for part in command.file.parts(arguments):
            match part.kind:
                case "run":
                    written.append(await self._output(command, part.text, asks=asks))
                case "file":
                    written.append(await self._content(command, part.text))
                case _:
                    written.append(
                        _ROOT.sub(lambda _: str(command.loaded.plugin.root), part.text)
                    )
        text = "".join(written)
        if len(text) > _MAX_PROMPT:
            raise CommandError(
                f"/{command.name} makes a prompt of {len(text)} characters; {_MAX_PROMPT} is the most"
            )
        return text

    async def _output(self, command: PluginCommand, text: str, *, asks: bool) -> str:
        """Run a program that a command names, once it may, and return its output, marked."""
        text = text.strip()
        # A project's plugin allows itself nothing: what it may run is the person's to say.
        if asks or not command.loaded.is_own or not self._may_run(command, text):
            await self._require(command, text)
        ran = await self._surroundings.run(
            text,
            input="",
            timeout=_SECONDS,
            env=command.loaded.variables,
            loaded=command.loaded,
        )
        lines = [ran.output.rstrip(), ran.errors.rstrip()]
        if ran.failure is not None:
            lines.append(f"[{ran.failure}]")
        elif ran.code:
            lines.append(f"[exit code {ran.code}]")
        return mark_untrusted("\n".join(filter(None, lines)), "command")

    def _may_run(self, command: PluginCommand, text: str) -> bool:
        """Tell whether `allowed-tools` says that a program runs: it begins as one of them, or is the plugin's own."""
        programs = command.file.allowed_programs()
        has_shell = any(
            entry.strip().startswith("Bash")
            for entry in command.file.allowed_tools or ()
        )
        if has_shell and _OWN_SCRIPT.fullmatch(text) and ".." not in text:
            return True
        if not programs:
            return False
        policy = ShellPolicy([CommandRule(decision="allow", commands=programs)], "ask")
        directory = self._surroundings.directory
        path_policy = PathPolicy(
            directory=directory, writable=(), home=os.path.expanduser("~")
        )
        return (
            policy.evaluate(text, path_policy, command.loaded.variables).decision
            == "allow"
        )

    async def _require(self, command: PluginCommand, text: str) -> None:
        """Ask the person about a program.

        Raises:
            CommandError: it was not allowed.
        """
        question = HookResult.ask(
            f"/{command.name} of {command.loaded.label} wants to run this command:\n{text}",
            options=("Allow once", "Allow always", "Deny"),
            scope=f"running {text!r} for /{command.name}, in this session",
        )
        decided = await self._surroundings.coordinator.hooks.host.process_hook_result(
            question, f"command:{command.name}", NAME
        )
        if decided.denied:
            raise CommandError(
                f"/{command.name} was not run: it wants to run {text!r:.200}, and {decided.reason}"
            )

    async def _content(self, command: PluginCommand, name: str) -> str:
        """Return what a file holds, marked; the name itself where there is no such file.

        Raises:
            CommandError: the file is protected, too large, or no text.
        """
        path = _ROOT.sub(lambda _: str(command.loaded.plugin.root), name)
        content = await run_blocking(
            partial(
                _read,
                path,
                Path(self._surroundings.directory),
                command.loaded.plugin.root,
            ),
            name="hooks-shell.file",
        )
        if content is None:
            return f"@{name}"
        return f"@{name}\n{mark_untrusted(content, path)}\n"


def _read(path: str, directory: Path, root: Path) -> str | None:
    """Read a file of the project or the plugin.

    Raises:
        CommandError: it may not be read, or cannot be.
    """
    confined = ConfinedPaths(
        [directory, root], base=directory, denied_names=SECRET_NAMES
    )
    try:
        with confined.locate(path) as resolved:
            if resolved.kind != "file":
                return None
            with resolved.open_file() as file:
                data = file.read(_MAX_FILE_BYTES + 1)
    except (AmplifierError, OSError, ValueError) as error:
        raise CommandError(f"@{path} cannot be read: {error}") from error
    if len(data) > _MAX_FILE_BYTES:
        raise CommandError(f"@{path} is larger than {_MAX_FILE_BYTES} bytes")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise CommandError(f"@{path} is no UTF-8 text") from error
