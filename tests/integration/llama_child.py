"""The process that runs llama.cpp's server for the tests.

It reads its order, one line of JSON, and answers with the server's address. It ends with its standard input.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Final

import xllamacpp

# An example stands in the template: a model this small writes a call when it has seen one, and whoever asks for a
# call gets a grammar for it besides. The format is that of Hermes models, which llama.cpp recognises.
_TEMPLATE: Final = """\
{%- if tools -%}
<|im_start|>system
<tools>
{%- for tool in tools %}
{{ tool.function | tojson }}
{%- endfor %}
</tools><|im_end|>
<|im_start|>user
Read the file alpha.txt<|im_end|>
<|im_start|>assistant
<tool_call>
{"name": "read_file", "arguments": {"path": "alpha.txt"}}
</tool_call><|im_end|>
{% endif %}
{%- for message in messages %}
{%- if message.role == "tool" -%}
<|im_start|>user
<tool_response>
{{ message.content }}
</tool_response><|im_end|>
{% elif message.role == "assistant" and message.tool_calls -%}
<|im_start|>assistant
{%- for call in message.tool_calls %}
<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>
{%- endfor %}<|im_end|>
{% else -%}
<|im_start|>{{ message.role }}
{{ message.content }}<|im_end|>
{% endif %}
{%- endfor %}
{%- if add_generation_prompt -%}
<|im_start|>assistant
{% endif %}"""


def main() -> None:
    """Run as a program."""
    order: dict[str, str] = json.loads(sys.stdin.readline())
    parameters = xllamacpp.CommonParams()
    parameters.model.path = order["path"]
    parameters.n_ctx, parameters.n_parallel = 4096, 2
    parameters.n_batch = parameters.n_ubatch = 128
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
    parameters.cpuparams.poll = parameters.cpuparams_batch.poll = 0
    parameters.hostnames, parameters.port, parameters.api_keys = (
        ["127.0.0.1"],
        0,
        [order["key"]],
    )
    parameters.n_gpu_layers = parameters.cache_ram_mib = 0
    parameters.verbosity, parameters.ui, parameters.use_jinja = -1, False, True
    parameters.chat_template = _TEMPLATE
    server = xllamacpp.Server(parameters)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.read()
    os._exit(0)  # releasing a server that is at work takes up to half a minute


if __name__ == "__main__":
    main()
