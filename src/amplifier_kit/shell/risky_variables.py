"""Variables of the environment: which a program may be given unasked, and which decide what programs run or trust."""

from __future__ import annotations

import re
from fnmatch import translate
from functools import cache
from typing import Final

__all__ = ["is_harmless", "is_steering", "names_code"]

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


_HARMLESS: Final = (
    "APP_ENV", "BLIS_NUM_THREADS", "CGO_ENABLED", "CI", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS", "CUDA_VISIBLE_DEVICES",
    "DEBIAN_FRONTEND", "DEBUG", "ENVIRONMENT", "FLASK_DEBUG", "FLASK_ENV", "FORCE_COLOR", "GO111MODULE", "GOAMD64",
    "GOARCH", "GOARM", "GOGC", "GOMAXPROCS", "GOOS", "GTEST_COLOR", "HF_HUB_OFFLINE", "HOST", "HUSKY", "LANG",
    "LANGUAGE", "LC_*", "LINES", "LOGLEVEL", "LOG_LEVEL", "MALLOC_ARENA_MAX", "MIX_ENV", "MKL_NUM_THREADS",
    "MYPY_FORCE_COLOR", "NEXT_TELEMETRY_DISABLED", "NODE_ENV", "NO_COLOR", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS",
    "PORT", "PYTHONASYNCIODEBUG", "PYTHONDEVMODE", "PYTHONDONTWRITEBYTECODE", "PYTHONFAULTHANDLER", "PYTHONHASHSEED",
    "PYTHONIOENCODING", "PYTHONTRACEMALLOC", "PYTHONUNBUFFERED", "PYTHONUTF8", "PY_COLORS", "RACK_ENV",
    "RAILS_ENV", "RUST_BACKTRACE", "RUST_LOG", "RUST_TEST_THREADS", "SOURCE_DATE_EPOCH", "TERM_WIDTH",
    "TF_CPP_MIN_LOG_LEVEL", "TOKENIZERS_PARALLELISM", "TZ", "VERBOSE", "[A-Z]", "BAR", "FOO",
)  # fmt: skip
"""What changes the output, the speed or the kind of settings, and names of examples, which no program reads."""

_OF_THE_FOLDER: Final = (
    "CLASSPATH",
    "DJANGO_SETTINGS_MODULE",
    "FLASK_APP",
    "PYTHONPATH",
    "NODE_PATH",
)
"""What names code that a program runs: harmless where it is the folder's own."""


def is_harmless(name: str) -> bool:
    """Tell whether a program may be given a variable unasked: one that is known, with a value that suits it."""
    return _pattern(_HARMLESS + _OF_THE_FOLDER).match(name) is not None


def names_code(name: str) -> bool:
    """Tell whether a variable's value leads to code, which must be the folder's own."""
    # every search path is suspected, known or not
    return name.endswith("PATH") or name in _OF_THE_FOLDER


def is_steering(name: str) -> bool:
    """Tell whether a variable decides what programs run or whom they trust, wherever it is set."""
    return _pattern(_STEERING).match(name) is not None


@cache
def _pattern(names: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(map(translate, names)))
