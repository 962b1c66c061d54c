"""`amplifier serve`: stored sessions over HTTP, and a web page for them."""

from __future__ import annotations

from pathlib import Path

import click

from amplifier.cli._options import is_debug
from amplifier.cli._server_stores import server_options

__all__ = ["serve"]


@click.command()
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="The address to listen at."
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8000,
    show_default=True,
    help="The port; 0 takes a free one.",
)
@click.option(
    "--engine",
    metavar="URL",
    help="The queue whose workers run the turns (amplifier worker); default this process does.",
)
@click.option(
    "--certificate",
    type=click.Path(exists=True, dir_okay=False),
    help="A TLS certificate (PEM), with --key.",
)
@click.option(
    "--key",
    type=click.Path(exists=True, dir_okay=False),
    help="The key of the certificate (PEM).",
)
@server_options
@click.pass_context
def serve(
    ctx: click.Context,
    host: str,
    port: int,
    store: str,
    engine: str | None,
    profile: str | None,
    provider: str | None,
    model: str | None,
    plan: Path | None,
    certificate: str | None,
    key: str | None,
    backend: str,
    json_logs: bool,
) -> None:
    """Serve the sessions of this folder over HTTP, with a web page.

    Who calls needs a token: amplifier token add. Any number of processes may serve one store. SIGTERM leaves
    the turns, and whoever serves next continues them. It needs the extra amplifier[server].
    """
    from amplifier.app.plans.base_plans import PlanOptions
    from amplifier.cli._listener import Listener, serve_until_signalled
    from amplifier.cli._server_stores import require_server, stores_of
    from amplifier.cli._structured_logs import send_logs

    if (certificate is None) != (key is None):
        raise click.UsageError("--certificate and --key belong together.")
    require_server(backend)
    # at once: a server logs its requests
    send_logs(debug=is_debug(ctx), as_json=json_logs)
    options = PlanOptions(provider=provider, model=model, file=plan, profile=profile)
    listener = Listener(host=host, port=port, certificate=certificate, key=key)
    serve_until_signalled(stores_of(store), options, listener, backend, engine)
