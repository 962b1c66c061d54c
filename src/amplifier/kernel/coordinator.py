"""The coordinator: what modules receive, and what connects a session's parts.

It wraps the session's plugins, mount points, hooks, capabilities and channels. Modules may set attributes
of their own on it. Source: the module contracts.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from inspect import isroutine
from typing import TYPE_CHECKING, Final, TypeVar, cast

import anyio

from amplifier.kernel.cancellation import CancellationToken
from amplifier.kernel.capabilities import Capabilities
from amplifier.kernel.channels import Channels
from amplifier.kernel.cleanups import Cleanups
from amplifier.kernel.hooks.decisions import DecisionProcessor
from amplifier.kernel.hooks.registrations import Handler
from amplifier.kernel.modules.mounts import MountedInstance, MountPoints
from amplifier.kernel.modules.plugins import Plugins
from amplifier.kernel.plans.plan import ModuleSpec, SessionSettings
from amplifier.kernel.resources import Owners
from amplifier.kernel.spans import current_module
from amplifier.kernel.turn.registry import HookRegistry
from amplifier.kernel.turn.services import SessionServices
from amplifier.kernel.turn.turn import RunningTurn
from amplifier_sdk.assessments import ACCEPTED
from amplifier_sdk.checks import check_instance
from amplifier_sdk.errors import ConfigError, Problem
from amplifier_sdk.events import (
    CANCEL_COMPLETED,
    CANCEL_REQUESTED,
    USER_NOTIFICATION,
    CancelRequested,
)
from amplifier_sdk.hookspecs import KINDS, ModuleKind
from amplifier_sdk.journal import Journal
from amplifier_sdk.middleware import event_of
from amplifier_sdk.results import Emission, HookResult

if TYPE_CHECKING:
    from amplifier.kernel.modules.loader import ModuleLoader
    from amplifier.kernel.sessions.session import AmplifierSession
    from amplifier_sdk.approvals import ApprovalProvider
    from amplifier_sdk.contracts import (
        ApprovalSystem,
        Cleanup,
        ContextManager,
        DisplaySystem,
        Orchestrator,
        Provider,
        Tool,
    )

__all__ = ["DONE", "ModuleCoordinator"]

T = TypeVar("T")


class _Done:
    """An awaitable of something that is done already."""

    def __await__(self) -> Generator[None, None, None]:
        yield from ()


DONE: Final = _Done()
"""What `mount` returns: awaiting it is optional."""


class ModuleCoordinator:
    """A session's parts by name; see `amplifier_sdk.contracts.Coordinator`."""

    def __init__(
        self,
        session: AmplifierSession | None = None,
        approval_system: ApprovalSystem | None = None,
        display_system: DisplaySystem | None = None,
        *,
        session_id: str = "unknown",
        parent_id: str | None = None,
        config: Mapping[str, object] | None = None,
        settings: SessionSettings | None = None,
        kinds: Sequence[ModuleKind] = KINDS,
    ) -> None:
        self.session: AmplifierSession | None = session
        self.loader: ModuleLoader | None = (
            session.loader if session is not None else None
        )
        self.session_id: str = session_id
        self.parent_id: str | None = parent_id
        self.config: Mapping[str, object] = {} if config is None else config
        self.settings: SessionSettings = settings or SessionSettings()
        self.session_state: dict[str, object] = {}
        self.cancellation: CancellationToken = CancellationToken()
        self._hooks = HookRegistry(
            hook_timeout=self.settings.limits.hook_timeout,
            hook_warning=self.settings.limits.hook_warning,
        )
        self._hooks.set_default_fields(session_id=session_id, parent_id=parent_id)
        self.plugins: Plugins = Plugins(
            kinds, self._unmounted, self._hooks.forget_module
        )
        self._hooks.module_of = self.plugins.manager.get_name
        self._hooks.is_module = self._is_module
        self.owners: Owners = Owners()
        self._mounts = MountPoints(kinds)
        self._channels = Channels()
        self.capabilities: Capabilities = Capabilities(self._is_module)
        self.capabilities.register(
            "approval.register_provider", self._register_approval_provider
        )
        self._cleanups = Cleanups(self.settings.limits.cleanup_timeout)
        self._mounting: tuple[ModuleSpec, object] | None = None
        self._placed: list[MountedInstance] = []
        self.cancellation.notify = self._reserve_cancel
        self.decisions: DecisionProcessor = DecisionProcessor(
            self._hooks,
            self.settings,
            lambda: self.context,
            approval_system,
            display_system,
            self.cancellation,
        )
        # asked at each use: whoever opened the session may change what is accepted
        self.decisions.accepted = partial(self.get_capability, ACCEPTED)
        # last, so that the person reads what the handlers made of it
        self._hooks.answer_last(USER_NOTIFICATION, self.decisions.notify, "display")
        self.services: SessionServices = SessionServices(
            self._hooks,
            session_id,
            self.settings.limits,
            self.cancellation,
            self.decisions,
        )
        self._hooks.host = RunningTurn(self.services)

    @property
    def hooks(self) -> HookRegistry:
        """The session's hooks; as long as a loop written by hand runs, as that loop receives them."""
        return self._hooks.host.loop_hooks or self._hooks

    @property
    def host(self) -> RunningTurn:
        """The turn that runs, else the last one."""
        return self._hooks.host

    # -- mount points

    @property
    def mount_points(self) -> dict[str, object]:
        """The live table of mount points; modules may write into it."""
        return self._mounts.table

    @property
    def orchestrator(self) -> Orchestrator:
        """The mounted loop; a session that is initialized has one."""
        return cast("Orchestrator", self._mounts.table["orchestrator"])

    @property
    def context(self) -> ContextManager:
        """The mounted context manager; a session that is initialized has one."""
        return cast("ContextManager", self._mounts.table["context"])

    @property
    def providers(self) -> dict[str, Provider]:
        """The mounted providers by name, live."""
        return cast("dict[str, Provider]", self._mounts.table["providers"])

    @property
    def tools(self) -> dict[str, Tool]:
        """The mounted tools by name, live."""
        return cast("dict[str, Tool]", self._mounts.table["tools"])

    def mount(
        self, mount_point: str, module: object, name: str | None = None
    ) -> Awaitable[None]:
        """Mount an instance; it is there when the call returns, and awaiting the result is optional.

        `mount("session", x, name="context")` and `name="orchestrator"` are the contracts' spelling of the
        single mount points.

        Raises:
            ValueError: there is no such mount point, or a name is missing.
            ModuleConflictError: the name is taken.
            ModuleValidationError: the instance lacks what its mount point promises.
        """
        self._place(mount_point, module, name)
        return DONE

    def _place(self, mount_point: str, module: object, name: str | None = None) -> None:
        mount_point, name = self._mounts.resolve(mount_point, name)
        spec, own = self._spec, None
        if (
            spec is not None
            and spec.instance_id is not None
            and isinstance(self._mounts.table.get(mount_point), dict)
        ):
            own = name or getattr(module, "name", None)
            name = self._instance_name(spec, mount_point, module, own)
        mounted = self._mounts.add(
            mount_point, module, name, spec.module if spec else "application", own
        )
        self.plugins.register_mounted(mounted)
        if spec is not None:
            self._placed.append(mounted)

    @property
    def _spec(self) -> ModuleSpec | None:
        """The entry of the plan whose module calls while it is mounted; a task that another module keeps is not it."""
        spec, plugin = self._mounting or (None, None)
        # by the context: a task of an earlier module may mount while this one does
        if current_module.get() is plugin:
            return spec
        return None

    def _instance_name(
        self, spec: ModuleSpec, mount_point: str, module: object, own: str | None
    ) -> str | None:
        """Name what an entry with an `instance_id` mounts: by that id, or, of several, by it and their own names."""
        earlier = [
            mounted for mounted in self._placed if mounted.mount_point == mount_point
        ]
        # mounted by itself and returned as well
        if any(mounted.instance is module for mounted in earlier):
            return next(
                mounted.name for mounted in earlier if mounted.instance is module
            )
        if not earlier:
            return spec.instance_id
        first = earlier[0]
        if len(earlier) == 1:
            self.plugins.forget_mounted(mount_point, first.name)
            name = f"{spec.instance_id}_{first.own_name}"
            renamed = self._mounts.add(
                mount_point, first.instance, name, spec.module, first.own_name
            )
            self.plugins.register_mounted(renamed)
            self._placed[self._placed.index(first)] = renamed
        return f"{spec.instance_id}_{own}"

    async def unmount(self, mount_point: str, name: str | None = None) -> None:
        """Take an instance away; one that is not mounted is ignored."""
        mount_point, name = self._mounts.resolve(mount_point, name)
        self.plugins.forget_mounted(mount_point, name)
        # a module may have written into the table itself
        self._mounts.remove(mount_point, name)

    def get(self, mount_point: str, name: str | None = None) -> object:
        """Return what is mounted: the instance of a single point, the live dict of another, or one of its instances."""
        mount_point, name = self._mounts.resolve(mount_point, name)
        if mount_point == "hooks":
            return self.hooks
        return self._mounts.get(mount_point, name)

    def _unmounted(self, mounted: MountedInstance) -> None:
        """Empty a place whose instance was unregistered from pluggy, unless another stands there by now."""
        # pluggy notifies after the fact, and the place may have been taken meanwhile
        if self._mounts.get(mounted.mount_point, mounted.name) is mounted.instance:
            self._mounts.remove(mounted.mount_point, mounted.name)

    # -- what modules return

    async def mount_module(
        self, spec: ModuleSpec, kind: ModuleKind, plugin: object
    ) -> bool:
        """Call a module's implementation and take what it returns; return whether it mounted anything.

        What a failing module had mounted and the handlers it had registered are taken away again. Unregistering
        the plugin from pluggy does the same for one that did not fail. Its cleanups run at the session's end in
        either case.
        """
        before, registered = self._instances(kind), self.hooks.registered
        # what is mounted from here on belongs to this entry of the plan
        self._mounting = spec, plugin
        self._placed.clear()
        token = current_module.set(plugin)
        try:
            for result in await kind.spec.call(
                self.plugins.manager, plugin, self, dict(spec.config)
            ):
                self._take(kind, result)
            self._surround(plugin)
            if spec.config and kind.spec.name not in self.plugins.hooks_of(plugin):
                raise ConfigError(
                    [
                        Problem(key, "unknown key; this module takes no configuration")
                        for key in spec.config
                    ]
                )
        except BaseException:
            # its handlers too: half a module guards nothing and may still deny
            for mounted in self._placed:
                self.plugins.forget_mounted(mounted.mount_point, mounted.name)
            self.hooks.forget_module(plugin, registered)
            raise
        finally:
            current_module.reset(token)
            self._mounting = None
        return self._instances(kind) != before

    def _surround(self, plugin: object) -> None:
        """Register a module's implementations of middleware, once for all entries of the plan that it is."""
        known = {entry.pattern for entry in self.hooks.handlers_of(plugin)}
        for point, implementation in self.plugins.middleware_of(plugin):
            if event_of(point) not in known:
                self.hooks.register(
                    event_of(point),
                    cast("Handler", implementation.function),
                    implementation.trylast - implementation.tryfirst,
                )

    def _take(self, kind: ModuleKind, result: object, *, listed: bool = False) -> None:
        """Mount a returned instance or list of them; keep a returned function as cleanup.

        Whatever else comes back from a module that mounted something itself is information for nobody.
        """
        if result is None:
            return
        if isinstance(result, (list, tuple)):
            for part in result:
                self._take(kind, part, listed=True)
        elif (
            kind.protocol is not None
            and kind.mount_point != "hooks"
            and not check_instance(kind.name, result, kind.protocol)
        ):
            if not any(result is mounted.instance for mounted in self._placed):
                self._place(kind.mount_point, result)
        elif isroutine(result) or isinstance(result, partial):
            # an instance may be callable and is no cleanup
            self.register_cleanup(result)
        elif kind.mount_point != "hooks" and (listed or not self._placed):
            self._place(kind.mount_point, result)

    def _instances(self, kind: ModuleKind) -> list[object]:
        slot = self._mounts.table.get(kind.mount_point)
        if isinstance(slot, dict):
            return list(slot.values())
        return [slot]

    # -- capabilities and channels

    def register_capability(
        self, name: str, value: object, *, inherited: bool = True
    ) -> None:
        """Offer a value to modules; a later one of the same name replaces it, except that redactors add up.

        Args:
            name: the capability's.
            value: what is offered.
            inherited: whether the session's children have it as well, now and later; a module's is never inherited,
                nor is what `amplifier_sdk.capabilities.PER_SESSION` names.

        Raises:
            TypeError: the value of `session.journal` is no `Journal` and not `None`.
        """
        if name == "session.journal":
            if value is not None and not isinstance(value, Journal):
                raise TypeError(
                    f"The capability {name!r} is a Journal, with an async 'append'; got {value!r:.200}"
                )
            self.decisions.journal = value
        self.capabilities.register(name, value, inherited=inherited)

    def get_capability(self, name: str) -> object:
        """Return a capability, or `None`."""
        return self.capabilities.get(name)

    def inherit(self, parent: ModuleCoordinator) -> Callable[[], None]:
        """Begin with what applications registered on a parent, and see what changes of it; return what ends that."""
        self.capabilities.parent = parent.capabilities
        self.plugins.inherit(parent.plugins)
        return self.hooks.inherit(parent.hooks)

    def _is_module(self, owner: object) -> bool:
        """Whether what is registered is a module's of this session, or of the code that its turn calls."""
        return owner is self or (
            owner is not None and self.plugins.manager.is_registered(owner)
        )

    def register_contributor(
        self, channel: str, name: str, callback: Callable[[], object]
    ) -> None:
        """Contribute to a channel."""
        self._channels.register(channel, name, callback)

    async def collect_contributions(self, channel: str) -> list[object]:
        """Ask a channel's contributors in their order, then the plugins that implement `amplifier_contributions`.

        `None` is dropped. One that fails or takes longer than `hook_timeout` is reported and skipped.
        """
        plugins = self.plugins.contributors(self, channel)
        return await self._channels.collect(
            channel, plugins, timeout=self.settings.limits.hook_timeout
        )

    @property
    def channels(self) -> dict[str, list[dict[str, object]]]:
        """Who contributes to which channel: a list of names and callbacks by channel; changing it changes nothing."""
        return {
            channel: [
                {"name": contributor.name, "callback": contributor.callback}
                for contributor in contributors
            ]
            for channel, contributors in self._channels.table.items()
        }

    def to_dict(self) -> dict[str, object]:
        """Return what the session consists of, as plain data: names, no objects."""
        return {
            "session_id": self.session_id,
            "parent_id": self.parent_id,
            "tools": list(self.tools),
            "providers": list(self.providers),
            "has_orchestrator": self._mounts.table.get("orchestrator") is not None,
            "has_context": self._mounts.table.get("context") is not None,
            "capabilities": self.capabilities.names,
            "channels": list(self._channels.table),
            "has_approval_provider": self.approval_system is not None
            or self.decisions.asked_provider is not None,
            "has_display_service": self.display_system is not None,
        }

    # -- the turn

    async def process_hook_result(
        self, result: Emission | HookResult, event: str, hook_name: str = "unknown"
    ) -> Emission:
        """Carry out what handlers decided."""
        return await self.host.process_hook_result(result, event, hook_name)

    async def request_cancel(self, immediate: bool = False) -> None:
        """Ask the turn to stop: emit `cancel:requested` and call the callbacks, once for each state."""
        token = self.cancellation
        if immediate:
            news = token.request_immediate()
        else:
            news = token.request_graceful()
        if news:
            await self.announce_cancel()

    async def announce_cancel(self) -> None:
        """Emit `cancel:requested` and call the callbacks, unless that was done for the token's present state.

        Both together have `cleanup_timeout` seconds, also when the caller is cancelled.
        """
        if self.cancellation.take_news():
            payload = CancelRequested(state=str(self.cancellation.state))
            # Whoever asks may be a step of the turn, which is cancelled by now.
            with (
                anyio.CancelScope(shield=True),
                anyio.move_on_after(self.settings.limits.cleanup_timeout),
            ):
                await self.hooks.emit_reserved(CANCEL_REQUESTED, payload)
                await self.cancellation.trigger_callbacks()

    def _reserve_cancel(self) -> None:
        """Leave the events of a cancellation to whoever announces it."""
        self.hooks.reserve(CANCEL_REQUESTED, CANCEL_COMPLETED)

    def reset_turn(self) -> None:
        """Count the turn's injections anew."""
        self.host.decisions.injected.tokens = 0

    @property
    def injection_size_limit(self) -> int | None:
        """How many characters one injection may have; `None` means any number."""
        return self.settings.injection_size_limit

    @property
    def injection_budget_per_turn(self) -> int | None:
        """How many tokens all injections of a turn may have before that is reported; `None` means any number."""
        return self.settings.injection_budget_per_turn

    @property
    def approval_system(self) -> ApprovalSystem | None:
        """Who asks the person."""
        return self.decisions.approval

    @approval_system.setter
    def approval_system(self, system: ApprovalSystem | None) -> None:
        self.decisions.approval = system

    def _register_approval_provider(self, provider: ApprovalProvider) -> None:
        """Let a provider ask the person where the application gave no approval system.

        A later one is asked when those before it cannot ask.

        Raises:
            TypeError: it has no `request_approval`.
        """
        if not callable(getattr(provider, "request_approval", None)):
            raise TypeError(
                f"An approval provider has an async 'request_approval'; got {provider!r:.200}"
            )
        earlier = self.decisions.provider
        if earlier is not None:
            # few sessions have several
            from amplifier.kernel.hooks.approval_providers import ApprovalProviders

            provider = ApprovalProviders.of(earlier, provider)
        self.decisions.provider = provider

    @property
    def display_system(self) -> DisplaySystem | None:
        """Who shows messages to the person."""
        return self.decisions.display

    @display_system.setter
    def display_system(self, system: DisplaySystem | None) -> None:
        self.decisions.display = system

    # -- release

    def register_cleanup(self, cleanup: Cleanup) -> None:
        """Run `cleanup` when the session ends, last registered first; what cannot be called is ignored."""
        self._cleanups.add(cleanup)

    async def own(
        self, resource: AbstractAsyncContextManager[T], *, name: str = "resource"
    ) -> T:
        """Open a resource in a task of its own; see `Coordinator.own`."""
        value, owner = await self.owners.open(resource, name)
        self.register_cleanup(owner.aclose)
        return value

    async def cleanup(self) -> list[BaseException]:
        """Run the cleanups backwards, each under a shield of `cleanup_timeout` seconds.

        Failures are reported and returned. What is no `Exception`, such as a cancellation that a cleanup lets
        out, is raised after the rest ran.
        """
        return await self._cleanups.run()
