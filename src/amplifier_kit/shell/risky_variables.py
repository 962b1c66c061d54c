"""Variables that decide what programs run or whom they trust."""

from __future__ import annotations

import re
from fnmatch import translate
from functools import cache
from typing import Final

__all__ = ["is_steering"]

_STEERING: Final = (
    "PATH", "LD_*", "DYLD_*", "BASH_*", "ENV", "IFS", "PS0", "PS4", "PROMPT_COMMAND", "SHELLOPTS", "BASHOPTS", "SHELL",
    "HOME", "CDPATH", "GIT_*", "*PAGER", "*EDITOR", "VISUAL", "BROWSER", "LESS*", "NODE_OPTIONS", "PYTHONSTARTUP",
    "PYTHONHOME", "PYTHONINSPECT", "PYTHONBREAKPOINT", "PYTHONWARNINGS", "PERL5*", "PERLLIB", "RUBYOPT", "RUBYLIB",
    "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "MAVEN_OPTS", "GRADLE_OPTS", "CARGO_*", "RUSTC*",
    "RUSTFLAGS", "*_COMMAND", "*_PROXY", "*_proxy", "MAKEFLAGS", "PIP_*", "NPM_CONFIG_*", "npm_config_*", "UV_*",
    "TMPDIR", "OPENSSL_CONF", "GCONV_PATH", "LOCPATH", "MANOPT", "SSH_*", "GOFLAGS", "CC", "CXX", "TAR_OPTIONS",
    "XDG_*", "RIPGREP_CONFIG_PATH", "ACK*", "BAT_*", "LUA_INIT*", "MAKEFILES", "GNUMAKEFLAGS", "MFLAGS", "*_ADDOPTS",
    "PYTEST_PLUGINS", "GCC_EXEC_PREFIX", "COMPILER_PATH", "CPPFLAGS", "CFLAGS", "CXXFLAGS", "LDFLAGS", "RUSTDOCFLAGS",
    "ZDOTDIR", "R_PROFILE*", "R_ENVIRON*", "JAVA_HOME", "JAVACMD", "JAVA_OPTS", "MAVEN_*", "M2_HOME", "ANT_*",
    "DOTNET_*", "MSBUILD*", "PHPRC", "PHP_INI_SCAN_DIR", "JULIA_*", "DENO_*", "BUN_*", "BUNDLE_*", "GEM_*",
    "COMPOSER_*", "COREPACK_*", "YARN_*", "PNPM_*", "POETRY_*", "PDM_*", "TOX_*", "PRE_COMMIT_*", "COVERAGE_*",
    "PYTHONUSERBASE", "PYTHONEXECUTABLE", "PYTHONPYCACHEPREFIX", "NODE_TLS_*", "NODE_EXTRA_CA_CERTS", "GOPROXY",
    "GOENV", "GOROOT", "GOTOOLCHAIN", "GONOSUMDB", "GONOSUMCHECK", "GOSUMDB", "GLIBC_TUNABLES", "POSIXLY_CORRECT",
    "TERMINFO*", "NLSPATH",
    "DEBUGINFOD_*", "TS_NODE_*", "JUST_*", "CCACHE_*",
    "ZIP", "ZIPOPT", "UNZIP", "UNZIPOPT", "ZIPINFO*", "XZ_*", "GZIP", "BZIP*", "ZSTD_*", "TAPE", "GLOBIGNORE",
    "DOCKER_*", "CONTAINER_*", "TERM", "TERMCAP", "VIM*", "EXINIT", "GOCACHEPROG",
    "DEPENDENCIES_OUTPUT", "SUNPRO_DEPENDENCIES",
)  # fmt: skip


def is_steering(name: str) -> bool:
    """Tell whether a variable decides what programs run or whom they trust."""
    return _pattern().match(name) is not None


@cache
def _pattern() -> re.Pattern[str]:
    return re.compile("|".join(map(translate, _STEERING)))
