"""Variables that decide what programs run or whom they trust."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Final

__all__ = ["is_steering"]

_STEERING: Final = (
    "PATH", "LD_*", "DYLD_*", "BASH_*", "ENV", "IFS", "PS0", "PS4", "PROMPT_COMMAND", "SHELLOPTS", "BASHOPTS", "SHELL",
    "HOME", "CDPATH", "GIT_*", "*PAGER", "*EDITOR", "VISUAL", "BROWSER", "LESS*", "NODE_OPTIONS", "PYTHONSTARTUP",
    "PYTHONHOME", "PYTHONINSPECT", "PYTHONBREAKPOINT", "PYTHONWARNINGS", "PERL5*", "PERLLIB", "RUBYOPT", "RUBYLIB",
    "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "MAVEN_OPTS", "GRADLE_OPTS", "CARGO_*", "RUSTC*",
    "RUSTFLAGS", "*_COMMAND", "*_PROXY", "*_proxy", "MAKEFLAGS", "PIP_*", "NPM_CONFIG_*", "npm_config_*", "UV_*",
    "TMPDIR", "OPENSSL_CONF", "GCONV_PATH", "LOCPATH", "MANOPT", "SSH_*", "GOFLAGS", "CC", "CXX", "TAR_OPTIONS",
)  # fmt: skip


def is_steering(name: str) -> bool:
    """Tell whether a variable decides what programs run or whom they trust."""
    return any(fnmatchcase(name, pattern) for pattern in _STEERING)
