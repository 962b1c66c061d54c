"""Options that several commands have."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, ParamSpec, Protocol, TypeVar

import click

from amplifier.cli._shell_completion import profiles, providers

if TYPE_CHECKING:
    from amplifier.app.plans.base_plans import PlanOptions
    from amplifier.app.sessions.selection import SessionSelector
    from amplifier.cli._approval import Consent
    from amplifier_sdk.jsontypes import JSONObject

__all__ = [
    "SCOPES",
    "ChosenSession",
    "OptionGroup",
    "add_debug",
    "answer_options",
    "consent_options",
    "current_plan_option",
    "debug_option",
    "flag",
    "is_debug",
    "made_of_options",
    "offline_option",
    "scope_option",
    "serving_options",
    "session_choices",
    "session_options",
    "store_options",
    "turn_options",
    "yes_option",
]

P = ParamSpec("P")
R = TypeVar("R")

SCOPES: Final = ("local", "project", "user")
"""Whose settings a command can change."""

EFFORTS: Final = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
"""How much a model may be asked to reason; each vendor knows some of them."""

_DEBUG: Final = "amplifier.debug"
_CHOICES: Final = "amplifier.choices"


def _remember(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        ctx.meta[_DEBUG] = True


def is_debug(ctx: click.Context) -> bool:
    """Whether tracebacks are wanted: `--debug`, or `AMPLIFIER_DEBUG` set to anything but nothing and 0."""
    # In the context's `meta`, which groups and their commands share: the option may
    # stand before either.
    return bool(ctx.meta.get(_DEBUG)) or os.environ.get("AMPLIFIER_DEBUG", "0") not in {
        "",
        "0",
    }


flag: Final = partial(click.option, is_flag=True)
"""Adds an option that is there or not."""

debug_option: Final = flag(
    "--debug",
    expose_value=False,
    callback=_remember,
    help="Show tracebacks and the whole log.",
)
"""Adds `--debug`, which may stand before or after the command's name."""


def add_debug(command: click.Command) -> None:
    """Give a command `--debug`, or of a group its commands, and itself where it runs without one."""
    if isinstance(command, click.Group):
        for each in command.commands.values():
            add_debug(each)
        if not command.invoke_without_command:
            return
    # a command may have two names, and be asked for several times
    if all(parameter.name != "debug" for parameter in command.params):
        debug_option(command)


scope_option: Final = click.option(
    "--scope",
    type=click.Choice(SCOPES),
    default="user",
    show_default=True,
    help="Whose settings: the person's own, the project's, or the person's own of this project.",
)
"""Adds `--scope`, which says whose settings are changed."""

yes_option: Final = flag("-y", "--yes", help="Do not ask.")
"""Adds `--yes`, which answers what the command would ask before it goes ahead."""

offline_option: Final = flag(
    "--offline", help="Fetch nothing; AMPLIFIER_OFFLINE=1 does the same."
)
"""Adds `--offline`, which keeps everything from being fetched."""


class AddsOption(Protocol):
    """Adds one or more options to a command, as what `click.option` returns does."""

    def __call__(self, command: Callable[P, R], /) -> Callable[P, R]:
        """Return the command with them."""
        ...


class OptionGroup:
    """Adds options that commands have together.

    Args:
        options: what adds them, in the order in which help lists them.
    """

    def __init__(self, *options: AddsOption) -> None:
        self._options = options

    def __call__(self, command: Callable[P, R], /) -> Callable[P, R]:
        """Add them; decorators apply from the bottom up."""
        for option in reversed(self._options):
            command = option(command)
        return command


class ChosenSession(NamedTuple):
    """What a person chose of the session that a command works in."""

    profile: str | None = None
    bundle: str | None = None
    keep: bool | None = None
    provider: str | None = None
    model: str | None = None
    tool: str | None = None
    plan: Path | None = None
    backend: str = "asyncio"
    yes: bool = False
    accept_edits: bool = False
    max_turns: int | None = None
    max_cost: Decimal | None = None
    system: str | None = None
    effort: str | None = None
    allow_tool: tuple[str, ...] = ()
    deny_tool: tuple[str, ...] = ()
    with_current_plan: bool = False
    output: str = "text"
    schema: Path | None = None
    agent: str | None = None
    file: tuple[Path, ...] = ()
    ask_later: bool = False
    mentions: bool = False
    store: str | None = None
    namespace: str | None = None

    @property
    def says_what_it_is_made_of(self) -> bool:
        """Whether anything was chosen of what the session is made of, or of whether it is stored."""
        chosen = (self.profile, self.bundle, self.plan, self.provider, self.model)
        given = (*chosen, self.tool, self.keep, self.max_turns, self.max_cost)
        shaped = (self.system, self.effort, self.allow_tool or None)
        stored = (self.store, self.namespace)
        return any(
            each is not None
            for each in (*given, *shaped, *stored, self.deny_tool or None)
        )

    @property
    def needs_a_prompt(self) -> bool:
        """Whether anything was chosen that only one turn has, and no chat."""
        return (
            self.output != "text"
            or self.schema is not None
            or self.agent is not None
            or self.ask_later
            or bool(self.file)
        )

    @property
    def consent(self) -> Consent:
        """What is allowed without a question."""
        from amplifier.cli._approval import Consent

        return Consent(everything=self.yes, edits=self.accept_edits)

    def plan_options(self) -> PlanOptions:
        """Return what decides what the session is made of.

        Raises:
            click.UsageError: two of profile, bundle and plan were chosen.
        """
        from amplifier.app.plans.base_plans import PlanOptions

        made_of = [
            f"--{name}"
            for name in ("profile", "bundle", "plan")
            if getattr(self, name) is not None
        ]
        if len(made_of) > 1:
            raise click.UsageError(
                f"{' and '.join(made_of)} say what the session is made of; use one of them"
            )
        return PlanOptions(
            profile=self.profile if self.bundle is None else f"bundle:{self.bundle}",
            provider=self.provider,
            model=self.model,
            first_tool=self.tool,
            file=self.plan,
            limits=self._limits(),
            effort=self.effort,
            system=self.system,
            denied_tools=self.deny_tool,
            allowed_tools=self.allow_tool,
        )

    def _limits(self) -> JSONObject:
        limits: JSONObject = {}
        if self.max_turns is not None:
            limits["iterations"] = self.max_turns
        if self.max_cost is not None:
            # as text: a plan is JSON, and 0.1 dollars are no binary fraction
            limits["cost_usd"] = str(self.max_cost)
        return limits

    def wanted(
        self, *, resume: str | None = None, latest: bool = False
    ) -> SessionSelector:
        """Return which session is asked for: a new one, the one that `resume` names, or the latest.

        Raises:
            click.UsageError: it was said whether to keep a session that is stored already, or a new one was to be
                resumed with the plan of now.
        """
        from amplifier.app.sessions.selection import SessionSelector
        from amplifier.app.store.choice import StoreChoice

        if self.keep is not None and (latest or resume is not None):
            raise click.UsageError(
                "--keep and --no-keep are about a new session; a resumed one is stored"
            )
        if self.keep is False and (self.store or self.namespace):
            raise click.UsageError(
                "--store and --namespace say where a session is stored, --no-keep that it is not"
            )
        if self.with_current_plan and not latest and resume is None:
            raise click.UsageError(
                "--with-current-plan is about a stored session; name one with --resume"
            )
        return SessionSelector(
            resume=resume,
            latest=latest,
            keep=self.keep,
            with_current_plan=self.with_current_plan,
            choice=StoreChoice(store=self.store, namespace=self.namespace),
        )


def session_choices(ctx: click.Context) -> ChosenSession:
    """Return what was chosen by the options of `session_options` or `made_of_options`; without any the defaults."""
    given = ctx.meta.get(_CHOICES)
    if given:
        return ChosenSession(**given)
    return ChosenSession()


def _choose(ctx: click.Context, parameter: click.Parameter, value: object) -> None:
    # Gathered beside the parameters, so that a command does not list fifteen of them to
    # hand them on.
    known = ctx.meta.setdefault(_CHOICES, {})
    # a group's option holds for its command, which has it too
    if value is not None or parameter.name not in known:
        known[parameter.name] = value


def _dollars(text: str) -> Decimal:
    """Read an amount of US dollars above zero."""
    with suppress(ArithmeticError):
        amount = Decimal(text)
        if amount.is_finite() and amount > 0:
            return amount
    raise click.BadParameter(f"{text!r} is no amount above zero, such as 0.50")


def _instruction(
    ctx: click.Context, parameter: click.Parameter, value: str | None
) -> None:
    """Take a text, or that of the file whose name stands behind an `@`."""
    if value is not None and value.startswith("@"):
        # with the runtime: few commands read a file
        from amplifier_kit.files.documents import read_text

        value = read_text(Path(value[1:]))
    _choose(ctx, parameter, value)


_chosen = partial(click.option, expose_value=False, callback=_choose)
made_of_options: Final = OptionGroup(
    _chosen(
        "-P",
        "--profile",
        metavar="NAME",
        help="The profile; default the one of the settings.",
        shell_complete=profiles,
    ),
    _chosen(
        "-B", "--bundle", metavar="NAME", help="The bundle, in place of a profile."
    ),
    _chosen(
        "--plan",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="A mount plan (YAML or JSON) instead of profile and settings.",
    ),
)
"""Adds what decides what a session is made of; `session_choices` returns it."""

_STORE_HELP = "Where sessions stand: files, or a URL that several machines share; default as the settings say."
_NAMESPACE_HELP = "Whose sessions are meant in such a store; default the name of the project's folder."
store_options: Final = OptionGroup(
    _chosen("--store", metavar="STORE", help=_STORE_HELP),
    _chosen("--namespace", metavar="NAME", help=_NAMESPACE_HELP),
)
"""Adds `--store` and `--namespace`; `session_choices` returns them."""

_FIRST_TOOL = _chosen(
    "--tool", metavar="NAME", help="The tool that the model must call first."
)
_BACKEND = _chosen(
    "--backend",
    type=click.Choice(["asyncio", "trio"]),
    default="asyncio",
    show_default=True,
    help="The event loop; trio needs the extra amplifier[trio].",
)
_ASKED = (
    _chosen(
        "-p",
        "--provider",
        metavar="ID",
        help="The provider module; default the profile's.",
        shell_complete=providers,
    ),
    _chosen(
        "-m",
        "--model",
        metavar="NAME",
        help="The model to ask for; default the provider's.",
    ),
    _FIRST_TOOL,
    _chosen(
        "--max-turns",
        type=click.IntRange(min=1),
        metavar="N",
        help="Call the model at most so often for one prompt; a lower limit of the session counts.",
    ),
    _chosen(
        "--max-cost",
        type=_dollars,
        metavar="USD",
        help="Spend at most so much for one prompt; a lower limit of the session counts.",
    ),
    _chosen(
        "--keep/--no-keep",
        default=None,
        help="Keep a new session; default as the settings say.",
    ),
    _BACKEND,
)
_ALLOW_TOOL = _chosen(
    "--allow-tool",
    multiple=True,
    metavar="NAME",
    help="Let a tool run unasked this time, where no rule denies it or asks; * stands for any characters.",
)
_SYSTEM = click.option(
    "--system",
    metavar="TEXT|@FILE",
    expose_value=False,
    callback=_instruction,
    help="The agent's instruction, in place of the profile's: a text, or that of a file.",
)
_SHAPED = (
    _SYSTEM,
    _chosen(
        "--effort",
        type=click.Choice(EFFORTS),
        help="How much the model is to reason; what it does not support is reported.",
    ),
    _ALLOW_TOOL,
    _chosen(
        "--deny-tool",
        multiple=True,
        metavar="NAME",
        help="Deny a tool in this session from now on, whatever allows it; * stands for any characters.",
    ),
)
consent_options: Final = OptionGroup(
    _chosen(
        "-y",
        "--yes",
        is_flag=True,
        help="Allow whatever would be asked; each is reported.",
    ),
    _chosen(
        "--accept-edits",
        is_flag=True,
        help="Accept edits of files without asking; deletions, commands and the network are asked about.",
    ),
)
"""Adds what is allowed without a question; `session_choices` returns it."""

current_plan_option: Final = _chosen(
    "--with-current-plan",
    is_flag=True,
    help="Resume with what a new session would be made of now, and record that, instead of what is recorded.",
)
"""Adds what decides which plan a stored session is resumed with."""

_OUTPUT = _chosen(
    "--output",
    type=click.Choice(["text", "json", "ndjson"]),
    default="text",
    show_default=True,
    help="The answer as it comes, one JSON object at the end, or a line of JSON for each event.",
)
session_options: Final = OptionGroup(
    made_of_options, consent_options, *_ASKED, *_SHAPED, store_options
)
"""Adds all of that, and what decides who answers and how; `session_choices` returns it."""

turn_options: Final = OptionGroup(
    session_options,
    _OUTPUT,
    _chosen(
        "--schema",
        metavar="FILE",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="The JSON Schema of the answer: it is JSON that fits, or the command fails.",
    ),
    _chosen(
        "--file",
        metavar="PATH",
        multiple=True,
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="An image, a PDF, a text, sound or video that the model sees with the prompt; may be given several times.",
    ),
    _chosen(
        "--agent",
        metavar="MODULE:NAME",
        help="The Agent that answers, by the Python module that has it; no session is stored.",
    ),
    _chosen(
        "--ask-later",
        is_flag=True,
        help="Store what would be asked, and stop: 'amplifier answer' answers it, and continues the turn.",
    ),
    _chosen(
        "--mentions",
        is_flag=True,
        help="Follow @FILE in what is piped in as well.",
    ),
    current_plan_option,
)
"""Adds all of that, and what decides how one turn is given and written; `session_choices` returns it."""

answer_options: Final = OptionGroup(_OUTPUT, _BACKEND, store_options)
"""Adds what decides how a turn that is continued is written, and where its session stands."""

serving_options: Final = OptionGroup(
    made_of_options,
    consent_options,
    *(
        option
        for option in (*_ASKED, *_SHAPED)
        if option not in (_FIRST_TOOL, _ALLOW_TOOL, _SYSTEM)
    ),
)
"""Adds them to a command whose sessions others drive, but for what is said of one turn, or to one agent."""
