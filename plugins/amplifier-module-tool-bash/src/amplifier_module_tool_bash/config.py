"""The module's configuration: what runs unasked, what confines it, and how much one call may do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import attrs

from amplifier_kit.files.executed import EXECUTED_NAMES
from amplifier_kit.shell import CommandRule
from amplifier_kit.shell.decisions import Decision
from amplifier_sdk.bounds import count, seconds

__all__ = ["BashConfig"]


@attrs.frozen(kw_only=True)
class BashConfig:
    """What `config` of the plan may hold.

    Relative paths start at `working_dir`; `~` is the home directory.

    Args:
        working_dir: where the first command starts; default the session's working directory, else the process's.
        timeout: seconds that a command may take when the call does not say.
        max_timeout: the most seconds that a call may ask for.
        max_output_bytes: bytes of each stream that a result holds; of longer ones the head and the tail.
        max_spill_bytes: bytes of a longer stream that are stored in a file.
        max_jobs: commands that run in the background at once.
        env_allow: variables of the process that commands are given, besides the ordinary ones; `*` for any characters.
        env: variables that commands are given, with their values.
        rules: what runs, is asked about, or never runs; with the fields of `amplifier_kit.shell.Rule`.
        default_rules: whether the module's own rules hold besides.
        unlisted: what becomes of a command that no rule is about, and of what cannot be evaluated.
        require_approval: whether a person is asked about every command.
        sandbox: what keeps commands inside; `auto` is the first that works of bubblewrap and Landlock.
        require_sandbox: whether nothing runs without one.
        network: whether commands reach the network.
        tool_caches: whether the caches of package managers and compilers may be written in a sandbox.
        writable_paths: folders in which commands may write, besides the working directory.
        protected_paths: what stays as it is inside those folders; default files that other programs execute.
        hidden_paths: what commands cannot read.
    """

    working_dir: str | None = None
    timeout: float = attrs.field(default=120.0, validator=seconds)
    max_timeout: float = attrs.field(
        default=600.0, validator=[seconds, attrs.validators.le(3600)]
    )
    max_output_bytes: int = attrs.field(default=30_000, validator=count)
    max_spill_bytes: int = attrs.field(default=64 * 1024 * 1024, validator=count)
    max_jobs: int = attrs.field(default=8, validator=count)
    env_allow: tuple[str, ...] = ()
    env: Mapping[str, str] = attrs.field(factory=dict)
    rules: tuple[CommandRule, ...] = ()
    default_rules: bool = True
    unlisted: Decision = "ask"
    require_approval: bool = False
    sandbox: Literal["auto", "bubblewrap", "landlock", "none"] = "auto"
    require_sandbox: bool = False
    network: bool = False
    tool_caches: bool = True
    writable_paths: tuple[str, ...] = ()
    protected_paths: tuple[str, ...] = (
        ".git/hooks", ".git/config", ".git/config.worktree", ".git/commondir", ".git/objects/info/alternates",
        *EXECUTED_NAMES,
    )  # fmt: skip
    hidden_paths: tuple[str, ...] = (
        "~/.ssh", "~/.aws", "~/.azure", "~/.gnupg", "~/.kube", "~/.docker", "~/.netrc", "~/.git-credentials",
        "~/.config/gh", "~/.config/gcloud", "~/.password-store", "~/.pypirc", "~/.npmrc",
    )  # fmt: skip
