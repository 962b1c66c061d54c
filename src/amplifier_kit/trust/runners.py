"""Programs that run what a file of the folder says, or what their arguments name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["LAUNCHERS", "RUNNERS", "TASK_FILES"]

_MAKE: Final = ("Makefile", "makefile", "GNUmakefile")
_PACKAGE: Final = ("package.json",)
_GRADLE: Final = (
    "build.gradle",
    "build.gradle.kts",
    "settings.gradle",
    "settings.gradle.kts",
)
_COMPOSE: Final = (
    "compose.yaml",
    "compose.yml",
    "docker-compose.yaml",
    "docker-compose.yml",
)
_LEFTHOOK: Final = (
    "lefthook.yml",
    "lefthook.yaml",
    ".lefthook.yml",
    "lefthook-local.yml",
)
_TASKFILE: Final = ("Taskfile.yml", "Taskfile.yaml")
_PROJECT: Final = ("pyproject.toml",)

RUNNERS: Final[Mapping[str, tuple[str, ...]]] = {
    "ant": ("build.xml",),
    "bun": _PACKAGE,
    "cargo": ("Cargo.toml", "build.rs", ".cargo/config.toml"),
    "cmake": ("CMakeLists.txt",),
    "composer": ("composer.json",),
    "deno": ("deno.json", "deno.jsonc"),
    "direnv": (".envrc",),
    "docker": _COMPOSE,
    "docker-compose": _COMPOSE,
    "eslint": (
        "eslint.config.js",
        "eslint.config.mjs",
        "eslint.config.cjs",
        ".eslintrc.js",
        ".eslintrc.cjs",
    ),
    "fab": ("fabfile.py",),
    "gmake": _MAKE,
    "gradle": _GRADLE,
    "gradlew": _GRADLE,
    "gulp": ("gulpfile.js",),
    "inv": ("tasks.py",),
    "invoke": ("tasks.py",),
    "jest": ("jest.config.js", "jest.config.ts"),
    "just": ("justfile", "Justfile", ".justfile"),
    "lefthook": _LEFTHOOK,
    "make": _MAKE,
    "mise": ("mise.toml", ".mise.toml"),
    "mvn": ("pom.xml",),
    "mvnw": ("pom.xml",),
    "ninja": ("build.ninja",),
    "nox": ("noxfile.py",),
    "npm": _PACKAGE,
    "pnpm": _PACKAGE,
    "podman": _COMPOSE,
    "poe": _PROJECT,
    "pre-commit": (".pre-commit-config.yaml",),
    "prettier": ("prettier.config.js", "prettier.config.mjs", ".prettierrc.js"),
    "pytest": ("conftest.py", "pytest.ini"),
    "rake": ("Rakefile",),
    "task": _TASKFILE,
    "tox": ("tox.ini",),
    "vitest": ("vitest.config.ts", "vite.config.ts"),
    "yarn": _PACKAGE,
}
"""Programs that run what a file of the folder says, and those files."""

TASK_FILES: Final = frozenset(
    (*_PACKAGE, *_COMPOSE, *_LEFTHOOK, *_TASKFILE, "composer.json", "deno.json")
) | {".pre-commit-config.yaml"}
"""Documents among them, in which shell texts stand."""

LAUNCHERS: Final = frozenset({
    "bundle", "bunx", "conda", "devbox", "direnv", "docker", "docker-compose",
    "doppler", "dotenv", "entr", "find",
    "flock", "hatch", "micromamba", "mise", "nix", "nix-shell", "npm", "npx",
    "parallel", "pdm", "pipenv", "pixi",
    "pnpm", "podman", "poetry", "rye", "uv", "uvx", "watch", "watchexec", "yarn",
})  # fmt: skip
"""Programs of whose arguments a later one may be the program that runs."""
