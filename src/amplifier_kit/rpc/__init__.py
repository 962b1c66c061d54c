"""JSON-RPC 2.0 over streams of lines, in both directions, with bounds on all that the other side sends."""
