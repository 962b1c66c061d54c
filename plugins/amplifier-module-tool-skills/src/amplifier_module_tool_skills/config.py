"""The module's configuration."""

from __future__ import annotations

from typing import Literal

import attrs

from amplifier_sdk.bounds import amount, count
from amplifier_sdk.errors import ConfigError
from amplifier_sdk.results import InjectionRole

__all__ = ["SkillsConfig", "Visibility"]


@attrs.frozen(kw_only=True)
class Visibility:
    """How the model learns which skills there are without asking.

    Args:
        enabled: whether there is a list at all.
        max_skills_visible: the maximum number of skills in the list.
        inject_role: the role of the message with the list.
        ephemeral: send it with every request, behind all messages, instead of once in the history.
        priority: when the module is asked among other handlers; lower is earlier.
    """

    enabled: bool = True
    max_skills_visible: int = attrs.field(default=50, validator=count)
    inject_role: InjectionRole = "system"
    ephemeral: bool = False
    priority: int = 20


@attrs.frozen(kw_only=True)
class SkillsConfig:
    """What `config` of the plan may hold.

    Args:
        skills_dirs: folders of skills, the first one with precedence; default see the README.
        skills_dir: one such folder.
        skills: another name of `skills_dirs`.
        untrusted: what becomes of a project's skills that nobody trusted: they are left out, or can be looked up and
            loaded as texts that give no orders.
        visibility: how the model learns which skills there are.
        max_characters: how much of a text one result holds.
        max_file_bytes: how large a file of a skill may be.
        pin_characters: how many characters of loaded skills stay in the model's view whatever is left out of it.
    """

    skills_dirs: tuple[str, ...] | str | None = None
    skills_dir: str | None = None
    skills: tuple[str, ...] | str | None = None
    untrusted: Literal["leave_out", "mark"] = "leave_out"
    visibility: Visibility = Visibility()
    max_characters: int = attrs.field(default=50_000, validator=count)
    max_file_bytes: int = attrs.field(default=1_000_000, validator=count)
    pin_characters: int = attrs.field(default=40_000, validator=amount)

    def folders(self) -> tuple[str, ...] | None:
        """Return the folders that are configured; `None` when none are.

        Raises:
            ConfigError: two keys name them, or an entry is no folder of this machine.
        """
        keys = {
            "skills_dirs": self.skills_dirs,
            "skills_dir": self.skills_dir,
            "skills": self.skills,
        }
        given = {key: value for key, value in keys.items() if value is not None}
        if len(given) > 1:
            problem = (
                f"says the same as {' and '.join(list(given)[1:])}; keep one of them"
            )
            raise ConfigError.of(next(iter(given)), problem)
        for key, value in given.items():
            entries = (value,) if isinstance(value, str) else value
            for entry in entries:
                _check(key, entry)
            return entries
        return None


def _check(key: str, entry: str) -> None:
    if not entry.strip() or "\0" in entry:
        raise ConfigError.of(key, f"names a folder; got {entry!r}")
    # A missing folder is no error, so an address would be passed over in silence.
    if "://" in entry or entry.startswith("@"):
        problem = f"names folders of this machine; fetch {entry!r} and name the folder it is in"
        raise ConfigError.of(key, problem)
