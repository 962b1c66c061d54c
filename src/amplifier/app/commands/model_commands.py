"""Commands that choose who answers the next turns, and under what settings."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping
from functools import partial
from typing import Final

from anyio import to_thread

from amplifier.app.commands.modes import MODES, ModeName
from amplifier.app.commands.status_commands import answer_of, rows
from amplifier.app.commands.talk import TalkCommands
from amplifier.app.sessions.tool_calls import read_value
from amplifier.app.settings.changes import change
from amplifier.app.settings.layers import Key, read_key
from amplifier.app.settings.settings import Settings, load_settings
from amplifier_kit.commands import (
    CommandAnswer,
    CommandError,
    CommandPrompt,
    SessionCommand,
)
from amplifier_kit.terminal import one_line
from amplifier_sdk.chat import ModelInfo
from amplifier_sdk.contracts import Provider
from amplifier_sdk.errors import AmplifierError, did_you_mean
from amplifier_sdk.secret import withhold

__all__ = ["ModelCommands"]

_AUTO: Final = "auto"
_MAX_MODELS: Final = 40
_AT_ONCE: Final = "ui"
_ANSWERS: Final[Mapping[ModeName, str]] = {
    "ask": "Mode ask: edits and commands ask first.",
    "accept-edits": "Mode accept-edits: edits of files are accepted, all else asks first.",
    "plan": "Mode plan: only tools that read run.",
}


class ModelCommands(TalkCommands):
    """The commands that choose; what they choose holds from the next turn on."""

    def commands(self) -> list[SessionCommand]:
        """Return them."""
        return [
            SessionCommand(name="mode", make=self.mode, argument_hint="[ask|accept-edits|plan] [PROMPT]",
                           description="Show the mode or choose one, as Shift-Tab does"),
            SessionCommand(name="plan", make=self.plan, argument_hint="[PROMPT]", description="Short for /mode plan"),
            SessionCommand(name="do", make=self.work, argument_hint="[PROMPT]", description="Short for /mode ask"),
            SessionCommand(name="provider", make=self.provider, argument_hint="[NAME|auto]",
                           description="List the providers, or choose who answers"),
            SessionCommand(name="model", make=self.model, argument_hint="[NAME|auto]",
                           description="List the models, or choose one"),
            SessionCommand(name="config", make=self.config, argument_hint="[KEY [VALUE]]",
                           description="Show the settings, explain one, or set it for this session"),
        ]  # fmt: skip

    async def mode(self, arguments: str) -> CommandAnswer | CommandPrompt:
        """Show the mode or choose it; what stands behind it is the next prompt."""
        name, _, prompt = arguments.partition(" ")
        if not name:
            return CommandAnswer(text=_ANSWERS[self.talk.modes.current])
        for mode in MODES:
            if mode == name:
                return self._choose(mode, prompt)
        raise CommandError(
            f"There is no mode {name!r:.40}; there are {', '.join(MODES)}{did_you_mean(name, MODES)}"
        )

    async def plan(self, prompt: str) -> CommandAnswer | CommandPrompt:
        """Refuse tools that do more than read."""
        return self._choose("plan", prompt)

    async def work(self, prompt: str) -> CommandAnswer | CommandPrompt:
        """Leave every question to the session's guards."""
        return self._choose("ask", prompt)

    def _choose(self, mode: ModeName, prompt: str) -> CommandAnswer | CommandPrompt:
        self.talk.modes.choose(mode)
        if prompt.strip():
            return CommandPrompt(text=prompt.strip())
        return CommandAnswer(text=_ANSWERS[mode])

    async def provider(self, arguments: str) -> CommandAnswer:
        """List the providers, or choose one."""
        talk, names = self.talk, list(self._every())
        if not arguments:
            lines = [
                f"{'* ' if name == talk.provider else '  '}{name}" for name in names
            ]
            if not talk.provider:
                lines.append("The loop chooses; /provider NAME chooses one.")
            return answer_of(lines)
        if arguments == _AUTO:
            talk.provider = talk.model = None
            return CommandAnswer(text="The loop chooses the provider and the model.")
        if arguments not in names:
            known = ", ".join(names) or "none"
            raise CommandError(
                f"No provider {arguments!r:.60} is mounted: {known}{did_you_mean(arguments, names)}"
            )
        # A model of the provider before means nothing to this one.
        talk.provider, talk.model = arguments, None
        return CommandAnswer(
            text=f"{arguments} answers from the next turn on, with its own model."
        )

    async def model(self, arguments: str) -> CommandAnswer:
        """List the models, or choose one."""
        talk = self.talk
        if arguments == _AUTO:
            talk.model = None
            return CommandAnswer(text="The model is the provider's own, or the plan's.")
        if not arguments:
            listed = rows(await self._models(), talk.columns, widest=40)
            listed = listed or ["No model is known."]
            if talk.model:
                listed.append(f"Chosen: {talk.model}")
            return answer_of(listed)
        name, slash, model = arguments.partition("/")
        # Names of models have slashes too: it is a provider only where one is called
        # so.
        if slash and name in self._every():
            talk.provider, talk.model = name, model
        else:
            talk.model = arguments
        return CommandAnswer(
            text=f"{talk.model} answers from the next turn on.{await self._doubt()}"
        )

    async def _models(self) -> list[tuple[str, str, str]]:
        table = []
        for name, provider in self._asked().items():
            try:
                models = await provider.list_models()
            except Exception as error:  # foreign code
                # a vendor that cannot be reached hides no other
                table.append((name, "", f"not known: {one_line(str(error), 200)}"))
                continue
            table += [(name, model.id, _facts(model)) for model in models[:_MAX_MODELS]]
            if len(models) > _MAX_MODELS:
                table.append((name, "", f"and {len(models) - _MAX_MODELS} more"))
        return table

    async def config(self, arguments: str) -> CommandAnswer:
        """Show settings, explain one, or set one for the session."""
        text, _, value = arguments.partition(" ")
        writer, dirs = self.talk.opened.writer, self.talk.opened.composition.dirs
        folder = None
        if writer is not None:
            folder = writer.folder
        settings = await to_thread.run_sync(
            partial(load_settings, dirs, session=folder)
        )
        if not text:
            if not settings.values:
                return CommandAnswer(
                    text="Every setting has its default; /config KEY VALUE sets one."
                )
            return CommandAnswer(text=_written(withhold(settings.values)))
        try:
            key = read_key(text)
        except ValueError as error:
            raise CommandError(str(error)) from error
        if not value.strip():
            return CommandAnswer(
                text=_explained(settings, text, key, self.talk.columns)
            )
        if folder is None:
            raise CommandError(
                "This session is not stored and has no settings; 'amplifier config set' changes yours"
            )
        try:
            await to_thread.run_sync(
                change, "session", key, read_value(value.strip()), dirs, folder
            )
        except (AmplifierError, OSError) as error:
            raise CommandError(str(error)) from error
        when = "when the session is opened again"
        if key[0] == _AT_ONCE:
            when = "at once"
        return CommandAnswer(text=f"{text} is set for this session; it holds {when}.")

    async def _doubt(self) -> str:
        """Say so where the providers that may be asked do not list the chosen model."""
        for provider in self._asked().values():
            try:
                models = [model.id for model in await provider.list_models()]
            except Exception:  # foreign code: without a list nothing is doubtful
                return ""
            if not models or self.talk.model in models:
                return ""
        return " No provider lists it; an unknown one fails when it is asked."

    def _every(self) -> Mapping[str, Provider]:
        return self.talk.opened.session.coordinator.providers

    def _asked(self) -> dict[str, Provider]:
        return {
            name: one
            for name, one in self._every().items()
            if self.talk.provider in (None, name)
        }


def _facts(model: ModelInfo) -> str:
    facts = [model.display_name] if model.display_name != model.id else []
    if model.context_window:
        facts.append(f"{model.context_window:,} tokens")
    return ", ".join(filter(None, facts))


def _written(value: object) -> str:
    import yaml  # few commands show settings

    plain = json.loads(json.dumps(value, default=str))
    text: str = yaml.safe_dump(plain, allow_unicode=True, sort_keys=False)
    return text.strip()


def _explained(settings: Settings, text: str, key: Key, columns: int) -> str:
    origins = settings.explain(key)
    if not origins:
        return f"{text} is not set."
    lines: list[str] = []
    for origin in origins:
        where = ""
        if origin.path is not None:
            where = f"{origin.path}:{origin.line or 1}"
        value = withhold({str(key[-1]): origin.value}).get(str(key[-1]))
        if isinstance(value, (dict, list)) and value:
            lines.append(f"{origin.scope}  {where}".rstrip())
            lines += textwrap.indent(_written(value), "  ").split("\n")
        else:
            shown = json.dumps(value, ensure_ascii=False, default=str)
            lines += rows([(f"{origin.scope:<8}", shown, where)], columns)
    return "\n".join(lines)
