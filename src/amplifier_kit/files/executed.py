"""Files that other programs execute: who may write them decides what runs later, outside of every sandbox.

An editor runs the tasks of a folder that it opens, a shell its start-up files, git its hooks, an agent the servers of
its list. The file tools and the shell go by this one table, so that neither is the way round the other.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

__all__ = ["BARE_REPOSITORY", "EXECUTED_NAMES", "GIT_FOLDER", "is_in_repository"]

GIT_FOLDER: Final = ".git"
"""All of it is git's: its configuration, hooks and attributes name programs, and its other files lead to them."""

BARE_REPOSITORY: Final = "a git repository without a work tree"
"""What errors call the rule for folders that git takes for one, whatever they are called."""

_REPOSITORY: Final = frozenset({"head", "objects", "refs"})
"""What makes a folder one; git obeys the `config` and the hooks in it when it runs there."""

EXECUTED_NAMES: Final = (
    # shells and what they load on entering a folder
    ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".zshrc", ".zshenv",
    ".zprofile", ".zlogin", ".zlogout", ".kshrc", ".cshrc", ".tcshrc", ".login", ".logout", ".inputrc", ".xprofile",
    ".xinitrc", ".xsession", ".envrc", ".direnv", ".mise.toml", "mise.toml", ".tmux.conf", ".screenrc", ".xonshrc",
    "config.fish", "config.nu", "env.nu", ".ipython",
    # editors
    ".vscode", ".idea", ".zed", ".fleet", ".nova", ".devcontainer", ".devcontainer.json", "*.code-workspace",
    ".vimrc", ".nvimrc", ".exrc", ".nvim.lua", ".dir-locals.el", ".emacs", ".emacs.d", ".sublime-project",
    "*.sublime-project", ".vim", ".nvim", ".lvimrc", "_vimrc", "_exrc", ".helix", ".vs",
    # debuggers
    ".gdbinit", ".lldbinit", ".pdbrc",
    # agents: their hooks and lists of MCP servers
    ".amplifier", ".claude", ".mcp.json", "mcp.json", ".cursor", ".windsurf", ".gemini", ".codex", ".aider.conf.yml",
    ".qwen", ".continue", ".crush.json", ".opencode", "opencode.json",
    # what builds and package managers load before anything else
    ".mvn", ".bazelrc", ".cargo", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs",
    # git, other systems of versions, and what keeps their hooks
    ".hg", ".svn", ".jj",
    ".gitconfig", ".gitmodules", ".husky", ".githooks", ".lefthook", "lefthook.yml", ".pre-commit-config.yaml",
    # what reaches other machines, or starts with the session of the person
    ".ssh", "crontab", "autostart", "LaunchAgents", "LaunchDaemons", "systemd",
)  # fmt: skip
"""Names, at any depth, of files that programs execute or obey, and of folders of such files."""


def is_in_repository(root: Sequence[str], below: Sequence[str]) -> bool:
    """Tell whether a path lies in what git takes for a repository without a work tree, or would make a folder one.

    Args:
        root: the real parts of a directory that may be used.
        below: the real parts below it; nothing need be there.
    """
    for index, name in enumerate(below):
        folder = os.path.join("/", *root, *below[:index])
        missing = _REPOSITORY - {name.casefold()}
        names = ["HEAD" if part == "head" else part for part in sorted(missing)]
        if all(os.path.lexists(os.path.join(folder, each)) for each in names):
            return True
    return False
