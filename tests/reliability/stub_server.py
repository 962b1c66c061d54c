"""An MCP server on standard input and output with one tool, which starts a grandchild and never answers.

    python stub_server.py MARK

The grandchild, in a session of its own, has MARK in its command line.
"""

from __future__ import annotations

import json
import subprocess
import sys


def answer(request: dict[str, object]) -> dict[str, object] | None:
    """Return the result of a request; `None` when it gets no answer."""
    match request.get("method"):
        case "initialize":
            params = request["params"]
            assert isinstance(params, dict)
            info = {"name": "stub", "version": "1"}
            return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": info}
        case "tools/list":
            return {"tools": [{"name": "hang", "description": "Never answer.", "inputSchema": {"type": "object"}}]}
        case "tools/call":
            subprocess.Popen(["setsid", "sleep", sys.argv[1]], stdin=subprocess.DEVNULL)
            sys.stderr.write("hanging\n")
            sys.stderr.flush()
            return None
        case _:
            return {}


if __name__ == "__main__":
    for line in sys.stdin:
        asked = json.loads(line)
        result = answer(asked) if "id" in asked else None
        if result is not None:
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}) + "\n")
            sys.stdout.flush()
