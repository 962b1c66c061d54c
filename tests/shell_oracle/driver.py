"""Runs texts one after the other under strace, each in a fresh copy of a project, and says what became of each.

This file runs alone, inside the sandbox: it reads a JSON list of texts and writes a JSON list of findings.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

WORK = Path("/w")
TEMPLATE = Path("/template")
SECRETS = re.compile(r"/(?:\.env|id_rsa|secret\.pem|shadow|gshadow|diary|environ)$")
OUTSIDE = re.compile(r"/(?:home|srv|root/(?!\.pyenv|\.cargo|\.rustup))")
CALL = re.compile(
    r"^(?P<pid>\d+) +(?P<name>\w+)\((?P<arguments>.*)\) += (?P<result>-?\d+)"
)
QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
PRECIOUS = ("src/app.py", "notes.txt", "a.txt", "b.txt", "data.json", ".env")
OF_GIT = (
    "config",
    "config.worktree",
    "commondir",
    "objects/info/alternates",
    "info/attributes",
    "refs/stash",
)
ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "HOME": sys.argv[1],
    "LC_ALL": "C",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_PAGER": "cat",
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "safe.bareRepository",
    "GIT_CONFIG_VALUE_0": "explicit",
}
MOST_BYTES = 32 * 1024 * 1024
MAX_SECONDS = 8
"""So long a text may do nothing, such as `tail -f`, before it is ended."""
MAX_SECONDS_OF_ALL = 240


def main() -> None:
    texts: list[str] = json.load(sys.stdin)
    for number in range(len(texts)):
        shutil.copytree(TEMPLATE, WORK / str(number), symlinks=True)
    calls: dict[int, list[tuple[str, str, int]]] = {}
    waited, stopped = [], []
    first = 0
    while first < len(texts):
        log = WORK / f"log{first}"
        is_over = _run(texts, first, log)
        found = _calls(log)
        calls |= found
        last = max(found, default=first)
        if not is_over:
            waited.append(last)
        elif last < len(texts) - 1:
            stopped.append(last)
        first = last + 1
    findings = [
        [text, *finding]
        for number, text in enumerate(texts)
        for finding in _findings(number, text, calls)
    ]
    findings += [[texts[number], "stopped", "the shell ended"] for number in stopped]
    answer = {"findings": findings, "ran": len(calls), "waited": len(waited)}
    json.dump(answer, sys.stdout)


def _run(texts: list[str], first: int, log: Path) -> bool:
    """Run the texts from one on; return whether the shell came to its end, or was ended since a text waits."""
    script = "\n".join(
        f": < /dev/null 2>/nowhere/{number}\n"
        f"( cd /w/{number} && eval {_quoted(text)} ) </dev/null >/w/out 2>&1"
        for number, text in enumerate(texts[first:], first)
    )
    limits = "ulimit -f 65536; ulimit -t 5; ulimit -v 4000000; "
    (WORK / "script").write_text(limits + script + "\n")
    traced = "trace=execve,open,openat,creat,connect,clone,clone3,fork,vfork"
    command = ["strace", "-f", "-qq", "-y", "--seccomp-bpf", "-s", "400"]
    command += ["-o", str(log), "-e", traced]
    command += ["bash", "--noprofile", "--norc", "-c", ". /w/script"]
    running = subprocess.Popen(command, env=ENVIRONMENT)
    size, since = -1, time.monotonic()
    last = since + MAX_SECONDS_OF_ALL
    while running.poll() is None:
        time.sleep(0.02)
        if size != (size := log.stat().st_size if log.exists() else 0):
            since = time.monotonic()
        if time.monotonic() > min(last, since + MAX_SECONDS):
            os.kill(-1, signal.SIGKILL)  # in this sandbox: all but this process
            running.wait()
            return False
    return True


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _lines(log: Path) -> list[str]:
    """Return the lines of a log, those of a call that others interrupted put together."""
    waiting: dict[str, str] = {}
    found = []
    for line in log.read_text("utf-8", "replace").splitlines():
        pid, _, rest = line.partition(" ")
        resumed = re.match(r"\s*<\.\.\. \w+ resumed>(.*)", rest)
        if rest.endswith("<unfinished ...>"):
            waiting[pid] = line.removesuffix("<unfinished ...>")
        elif resumed is not None:
            found.append(waiting.pop(pid, pid + " ") + resumed[1])
        else:
            found.append(line)
    return found


def _calls(log: Path) -> dict[int, list[tuple[str, str, int]]]:
    """Return the calls by the number of the text that they belong to: what it started goes on behind the next mark."""
    calls = []
    owner: dict[str, int] = {}
    parents: dict[str, str] = {}
    found: dict[int, list[tuple[str, str, int]]] = {}
    first, current = "", -1
    for line in _lines(log):
        first = first or line.split(" ", 1)[0]
        if (mark := re.search(r'"/nowhere/(\d+)"', line)) is not None:
            current = int(mark[1])
            found[current] = []
        call = CALL.match(line)
        if call is None:
            continue
        if call["name"] in ("clone", "clone3", "fork", "vfork"):
            parents[call["result"]] = call["pid"]
            if call["pid"] == first:
                owner[call["result"]] = current
        else:
            calls.append(
                (call["pid"], call["name"], call["arguments"], int(call["result"]))
            )
    for pid, name, arguments, result in calls:
        ancestor = pid
        while ancestor in parents and ancestor not in owner:
            ancestor = parents[ancestor]
        if owner.get(ancestor, -1) in found:
            found[owner[ancestor]].append((name, arguments, result))
    return found


def _findings(
    number: int, text: str, calls: dict[int, list[tuple[str, str, int]]]
) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    folder = WORK / str(number)
    for name, arguments, result in calls.get(number, []):
        path = QUOTED.search(arguments)
        if name == "connect" and re.search(r"AF_INET6?\b", arguments):
            found.append(("connect", arguments[:200]))
        if path is None or result < 0:
            continue
        where = path[1]
        if not where.startswith("/"):
            base = re.search(r"<([^>]*)>", arguments)
            where = os.path.normpath(f"{base[1] if base else folder}/{where}")
        if name == "execve":
            found.append(("exec", path[1]))
        elif "O_DIRECTORY" not in arguments and "O_PATH" not in arguments:
            # Below .git a branch's own name may end as a secret's does.
            is_secret = SECRETS.search(where) and "/.git/" not in where
            if is_secret and not where.startswith(("/w/out", "/w/script")):
                found.append(("secret", where))
            elif OUTSIDE.match(where) and not os.path.isdir(where):
                found.append(("outside", where))
    found += _state(folder, text)
    return found


def _state(folder: Path, text: str) -> list[tuple[str, str]]:
    found = [("canary", "the canary ran")] if any(folder.rglob("PWNED")) else []
    found += [("git", name) for name in OF_GIT if _was_changed(folder, name, text)]
    hooks = (
        os.listdir(folder / ".git/hooks")
        if (folder / ".git/hooks").is_dir()
        else ["gone"]
    )
    if any(not name.endswith(".sample") for name in hooks):
        found.append(("git", "hooks"))
    stored = {
        _digest(path)
        for path in folder.rglob("*")
        if path.is_file() and ".git/" not in str(path)
    }
    lost = (name for name in PRECIOUS if _digest(TEMPLATE / name) not in stored)
    found += [("discarded", name) for name in lost if not _is_edited(name, text)]
    size = sum(
        path.lstat().st_size for path in folder.rglob("*") if not path.is_symlink()
    )
    return [*found, *([("filled", str(size))] if size > MOST_BYTES else [])]


def _was_changed(folder: Path, name: str, text: str) -> bool:
    if _digest(folder / ".git" / name) == _digest(TEMPLATE / ".git" / name):
        return False
    # git notes itself what a branch follows, and what was put aside.
    notes = {
        "config": r"git.*(?:branch|checkout|switch|init)",
        "refs/stash": r"git.*stash",
    }
    return re.search(notes.get(name, r"(?!)"), text) is None


def _is_edited(name: str, text: str) -> bool:
    """Whether a text says that it writes a file, or git keeps what the file held."""
    if re.search(
        r"git[^|;&]* (?:stash|commit|add|mv|rm|switch|checkout|merge|revert|cherry-pick)\b",
        text,
    ):
        return True
    return re.search(r"\brm\b", text) is None and (
        os.path.basename(name) in text or "*" in text
    )


def _digest(path: Path) -> str:
    try:
        return hashlib.blake2b(path.read_bytes()).hexdigest()
    except OSError:
        return ""


if __name__ == "__main__":
    main()
