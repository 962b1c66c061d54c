"""The rules unless `default_rules` is off: the table of known programs, and what never runs."""

from __future__ import annotations

from typing import Final

from amplifier_kit.shell import CommandRule, ShellPolicy, standard_table
from amplifier_kit.shell.decisions import Decision

__all__ = ["DEFAULT_RULES", "make_policy"]

_DENY: Final = CommandRule(
    decision="deny",
    commands=(
        "rm ** /|//|/.|/[*]|/bin|/boot|/dev|/etc|/home|/lib|/lib64|/opt|/proc|/root|/sbin|/srv|/sys|/usr|/var|/Users",
        "rm ** --no-preserve-root",
        "mkfs*",
        "wipefs|fdisk|sfdisk|parted|mkswap",
        "dd ** of=/dev/sd*|of=/dev/nvme*|of=/dev/vd*|of=/dev/hd*|of=/dev/disk*|of=/dev/mmc*",
        "shutdown|reboot|halt|poweroff",
    ),
    reason="it would destroy more than a session may risk",
    match=(
        "rm -rf /",
        "rm -rf /usr",
        "mkfs.ext4 /dev/sda1",
        "dd if=/dev/zero of=/dev/sda",
    ),
    not_match=("rm -rf build", "rm x", "dd if=a of=b"),
)

_ASK: Final = (
    CommandRule(
        decision="ask",
        commands=("sudo|doas|su|pkexec",),
        reason="it acts with another person's rights",
    ),
    CommandRule(
        decision="ask",
        commands=("git ** --receive-pack*|--upload-pack*|--exec*|--config-env*",),
        reason="it says which program git runs",
        match=("git push --receive-pack=x",),
        not_match=("git push",),
    ),
)
"""What an answer to a command that looks alike does not cover."""


DEFAULT_RULES: Final = (*_ASK, _DENY)
"""The default rules, which count before the table."""


def make_policy(
    rules: tuple[CommandRule, ...] = (),
    unlisted: Decision = "ask",
    *,
    has_defaults: bool = True,
) -> ShellPolicy:
    """Return what decides on commands.

    Args:
        rules: those of the configuration; they come first, so that a message about `rules[0]` means its first one.
        unlisted: what becomes of a command that no rule and no usage of the table fits.
        has_defaults: whether the default rules and the table hold besides.
    """
    if not has_defaults:
        return ShellPolicy(rules, unlisted)
    return ShellPolicy((*rules, *DEFAULT_RULES), unlisted, standard_table())
