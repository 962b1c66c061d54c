"""Commands that a person writes as Markdown files: `commands/` in their own folder and in trusted projects."""

from __future__ import annotations

from functools import partial
from itertools import chain
from typing import Final

import attrs
from anyio import to_thread

from amplifier.app.collections.folders import CollectionLibrary
from amplifier.app.definitions import (
    DefinitionFile,
    of_collections,
    of_project,
    of_user,
)
from amplifier.app.directories import FOLDER, AppDirs
from amplifier.app.projects.files import ProjectFiles
from amplifier_kit.claude_plugins import CommandFile, parse_command
from amplifier_kit.commands import (
    CommandError,
    CommandPrompt,
    SessionCommand,
    WrittenText,
    refusing_command,
)
from amplifier_kit.files.path_rules import SECRET_NAMES
from amplifier_kit.files.paths import ConfinedPaths
from amplifier_kit.trust.untrusted import mark_untrusted
from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.errors import AmplifierError
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.results import HookResult

__all__ = ["CommandFiles"]

_FOLDER: Final = "commands"
_IN_PROJECTS: Final = (f"{FOLDER}/{_FOLDER}", f".claude/{_FOLDER}")
_SECONDS: Final = 120.0
_MAX_OUTPUT: Final = 60_000
_MAX_FILE_BYTES: Final = 256_000
_SHELL: Final = "/bin/sh"


@attrs.define(eq=False)
class CommandFiles:
    """The command files that count where a person works: their own before the project's, which they trusted.

    Args:
        dirs: where the files stand.
        project: what of the project's folder may be used.
        coordinator: the session's; it asks the person before a program runs.
        collections: they bring commands as well; their names come after all others.
    """

    dirs: AppDirs
    project: ProjectFiles
    coordinator: Coordinator
    collections: CollectionLibrary
    problems: list[str] = attrs.field(factory=list, init=False)

    def commands(self) -> list[SessionCommand]:
        """Read the files; `problems` says which are left out and why. It blocks: call it in a thread.

        The name of one that nobody trusted is nobody else's: it refuses, and says how to trust it.
        """
        self.problems.clear()
        own = of_user(self.dirs.home, _FOLDER, _FOLDER, "**/*.md")
        brought = (of_project(self.project, _FOLDER, folder) for folder in _IN_PROJECTS)
        shared = of_collections(self.collections, _FOLDER, "**/*.md")
        files = chain(own, *brought, shared)
        read = (self._read(file) for file in files if file.path.suffix == ".md")
        return [command for command in read if command is not None]

    def _read(self, file: DefinitionFile) -> SessionCommand | None:
        folders = file.place.parent.parts
        if file.refusal is not None:
            # The refusing command keeps the name, so that what is typed for it never
            # reaches the model as a prompt.
            source = ":".join((_level(file), *folders))
            return refusing_command(file.name, file.refusal, source=source)
        try:
            text = file.read(self.project).decode("utf-8-sig")
            command = parse_command(text, file.path, ":".join(folders))
        except UnicodeDecodeError:
            self.problems.append(f"file {str(file.path)!r}: it is not UTF-8")
        except (AmplifierError, OSError) as error:
            self.problems.append(str(error))
        else:
            return SessionCommand(
                name=command.name,
                make=partial(self._make, file, command),
                description=command.description,
                argument_hint=command.argument_hint,
                source=":".join(filter(None, (_level(file), command.folder))),
            )
        return None

    async def _make(
        self, file: DefinitionFile, command: CommandFile, arguments: str
    ) -> CommandPrompt:
        """Write a command's prompt: programs run once they are allowed.

        A command of the person's own mentions what an instruction in its folder may. A file that a project's command
        mentions is read here, and lies in the project.

        Raises:
            CommandError: a program was not allowed, or the project's command names a file elsewhere.
        """
        is_own = _level(file) == "user"
        text, written = list[str](), list[str]()
        for part in command.parts(arguments):
            match part.kind:
                case "run":
                    text.append(await self._output(command.name, part.text.strip()))
                # Read here, since a session follows mentions with the person's own
                # rights, which a project's file must not borrow.
                case "file" if not is_own:
                    read = partial(self._content, command.name, part.text)
                    text.append(await to_thread.run_sync(read))
                case kind:
                    text.append(f"@{part.text}" if kind == "file" else part.text)
                    # Outputs and files are left out: what they mention was written by
                    # nobody who may.
                    written.append(text[-1])
        metadata: dict[str, JSONValue] = {}
        if command.model is not None:
            metadata["model"] = command.model
        own = None
        if is_own:
            own = WrittenText(" ".join(written), file.path.parent)
        return CommandPrompt(text="".join(text).strip(), written=own, metadata=metadata)

    async def _output(self, name: str, text: str) -> str:
        """Run a program of a command once the person allows it, and return its output, marked.

        Raises:
            CommandError: it was not allowed, or cannot be started.
        """
        from amplifier_kit.processes import (
            Capture,
            Command,
            allowed_environment,
            run_command,
        )

        # Asked through the hooks' own way, so that modes, remembered answers and the
        # record apply as to a tool call.
        question = HookResult.ask(
            f"/{name} wants to run this command:\n{text}",
            options=("Allow once", "Allow always", "Deny"),
            scope=f"running {text!r} for /{name}, in this session",
        )
        decided = await self.coordinator.hooks.host.process_hook_result(
            question, f"command:{name}", "chat"
        )
        if decided.denied:
            raise CommandError(
                f"/{name} was not run: it wants to run {text!r:.200}, and {decided.reason}"
            )
        out = Capture(_MAX_OUTPUT)
        command = Command(
            argv=(_SHELL, "-c", text),
            directory=str(self.dirs.working_dir),
            environment=allowed_environment(),
        )
        try:
            ending = await run_command(
                command, stdout=out.write, stderr=out.write, timeout=_SECONDS
            )
        except OSError as error:
            raise CommandError(f"/{name} cannot run {text!r:.200}: {error}") from error
        lines = [out.text().rstrip()]
        if ending.timed_out:
            lines.append(f"[stopped after {_SECONDS:g} s]")
        elif ending.code:
            lines.append(f"[exit code {ending.code}]")
        return mark_untrusted("\n".join(filter(None, lines)), "command")

    def _content(self, name: str, path: str) -> str:
        """Return a mention with the content of its file, marked; of what is no file the mention alone.

        Raises:
            CommandError: it lies outside the project, holds secrets, is too large, or is no text.
        """
        confined = ConfinedPaths(
            [self.dirs.root], base=self.dirs.working_dir, denied_names=SECRET_NAMES
        )
        try:
            with confined.locate(path) as resolved:
                if resolved.kind != "file":
                    return f"@{path}"
                with resolved.open_file() as file:
                    # One more than allowed, so that a file that just fits is none that
                    # is too large.
                    data = file.read(_MAX_FILE_BYTES + 1)
            if len(data) > _MAX_FILE_BYTES:
                raise CommandError(
                    f"/{name} mentions @{path}, which is larger than {_MAX_FILE_BYTES} bytes"
                )
            return f"@{path}\n{mark_untrusted(data.decode('utf-8-sig'), path)}\n"
        except CommandError:
            raise
        except (AmplifierError, OSError, ValueError) as error:
            raise CommandError(
                f"/{name} mentions @{path}, which cannot be read: {error}"
            ) from error


def _level(file: DefinitionFile) -> str:
    """Say whose a command is, as its name is qualified with."""
    if file.collection is not None:
        return f"collection:{file.collection}"
    return file.level
