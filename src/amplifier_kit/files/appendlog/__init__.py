"""An append-only file of JSON records that a crash, a full disk or a flipped bit costs one record at most.

Every record is one line of JSON that begins with a checksum. One process writes a log at a time. It needs the extra
`amplifier[locks]`.

```python
log = await AppendLog.open(path, holds="notes")
await log.append("note", {"text": "Buy milk."})
notes = [record.data for record in log.take()]
await log.aclose()
```
"""

from __future__ import annotations

from amplifier_kit.files.appendlog._lines import decode_line, encode_line, header_line
from amplifier_kit.files.appendlog._scan import Check, Damage, Expected, LogFormatError
from amplifier_kit.files.appendlog.file import (
    AppendError,
    AppendLogFile,
    Durability,
    LogContent,
    read_log,
)
from amplifier_kit.files.appendlog.log import AppendLog

__all__ = [
    "AppendError",
    "AppendLog",
    "AppendLogFile",
    "Check",
    "Damage",
    "Durability",
    "Expected",
    "LogContent",
    "LogFormatError",
    "decode_line",
    "encode_line",
    "header_line",
    "read_log",
]
