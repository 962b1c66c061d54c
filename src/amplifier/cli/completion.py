"""`amplifier completion`: what lets a shell complete commands, options and names."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import click
from click.shell_completion import get_completion_class

from amplifier.cli._options import flag
from amplifier.cli._terminal import notice, say

__all__ = ["SHELLS", "completion", "install_for_this_shell"]

SHELLS: Final = ("bash", "fish", "zsh")
_PROGRAM: Final = "amplifier"
_VARIABLE: Final = "_AMPLIFIER_COMPLETE"


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@flag(
    "--install", help="Write it where the shell looks for it, instead of printing it."
)
@click.pass_context
def completion(ctx: click.Context, shell: str, install: bool) -> None:
    """Print the script that completes commands, options and names in SHELL.

    For bash: eval "$(amplifier completion bash)". For fish: amplifier completion fish | source. For zsh as for bash,
    after compinit.
    """
    script = _script(ctx.find_root().command, shell)
    if install:
        _install(script, shell)
    else:
        say(script.rstrip("\n"))


def install_for_this_shell(ctx: click.Context) -> None:
    """Install the completion for the shell that `SHELL` names, and end."""
    shell = Path(os.environ.get("SHELL", "")).name
    if shell not in SHELLS:
        raise click.UsageError(
            f"completion is there for {', '.join(SHELLS)}, and SHELL names {shell or 'none'};"
            " 'amplifier completion SHELL --install' installs it for one of them"
        )
    _install(_script(ctx.command, shell), shell)
    ctx.exit()


def _script(root: click.Command, shell: str) -> str:
    found = get_completion_class(shell)
    assert found is not None  # the shells are click's own
    return found(root, {}, _PROGRAM, _VARIABLE).source()


def _install(script: str, shell: str) -> None:
    path = _place(shell)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(script, encoding="utf-8")
    say(str(path))
    notice(_NEXT[shell].format(folder=path.parent))


def _place(shell: str) -> Path:
    """Return where a shell looks for the script, or, of zsh, where it can be configured to look."""
    variable, default, file = _PLACES[shell]
    named = os.environ.get(variable, "")
    if named.startswith("/"):
        return Path(named, file)
    return Path.home() / default / file


_PLACES: Final = {
    "bash": (
        "XDG_DATA_HOME",
        ".local/share",
        f"bash-completion/completions/{_PROGRAM}",
    ),
    "fish": ("XDG_CONFIG_HOME", ".config", f"fish/completions/{_PROGRAM}.fish"),
    "zsh": ("XDG_DATA_HOME", ".local/share", f"zsh/site-functions/_{_PROGRAM}"),
}
_NEXT: Final = {
    "bash": "A new shell has it, where the package bash-completion is installed.",
    "fish": "A new shell has it.",
    "zsh": "Put this before compinit in ~/.zshrc: fpath=({folder} $fpath)",
}
