"""The runtime: sessions made of modules, on asyncio and trio; and what applications use of its store and settings.

Names load when they are first used. What module authors write with is `amplifier_sdk`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplifier_sdk.lazy import load_from

if TYPE_CHECKING:
    from amplifier.agent.agent import Agent
    from amplifier.agent.modules import Toolset
    from amplifier.agent.result import AgentResult
    from amplifier.agent.session import AgentSession, AgentStream
    from amplifier.app.collections.folders import CollectionLibrary
    from amplifier.app.collections.installation import CollectionInstaller
    from amplifier.app.directories import AppDirs
    from amplifier.app.media import Audio, Document, Image, Video
    from amplifier.app.mentions.dedup import ContentDeduplicator
    from amplifier.app.mentions.loader import MentionLoader, prepend_context_to_markdown
    from amplifier.app.mentions.resolver import MentionResolver
    from amplifier.app.mentions.scanner import has_mentions
    from amplifier.app.modules.resolver import make_resolver
    from amplifier.app.plans.base_plans import PlanOptions
    from amplifier.app.profiles.documents import parse_markdown_body
    from amplifier.app.profiles.library import ProfileLibrary, create_profile_loader
    from amplifier.app.projects.files import ProjectFiles
    from amplifier.app.sessions.composition import compose
    from amplifier.app.sessions.opened import OpenSession, open_session
    from amplifier.app.sessions.reopened import reopen
    from amplifier.app.settings.layers import read_key
    from amplifier.app.settings.settings import load_settings
    from amplifier.app.store.children import StoredChildren
    from amplifier.app.store.fork import fork_session
    from amplifier.app.store.reader import read_history
    from amplifier.app.store.records import SessionRecord
    from amplifier.app.store.search import search_sessions
    from amplifier.app.store.store import ProjectSessions
    from amplifier.kernel.budgets.expenses import Spending
    from amplifier.kernel.coordinator import ModuleCoordinator
    from amplifier.kernel.modules.loader import AmplifierModuleLoader, ModuleLoader
    from amplifier.kernel.plans.plan import MountPlanValidator
    from amplifier.kernel.sessions.output_errors import OutputError, OutputRejectedError
    from amplifier.kernel.sessions.session import AmplifierSession
    from amplifier.kernel.turn.registry import HookRegistry

__all__ = [
    "Agent",
    "AgentResult",
    "AgentSession",
    "AgentStream",
    "AmplifierModuleLoader",
    "AmplifierSession",
    "AppDirs",
    "Audio",
    "CollectionInstaller",
    "CollectionLibrary",
    "ContentDeduplicator",
    "Document",
    "HookRegistry",
    "Image",
    "MentionLoader",
    "MentionResolver",
    "ModuleCoordinator",
    "ModuleLoader",
    "MountPlanValidator",
    "OpenSession",
    "OutputError",
    "OutputRejectedError",
    "PlanOptions",
    "ProfileLibrary",
    "ProjectFiles",
    "ProjectSessions",
    "SessionRecord",
    "Spending",
    "StoredChildren",
    "Toolset",
    "Video",
    "compose",
    "create_profile_loader",
    "fork_session",
    "has_mentions",
    "load_settings",
    "make_resolver",
    "open_session",
    "parse_markdown_body",
    "prepend_context_to_markdown",
    "read_history",
    "read_key",
    "reopen",
    "search_sessions",
]

_HOME = {
    "agent.agent": ("Agent",),
    "agent.modules": ("Toolset",),
    "agent.result": ("AgentResult",),
    "agent.session": ("AgentSession", "AgentStream"),
    "app.collections.folders": ("CollectionLibrary",),
    "app.collections.installation": ("CollectionInstaller",),
    "app.directories": ("AppDirs",),
    "app.media": ("Audio", "Document", "Image", "Video"),
    "app.mentions.dedup": ("ContentDeduplicator",),
    "app.mentions.loader": ("MentionLoader", "prepend_context_to_markdown"),
    "app.mentions.resolver": ("MentionResolver",),
    "app.mentions.scanner": ("has_mentions",),
    "app.modules.resolver": ("make_resolver",),
    "app.plans.base_plans": ("PlanOptions",),
    "app.profiles.documents": ("parse_markdown_body",),
    "app.profiles.library": ("ProfileLibrary", "create_profile_loader"),
    "app.projects.files": ("ProjectFiles",),
    "app.sessions.composition": ("compose",),
    "app.sessions.opened": ("OpenSession", "open_session"),
    "app.sessions.reopened": ("reopen",),
    "app.settings.layers": ("read_key",),
    "app.settings.settings": ("load_settings",),
    "app.store.children": ("StoredChildren",),
    "app.store.fork": ("fork_session",),
    "app.store.reader": ("read_history",),
    "app.store.records": ("SessionRecord",),
    "app.store.search": ("search_sessions",),
    "app.store.store": ("ProjectSessions",),
    "kernel.budgets.expenses": ("Spending",),
    "kernel.coordinator": ("ModuleCoordinator",),
    "kernel.modules.loader": ("AmplifierModuleLoader", "ModuleLoader"),
    "kernel.plans.plan": ("MountPlanValidator",),
    "kernel.sessions.output_errors": ("OutputError", "OutputRejectedError"),
    "kernel.sessions.session": ("AmplifierSession",),
    "kernel.turn.registry": ("HookRegistry",),
}


# hidden from type checkers, which would accept any name otherwise
if not TYPE_CHECKING:
    __getattr__, __dir__ = load_from(__name__, _HOME, prepare="_reports")
