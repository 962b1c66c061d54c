"""The process that runs llama.cpp's server: in the application's own process it would hold the interpreter lock.

It reads one line of JSON, the order, from standard input and answers with one line: the server's address, or what
went wrong. Then it waits: when its standard input ends, its parent is gone or done with it, and it ends.
"""

from __future__ import annotations

import json
import os
import sys
from typing import BinaryIO, Final

# Small batches: a request that is cancelled while its prompt is read frees its slot after the batch at hand (1 to
# 3 s instead of 10 to 30), and reading a prompt takes no longer.
_BATCH: Final = 128
_PING: Final = 10  # seconds of silence after which the server sends a comment


def serve(stdin: BinaryIO, report: BinaryIO) -> None:
    """Run the server that the order describes until `stdin` ends."""
    order: dict[str, str | int] = json.loads(stdin.readline())
    try:
        import xllamacpp  # here, so that the parent learns why it cannot be imported
    except ImportError as error:
        _say(report, {"missing": str(error)})
        return
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(order["path"])
    parameters.n_ctx = int(order["n_ctx"])
    parameters.n_parallel = int(order["n_parallel"])
    parameters.n_batch = parameters.n_ubatch = _BATCH
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = int(
        order["threads"]
    )
    # waiting threads leave the processor to others
    parameters.cpuparams.poll = parameters.cpuparams_batch.poll = 0
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.api_keys = [str(order["secret"])]
    parameters.sse_ping_interval = _PING
    parameters.n_gpu_layers = parameters.cache_ram_mib = 0
    parameters.verbosity, parameters.ui, parameters.use_jinja = -1, False, True
    try:
        server = xllamacpp.Server(parameters)
    except RuntimeError as error:
        _say(report, {"error": str(error)})
        return
    _say(report, {"address": server.listening_address})
    stdin.read()


def _say(report: BinaryIO, line: dict[str, str]) -> None:
    report.write(json.dumps(line).encode() + b"\n")
    report.flush()


def main() -> None:
    """Run as a program."""
    with os.fdopen(os.dup(1), "wb") as report:
        # nothing but the report may come out of it
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        serve(sys.stdin.buffer, report)
    os._exit(0)  # releasing a server that is at work takes up to half a minute


if __name__ == "__main__":
    main()
