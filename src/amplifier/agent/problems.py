"""What is wrong with the arguments of an agent: all of it at once, by their names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from os import PathLike
from re import fullmatch
from typing import TYPE_CHECKING, Final, TypeAlias, get_args

from amplifier.agent.models import model_problem
from amplifier.kernel.plans.plan import MountPlanValidator
from amplifier.kernel.sessions.answers import OutputMode
from amplifier_sdk.errors import Problem, did_you_mean
from amplifier_sdk.hookspecs import KINDS

if TYPE_CHECKING:
    from amplifier.agent.modules import ModuleTable
    from amplifier.kernel.modules.loader import ModuleLoader
    from amplifier_sdk.jsontypes import JSONObject

__all__ = ["argument_problems", "plan_problems", "sub_agent_problems"]

_Check: TypeAlias = Callable[[str, object], Iterator[Problem]]

_NAME_PATTERN: Final = r"[A-Za-z][A-Za-z0-9_-]{0,63}"

_PATHS: Final = {
    "session.limits.cost_usd": "limits.cost",
    "session.limits": "limits",
    "session.orchestrator": "loop",
    "session.context": "context",
}
"""How an agent calls what stands at the beginning of a plan's path."""


def argument_problems(**arguments: object) -> Iterator[Problem]:
    """Find what is wrong with an agent's arguments before anything is made of them."""
    for key, given in arguments.items():
        yield from _CHECKS[key](key, given)


def _of_model(_: str, given: object) -> Iterator[Problem]:
    if given is not None and (problem := model_problem(given)) is not None:
        yield problem


def _of_name(key: str, given: object) -> Iterator[Problem]:
    if not isinstance(given, str) or fullmatch(_NAME_PATTERN, given) is None:
        yield Problem(key, f"expected letters, digits, - and _; got {given!r:.80}")


def _of_list(key: str, given: object) -> Iterator[Problem]:
    # of a text each letter would be an entry
    if isinstance(given, str) or not isinstance(given, Sequence):
        yield Problem(key, f"expected a list; got {given!r:.80}")


def _of_mapping(key: str, given: object) -> Iterator[Problem]:
    if given is not None and not isinstance(given, Mapping):
        yield Problem(key, f"expected a mapping; got {given!r:.80}")


def _of_plan(key: str, given: object) -> Iterator[Problem]:
    if given is not None and not isinstance(given, (Mapping, PathLike)):
        yield Problem(key, f"expected a plan or the path of one; got {given!r:.80}")


def _of_validators(key: str, given: object) -> Iterator[Problem]:
    yield from _of_list(key, given)
    if isinstance(given, Sequence) and not isinstance(given, str):
        wanted = "expected a function of the context and the answer"
        for index, each in enumerate(given):
            if not callable(each):
                yield Problem(f"{key}[{index}]", f"{wanted}; got {each!r:.80}")


def _of_instructions(key: str, given: object) -> Iterator[Problem]:
    if given is None or isinstance(given, str) or callable(given):
        return
    wanted = "expected a text or a function of the context"
    if not isinstance(given, Sequence):
        yield Problem(key, f"{wanted}, or a list of them; got {given!r:.80}")
        return
    for index, part in enumerate(given):
        if not (isinstance(part, str) or callable(part)):
            yield Problem(f"{key}[{index}]", f"{wanted}; got {part!r:.80}")


def _of_retries(key: str, given: object) -> Iterator[Problem]:
    if not isinstance(given, int) or isinstance(given, bool) or given < 0:
        yield Problem(key, f"expected a whole number from 0; got {given!r:.80}")


def _of_mode(key: str, given: object) -> Iterator[Problem]:
    modes = get_args(OutputMode)
    if given not in modes:
        hint = did_you_mean(str(given), modes) or f"; there are {', '.join(modes)}"
        yield Problem(key, f"there is no {given!r:.80}{hint}")


_CHECKS: Final[Mapping[str, _Check]] = {
    "model": _of_model,
    "name": _of_name,
    "instructions": _of_instructions,
    "tools": _of_list,
    "hooks": _of_list,
    "limits": _of_mapping,
    "plan": _of_plan,
    "output_validators": _of_validators,
    "output_retries": _of_retries,
    "output_mode": _of_mode,
}


def plan_problems(plan: JSONObject, table: ModuleTable) -> Iterator[Problem]:
    """Find what is wrong with the plan that an agent comes to.

    Args:
        plan: the plan.
        table: the objects that its own modules are.
    """
    for problem in MountPlanValidator().validate(plan):
        yield Problem(_agents_path(problem.path), problem.message)
    for path, module in _modules("", plan):
        if module.startswith(f"{table.prefix}-") and module not in table.objects:
            yield Problem(
                path,
                f"{module!r} is an object of the program that made the plan; give it to the agent as well",
            )


def sub_agent_problems(plan: JSONObject, loader: ModuleLoader) -> Iterator[Problem]:
    """Find the modules of agents that are tools which nobody could mount: their sessions are opened long after.

    Args:
        plan: the plan.
        loader: knows the modules that there are.
    """
    named = list(_modules("", {"agents": plan.get("agents")}))
    if not named:
        return
    known = sorted({found.id for found in loader.discover()})
    for path, module in named:
        if module not in known:
            hint = did_you_mean(module, known)
            yield Problem(path, f"no module {module!r} is installed{hint}")


def _agents_path(path: str) -> str:
    for beginning, name in _PATHS.items():
        if path.startswith(beginning):
            return name + path.removeprefix(beginning)
    return path


def _modules(where: str, plan: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Yield the modules in the lists of a plan and of its agents, with their paths."""
    for kind in KINDS:
        entries = plan.get(kind.section)
        if not isinstance(entries, Sequence) or isinstance(entries, str):
            continue
        for index, entry in enumerate(entries):
            module = entry.get("module") if isinstance(entry, Mapping) else entry
            if isinstance(module, str):
                yield f"{where}{kind.section}[{index}]", module
    agents = plan.get("agents")
    if isinstance(agents, Mapping):
        for name, agent in agents.items():
            if isinstance(agent, Mapping):
                yield from _modules(f"{where}agents.{name}.", agent)
