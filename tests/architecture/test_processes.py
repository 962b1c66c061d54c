"""Programs start in few places, child Pythons in one: each line here says why it is another."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final

from tests.architecture.source_tree import SourceFile, source_files

PYTHONS: Final = "src/amplifier_kit/processes/pythons.py"
PLUGINS: Final = "plugins/amplifier-module-"
STARTERS: Final[Mapping[str, str]] = {
    PYTHONS: "the one way to start a child Python",
    "src/amplifier_kit/processes/_spawn.py": "the command of a process tree, in the keeping process",
    "src/amplifier_kit/processes/_processtable.py": "macOS has no other way to list processes",
    PLUGINS
    + "provider-azure-openai/src/amplifier_module_provider_azure_openai/tokens.py": "the person's command",
    PLUGINS
    + "provider-local/src/amplifier_module_provider_local/_fetch_child.py": "pip or uv, killed with the child",
    "src/amplifier/cli/_mcp_servers.py": "the person's browser",
    "src/amplifier/cli/_chat/_keyboard.py": "the person's editor",
    "src/amplifier/cli/config.py": "the person's editor",
    "src/amplifier/cli/profile.py": "the person's editor",
    "src/amplifier/cli/trace.py": "the person's browser",
    "src/amplifier/testing/postgres.py": "the server of tests, which stays when its starter ends",
}
"""The files that start programs."""

SEARCHERS: Final = {
    "src/amplifier_kit/processes/programs.py": "the one search for programs"
}
INTERPRETERS: Final[Mapping[str, str]] = {
    PYTHONS: "the one way to start a child Python",
    "src/amplifier_kit/processes/programs.py": "the folder of this environment's programs",
    "src/amplifier/app/doctor/environment.py": "tells it",
    "src/amplifier/app/sources/installers.py": "tells uv which environment to install into",
    PLUGINS
    + "provider-local/src/amplifier_module_provider_local/_fetch_child.py": "tells uv, and the person",
    PLUGINS
    + "provider-local/src/amplifier_module_provider_local/server.py": "tells the person",
}
"""The files that name this interpreter."""

FORMS: Final = ("l", "le", "lp", "lpe", "v", "ve", "vp", "vpe")
STARTS: Final = frozenset(
    {
        *(
            "subprocess.Popen",
            "subprocess.run",
            "subprocess.call",
            "subprocess.check_call",
            "subprocess.check_output",
        ),
        *(
            "subprocess.getoutput",
            "subprocess.getstatusoutput",
            "anyio.open_process",
            "anyio.run_process",
        ),
        *(
            "os.system",
            "os.popen",
            "os.posix_spawn",
            "os.posix_spawnp",
            "os.fork",
            "os.forkpty",
            "pty.fork",
        ),
        *(
            "pty.spawn",
            "os.startfile",
            "click.edit",
            "click.launch",
            "click.echo_via_pager",
            "webbrowser.open",
        ),
        *(
            f"os.{kind}{form}"
            for kind in ("exec", "spawn")
            for form in ("l", "le", "lp", "lpe", "v", "ve", "vp", "vpe")
        ),
    }
)
MODULES: Final = frozenset(
    {
        "multiprocessing",
        "concurrent.futures.process",
        "anyio.to_process",
        "anyio.to_interpreter",
        "webbrowser",
        "pty",
    }
)


@cache
def _uses(file: SourceFile) -> frozenset[str]:
    """Return the dotted names that a file reads, with what its imports call them; types are no use."""
    return frozenset(_read(file))


def _read(file: SourceFile) -> Iterator[str]:
    names = {name.name.rpartition(".")[2]: name.name for name in file.imports}
    yield from names.values()
    nodes: list[ast.AST] = [file.tree]
    for node in nodes:
        nodes += [
            child for child in ast.iter_child_nodes(node) if child not in _types(node)
        ]
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            yield f"{names.get(node.value.id, node.value.id)}.{node.attr}"


def _types(node: ast.AST) -> list[ast.AST | None]:
    return [getattr(node, "annotation", None), getattr(node, "returns", None)]


def _files_with(wanted: frozenset[str]) -> set[str]:
    return {str(file) for file in source_files() if wanted & _uses(file)}


def test_programs_start_where_a_reason_is_given() -> None:
    assert _files_with(STARTS) == STARTERS.keys()


def test_no_library_that_starts_processes_by_itself_is_used() -> None:
    assert _files_with(MODULES) == set()


def test_programs_are_searched_in_one_place() -> None:
    assert _files_with(frozenset({"shutil.which"})) == SEARCHERS.keys()


def test_this_interpreter_is_named_where_a_reason_is_given() -> None:
    names = frozenset({"sys.executable", "sys._base_executable", "sys.orig_argv"})

    assert _files_with(names) == INTERPRETERS.keys()
