"""Which suites make up the behaviours of each module type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from amplifier.validation.behaviors import (
    _context_persistence,
    _context_repair,
    _context_storage,
    _context_turns,
    _context_views,
    _hook,
    _hook_answers,
    _hook_data,
    _module_mounting,
    _module_release,
    _module_settings,
    _module_surroundings,
    _orchestrator_decisions,
    _orchestrator_ends,
    _orchestrator_events,
    _orchestrator_steps,
    _orchestrator_tools,
    _provider_answers,
    _provider_calls,
    _provider_errors,
    _provider_facts,
    _provider_requests,
    _provider_streams,
    _tool_arguments,
    _tool_description,
    _tool_results,
    _tool_running,
)
from amplifier.validation.behaviors.behavior import Suite

_MODULE: Final = (
    _module_mounting.MODULE,
    _module_settings.MODULE,
    _module_surroundings.MODULE,
    _module_release.MODULE,
)

SUITES: Final[Mapping[str, tuple[Suite, ...]]] = {
    "tool": (*_MODULE, _tool_description.TOOL, _tool_arguments.TOOL, _tool_results.TOOL, _tool_running.TOOL),
    "provider": (
        *_MODULE,
        _provider_facts.PROVIDER,
        _provider_answers.PROVIDER,
        _provider_requests.PROVIDER,
        _provider_calls.PROVIDER,
        _provider_errors.PROVIDER,
        _provider_streams.PROVIDER,
    ),
    "hook": (*_MODULE, _hook.HOOK, _hook_answers.HOOK, _hook_data.HOOK),
    "orchestrator": (
        *_MODULE,
        _orchestrator_steps.ORCHESTRATOR,
        _orchestrator_tools.ORCHESTRATOR,
        _orchestrator_events.ORCHESTRATOR,
        _orchestrator_decisions.ORCHESTRATOR,
        _orchestrator_ends.ORCHESTRATOR,
    ),
    "context": (
        *_MODULE,
        _context_storage.CONTEXT,
        _context_repair.CONTEXT,
        _context_persistence.CONTEXT,
        _context_views.CONTEXT,
        _context_turns.CONTEXT,
    ),
}
