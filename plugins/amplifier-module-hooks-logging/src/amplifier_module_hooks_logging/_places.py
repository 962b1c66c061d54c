"""Where a session's log is."""

from __future__ import annotations

from pathlib import Path
from string import Formatter
from typing import Final

from amplifier_kit.files.names import folder_name
from amplifier_kit.files.session_folders import session_folder, working_directory
from amplifier_kit.logs.records import LOG_FILE
from amplifier_sdk import ConfigError, Coordinator
from amplifier_sdk.errors import Problem

__all__ = ["log_path"]

_FIELDS: Final = ("project", "session_id")


def log_path(template: str | None, coordinator: Coordinator) -> Path:
    """Return the log of a session.

    Without a template it is `events.jsonl` in the session's folder. What a template's `{session_id}` and `{project}`
    stand for is one folder name each, whatever the session is called.

    Raises:
        ConfigError: the template has other fields, or none that distinguishes sessions.
    """
    if template is None:
        return session_folder(coordinator) / LOG_FILE
    _check(template)
    working = working_directory(coordinator)
    filled = template.format(
        session_id=folder_name(coordinator.session_id),
        project=folder_name(working.resolve().name or "root"),
    )
    return working / Path(filled).expanduser()


def _check(template: str) -> None:
    problem = None
    try:
        fields = [
            (name, form, convert)
            for _, name, form, convert in Formatter().parse(template)
            if name is not None
        ]
    except ValueError as error:
        fields, problem = [], str(error)
    # A format or a conversion could reach into attributes of what is filled in.
    if any(name not in _FIELDS or form or convert for name, form, convert in fields):
        problem = "has other fields than {session_id} and {project}"
    elif problem is None and "session_id" not in [name for name, *_ in fields]:
        problem = "needs {session_id}, else all sessions write one file"
    if problem is not None:
        raise ConfigError(
            [Problem("session_log_template", f"{problem}; got {template!r}")],
            subject="configuration of hooks-logging",
        )
