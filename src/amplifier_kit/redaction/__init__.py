"""Redaction: secrets are taken out of whatever is written down or shown.

```python
redactor = StrictRedactor()
redactor.redact({"api_key": "…", "text": "Authorization: Bearer …"})
```

A sink asks `redactor_of(coordinator)` for the session's redactor: that which a module offers as the capability
`session.redactor`, else the strict one. Either way nothing is shown when it fails.
"""

from __future__ import annotations

from amplifier_kit.redaction.finder import MARK, secrets_in
from amplifier_kit.redaction.known import KnownSecrets, secrets_of_environment
from amplifier_kit.redaction.messages import clean_message, clean_messages
from amplifier_kit.redaction.names import is_password_name, is_secret_name
from amplifier_kit.redaction.personal import personal_details
from amplifier_kit.redaction.redactor import StrictRedactor
from amplifier_kit.redaction.rules import TokenRule, token_rules
from amplifier_kit.redaction.sinks import (
    REDACTION_FAILED,
    SinkFilter,
    SinkRedactor,
    redactor_of,
)
from amplifier_kit.redaction.streams import StreamFilter

__all__ = [
    "MARK",
    "REDACTION_FAILED",
    "KnownSecrets",
    "SinkFilter",
    "SinkRedactor",
    "StreamFilter",
    "StrictRedactor",
    "TokenRule",
    "clean_message",
    "clean_messages",
    "is_password_name",
    "is_secret_name",
    "personal_details",
    "redactor_of",
    "secrets_in",
    "secrets_of_environment",
    "token_rules",
]
