"""The runtime: sessions made of modules, on asyncio and trio; and what applications use of its store and settings.

Names load when they are first used. What module authors write with is `amplifier_sdk`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplifier_sdk.lazy import load_from

if TYPE_CHECKING:
    from amplifier.agent.agent import Agent as Agent
    from amplifier.agent.modules import Toolset as Toolset
    from amplifier.agent.result import AgentResult as AgentResult
    from amplifier.agent.session import AgentSession as AgentSession
    from amplifier.agent.session import AgentStream as AgentStream
    from amplifier.app.collections.folders import CollectionLibrary as CollectionLibrary
    from amplifier.app.collections.installation import (
        CollectionInstaller as CollectionInstaller,
    )
    from amplifier.app.directories import Places as Places
    from amplifier.app.media import Audio as Audio
    from amplifier.app.media import Document as Document
    from amplifier.app.media import Image as Image
    from amplifier.app.media import Video as Video
    from amplifier.app.mentions.dedup import ContentDeduplicator as ContentDeduplicator
    from amplifier.app.mentions.loader import MentionLoader as MentionLoader
    from amplifier.app.mentions.loader import (
        prepend_context_to_markdown as prepend_context_to_markdown,
    )
    from amplifier.app.mentions.resolver import MentionResolver as MentionResolver
    from amplifier.app.mentions.scanner import has_mentions as has_mentions
    from amplifier.app.modules.resolver import make_resolver as make_resolver
    from amplifier.app.plans.base_plans import PlanOptions as PlanOptions
    from amplifier.app.profiles.documents import (
        parse_markdown_body as parse_markdown_body,
    )
    from amplifier.app.profiles.library import ProfileLibrary as ProfileLibrary
    from amplifier.app.profiles.library import (
        create_profile_loader as create_profile_loader,
    )
    from amplifier.app.projects.files import ProjectFiles as ProjectFiles
    from amplifier.app.sessions.composition import compose as compose
    from amplifier.app.sessions.opened import OpenSession as OpenSession
    from amplifier.app.sessions.opened import open_session as open_session
    from amplifier.app.sessions.reopened import reopen as reopen
    from amplifier.app.settings.layers import read_key as read_key
    from amplifier.app.settings.settings import load_settings as load_settings
    from amplifier.app.store.children import StoredChildren as StoredChildren
    from amplifier.app.store.fork import fork_session as fork_session
    from amplifier.app.store.reader import read_history as read_history
    from amplifier.app.store.records import SessionRecord as SessionRecord
    from amplifier.app.store.search import search_sessions as search_sessions
    from amplifier.app.store.store import SessionStore as SessionStore
    from amplifier.kernel.budgets.expenses import Spending as Spending
    from amplifier.kernel.coordinator import ModuleCoordinator as ModuleCoordinator
    from amplifier.kernel.modules.loader import (
        AmplifierModuleLoader as AmplifierModuleLoader,
    )
    from amplifier.kernel.modules.loader import ModuleLoader as ModuleLoader
    from amplifier.kernel.plans.plan import MountPlanValidator as MountPlanValidator
    from amplifier.kernel.sessions.output_errors import OutputError as OutputError
    from amplifier.kernel.sessions.output_errors import (
        OutputRejectedError as OutputRejectedError,
    )
    from amplifier.kernel.sessions.session import AmplifierSession as AmplifierSession
    from amplifier.kernel.turn.registry import HookRegistry as HookRegistry

__all__ = [
    "Agent",
    "AgentResult",
    "AgentSession",
    "AgentStream",
    "AmplifierModuleLoader",
    "AmplifierSession",
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
    "Places",
    "PlanOptions",
    "ProfileLibrary",
    "ProjectFiles",
    "SessionRecord",
    "SessionStore",
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
    "Agent": "agent.agent",
    "AgentResult": "agent.result",
    "AgentSession": "agent.session",
    "AgentStream": "agent.session",
    "Toolset": "agent.modules",
    "AmplifierModuleLoader": "kernel.modules.loader",
    "Audio": "app.media",
    "Document": "app.media",
    "Image": "app.media",
    "Video": "app.media",
    "AmplifierSession": "kernel.sessions.session",
    "CollectionInstaller": "app.collections.installation",
    "CollectionLibrary": "app.collections.folders",
    "ContentDeduplicator": "app.mentions.dedup",
    "HookRegistry": "kernel.turn.registry",
    "MentionLoader": "app.mentions.loader",
    "MentionResolver": "app.mentions.resolver",
    "ModuleCoordinator": "kernel.coordinator",
    "ModuleLoader": "kernel.modules.loader",
    "MountPlanValidator": "kernel.plans.plan",
    "OpenSession": "app.sessions.opened",
    "OutputError": "kernel.sessions.output_errors",
    "OutputRejectedError": "kernel.sessions.output_errors",
    "Places": "app.directories",
    "PlanOptions": "app.plans.base_plans",
    "ProfileLibrary": "app.profiles.library",
    "ProjectFiles": "app.projects.files",
    "SessionRecord": "app.store.records",
    "SessionStore": "app.store.store",
    "Spending": "kernel.budgets.expenses",
    "StoredChildren": "app.store.children",
    "compose": "app.sessions.composition",
    "create_profile_loader": "app.profiles.library",
    "fork_session": "app.store.fork",
    "has_mentions": "app.mentions.scanner",
    "load_settings": "app.settings.settings",
    "make_resolver": "app.modules.resolver",
    "open_session": "app.sessions.opened",
    "parse_markdown_body": "app.profiles.documents",
    "prepend_context_to_markdown": "app.mentions.loader",
    "read_history": "app.store.reader",
    "read_key": "app.settings.layers",
    "reopen": "app.sessions.reopened",
    "search_sessions": "app.store.search",
}


# hidden from type checkers, which would accept any name otherwise
if not TYPE_CHECKING:
    __getattr__, __dir__ = load_from(__name__, _HOME, prepare="_reports")
