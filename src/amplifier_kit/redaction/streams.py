"""Streams: a text that comes in pieces is shown without secrets that are split over them."""

from __future__ import annotations

import re
from typing import Final

from amplifier_kit.redaction.redactor import StrictRedactor

__all__ = ["StreamFilter"]

_MAX_HELD: Final = 16_384
"""How many characters of one word are held before it is cut."""
_LEAD: Final = re.compile(
    r"(?i)(?<!\S)(?:\S{0,200}?(?:pass\w{0,10}|pwd|pw|secrets?|tokens?|keys?|auth"
    r"|credentials?|codes?|authorization|bearer|basic|string|jwt|api|access|private|signing|client)"
    r"[\w\-.\]]{0,40}\\{0,3}[\"'`]?\]?(?:[ \t]*(?:[:=]=?>?(?:[ \t]*[|>][+\-]?)?|,|\b(?:is|was)\b:?)?[ \t]*\\{0,3}[\"']?"
    r"(?:\b(?:bearer|basic|token|digest|bot)\b)?)?"
    r"|codes?\b[^\n]{0,40}|[+(]?\d[\d ().\-]{0,24})\s+\Z"
)
"""What announces that a secret may follow: a name, what assigns, the scheme of a header; or a part of a number."""
_LINE: Final = re.compile(
    r"(?i)curl|sshpass|cookie|log ?in\s|machine\s|mysql|mariadb|mongo|redis|sqlcmd|cqlsh|cypher|ldap|snmp|smb|lftp"
    r"|freerdp|htpasswd|keytool|openssl|gpg|zip\s|7z|net us|nmcli|alias set|identified\s|echo\s|printf\s"
    r"|auth\s|set -|setenv|mnemonic|seed|phrase|recovery|backup"
    r"|(?:pass\w{0,10}|pwd|pw|psk|secrets?)\\{0,3}[\"'`]?\]?[ \t]*(?:=>|:?=|:)[ \t]*\\{0,3}[\"'`]"
)
"""What makes all that follows on its line worth a look."""
_TAIL: Final = 256
_LEAD_WORDS: Final = 4
_LEAD_NUMBER: Final = 32
"""How many words, or characters of a number, an announcement has at most."""
_MAX_LEADS: Final = 4
"""How many words that announce a secret are held where one follows the other."""
_SHORT: Final = 64
"""How many held characters are searched with every piece; more only when they have grown, else that is quadratic."""
_BEGIN: Final = "-----BEGIN "
_KEY: Final = re.compile(
    r"-----BEGIN (?P<kind>[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?)-----"
)
_END: Final = re.compile(r"-----END [A-Z0-9 ]{0,60}-----")
_PUTTY: Final = "Private-Lines:"


class StreamFilter:
    """Redacts a text that comes in pieces; what could be part of a secret is held until that is known.

    ```python
    shown = StreamFilter(redactor)
    for piece in pieces:
        print(shown.feed(piece), end="")
    print(shown.end())
    ```

    A word is shown when it is over, a name that announces a secret together with what follows, and a line that may hold
    a secret of several words when it is over. A private key is held to its end. A table is shown line by line, so what
    stands in a column is recognised by itself alone. Of a word of more than 16,384 characters the first part is shown.
    """

    def __init__(self, redactor: StrictRedactor) -> None:
        self._redactor = redactor
        self._held = ""
        self._looked = 0

    def feed(self, piece: str) -> str:
        """Take a piece and return what can be shown by now."""
        self._held += piece
        # A long text that is held is searched again only when it has grown by an
        # eighth: the searches then add up to linear time.
        if self._looked > _SHORT and len(self._held) < self._looked + self._looked // 8:
            return ""
        cut = self._cut()
        shown, self._held = self._held[:cut], self._held[cut:]
        self._looked = len(self._held)
        if shown:
            return self._redactor.redact_text(shown)
        return ""

    def end(self) -> str:
        """Return what was held; the next piece begins a text of its own."""
        shown, self._held, self._looked = self._held, "", 0
        return self._redactor.redact_text(shown)

    def _cut(self) -> int:
        """Return up to where what is held can be shown."""
        held = self._held
        opened = self._open_key()
        if opened is not None:
            return opened
        # the last word may not be over: the next piece may continue it
        cut = len(held) - len(_last_word(held))
        if len(held) - cut > _MAX_HELD or len(held) > 2 * _MAX_HELD:
            return self._cut_word()
        last, leads = -1, 0
        # Moving the cut to before one announcement may put it behind another one,
        # so it moves until nothing before it announces anything.
        while cut not in (0, last):
            is_over = leads >= _MAX_LEADS and (
                leads >= 4 * _MAX_LEADS or not self._is_value(cut)
            )
            last, cut = cut, self._earlier(cut, has_leads=not is_over)
            leads += 1
        return cut

    def _is_value(self, cut: int) -> bool:
        """Tell whether what stands behind a cut is a secret only because of what stands before it."""
        behind = {
            start - cut
            for start, _ in self._redactor.places(self._held)
            if start >= cut
        }
        return not behind <= {
            start for start, _ in self._redactor.places(self._held[cut:])
        }

    def _earlier(self, cut: int, *, has_leads: bool) -> int:
        """Return an earlier cut where something at this one may belong to a secret that is not over."""
        held = self._held
        line = _LINE.search(held, held.rfind("\n", 0, cut) + 1, cut)
        if line is not None and cut - line.start() < _MAX_HELD:
            return _word_start(held, line.start())
        lead = None
        if has_leads:
            lead = _LEAD.search(held, _lead_start(held, cut), cut)
        if lead is not None:
            return lead.start()
        inside = (
            _word_start(held, start)
            for start, end in self._redactor.places(held)
            if start < cut <= end
        )
        return min([cut, *inside, *self._redactor.known.begun(held)])

    def _open_key(self) -> int | None:
        """Return where a private key begins that is not over, and forget its middle when that is long."""
        held = self._held
        start = held.rfind(_BEGIN)
        if start >= 0 and _END.search(held, start) is None:
            # fewer than 80 characters may still become the line that begins a
            # private key
            header = _KEY.match(held, start)
            if header is not None and len(held) - header.end() > _MAX_HELD:
                # The middle is shown to nobody, so it need not be held; the tail
                # is, since the closing line may be split over two pieces.
                self._held = held[: header.end() + 64] + held[-64:]
            if header is not None or len(held) - start < 80:
                return start
            return None
        start = held.rfind(_PUTTY)
        is_open = (
            start >= 0
            and "Private-MAC:" not in held[start:]
            and len(held) - start < _MAX_HELD
        )
        if is_open:
            return start
        return None

    def _cut_word(self) -> int:
        """Cut a word that is too long to be held, but no secret in it."""
        held = self._held
        cut = len(held) - _MAX_HELD // 2
        for start, end in self._redactor.places(held):
            if start < cut < end:
                # without what stands before it, the rest might be taken for no secret
                return end
        return cut


def _last_word(text: str) -> str:
    """Return what follows the last white space."""
    if text and not text[-1].isspace():
        return text[len(text) - len(text[-_MAX_HELD - 1 :].rsplit(None, 1)[-1]) :]
    return ""


def _lead_start(text: str, end: int) -> int:
    """Return where what announces a secret begins at the earliest: words before an index, or parts of a number."""
    start = max(0, end - _TAIL)
    words = text[start:end].rsplit(None, _LEAD_WORDS)
    if len(words) > _LEAD_WORDS:
        return min(start + len(words[0]), max(0, end - _LEAD_NUMBER))
    return start


def _word_start(text: str, index: int) -> int:
    """Return where the word begins that stands at an index."""
    while index and not text[index - 1].isspace():
        index -= 1
    return index
