"""Files that other programs execute: who may write them decides what runs later, outside of every sandbox.

An editor runs the tasks of a folder that it opens, a shell its start-up files, git its hooks, an agent the servers of
its list. The file tools and the shell go by this one table, so that neither is the way round the other.
"""

from __future__ import annotations

from typing import Final

__all__ = ["EXECUTED_NAMES", "GIT_FOLDER"]

GIT_FOLDER: Final = ".git"
"""All of it is git's: its configuration, hooks and attributes name programs, and its other files lead to them."""

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
