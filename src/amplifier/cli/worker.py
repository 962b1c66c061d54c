"""`amplifier worker`: runs the turns that servers put in a queue."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from amplifier.cli._options import is_debug
from amplifier.cli._server_stores import server_options

if TYPE_CHECKING:
    from amplifier.app.plans.base_plans import PlanOptions
    from amplifier.server.stores import ServerStores
    from amplifier_sdk.engines import WorkerOptions

__all__ = ["worker"]

_TENANT_TURNS: Final = 8


@click.command()
@click.option(
    "--engine",
    required=True,
    metavar="URL",
    help="The queue, as for 'amplifier serve --engine'.",
)
@click.option("--name", metavar="NAME", help="The worker's own name; default made up.")
@click.option(
    "--max-turns",
    type=click.IntRange(1, 1000),
    default=8,
    show_default=True,
    help="How many turns at once.",
)
@click.option(
    "--max-tenant-turns",
    type=click.IntRange(1, 1000),
    help="How many turns of one tenant at once, over all workers; default the most of server.limits, else 8.",
)
@click.option(
    "--period",
    type=click.FloatRange(0.3, 3600),
    default=15.0,
    show_default=True,
    help="Seconds after which another takes over what this one was at when it died.",
)
@click.option(
    "--drain",
    type=click.FloatRange(0, 86_400),
    default=10.0,
    show_default=True,
    help="Seconds that turns have to end when it is stopped; the rest is returned.",
)
@server_options
@click.pass_context
def worker(
    ctx: click.Context,
    engine: str,
    store: str,
    name: str | None,
    max_turns: int,
    max_tenant_turns: int | None,
    period: float,
    drain: float,
    profile: str | None,
    provider: str | None,
    model: str | None,
    plan: Path | None,
    backend: str,
    json_logs: bool,
) -> None:
    """Run the turns that `amplifier serve --engine` takes, in this folder.

    Any number of workers may run, on any machine that has the folder and the modules. SIGTERM lets turns end and
    returns the rest to the queue, where another worker continues them.
    """
    from uuid import uuid4

    import anyio

    from amplifier.app.plans.base_plans import PlanOptions
    from amplifier.cli._server_stores import require_server, stores_of
    from amplifier.cli._structured_logs import library_logs, send_logs
    from amplifier_sdk.engines import WorkerOptions

    require_server(backend)
    send_logs(debug=is_debug(ctx), as_json=json_logs)
    made_of = PlanOptions(provider=provider, model=model, file=plan, profile=profile)
    stores = stores_of(store)
    from amplifier.server.quotas import read_limits

    if max_tenant_turns is None:
        max_tenant_turns = read_limits(stores.dirs).max_turns or _TENANT_TURNS
    options = WorkerOptions(
        name=name or f"worker-{uuid4().hex[:12]}",
        max_runs=max_turns,
        max_tenant_runs=max_tenant_turns,
        period=period,
        drain=drain,
    )
    working = partial(_work, engine, stores, made_of, options)
    with library_logs():
        anyio.run(working, backend=backend)


async def _work(
    url: str, stores: ServerStores, made_of: PlanOptions, options: WorkerOptions
) -> None:
    import anyio

    from amplifier.cli._listener import listen_for_signals
    from amplifier.cli._terminal import notice
    from amplifier.server.activity import ActivityLog
    from amplifier.server.engines import open_named_engine
    from amplifier.server.quotas import open_quotas
    from amplifier.server.served_turns import TurnSetup
    from amplifier.server.workers import TurnWorker

    engine = await open_named_engine(url)
    try:
        activity = ActivityLog(await stores.server())
        quotas = await open_quotas(stores)
        setup = TurnSetup(made_of, activity, quotas=quotas)
        folder = stores.dirs.state / "working"
        turns, stop = TurnWorker(stores, setup, options, folder), anyio.Event()
        async with anyio.create_task_group() as group:
            await group.start(partial(listen_for_signals, stop))
            if quotas is not None:
                # until the last turn has ended: what is held is renewed
                group.start_soon(quotas.run)
            async with anyio.create_task_group() as working:
                working.start_soon(turns.work, engine)
                notice(f"Worker {options.name} takes turns")
                await stop.wait()
                working.cancel_scope.cancel()
            group.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await engine.aclose()
            await stores.aclose()
