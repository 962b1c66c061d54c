"""Evaluates texts and runs those that are allowed, many to one sandbox; what ran is compared with what was allowed."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Final

import attrs

from amplifier_kit.shell import PathPolicy, ShellPolicy
from tests.shell_oracle.texts import generate

__all__ = ["Report", "missing_programs", "run_oracle", "stage"]

_BATCH: Final = 400
_DRIVER: Final = Path(__file__).with_name("driver.py")
_SCRIPT: Final = "sh dash bash"
_HELPERS: Final = {
    "bzcat": "bzip2",
    "egrep": f"grep {_SCRIPT}",
    "fgrep": f"grep {_SCRIPT}",
    "git": "git",
    "gunzip": f"gzip {_SCRIPT}",
    "lsb_release": f"python3 dpkg-query getopt tr cut awk mawk dpkg {_SCRIPT}",
    "tar": f"gzip bzip2 xz zstd {_SCRIPT}",
    "which": _SCRIPT,
    "xzcat": "xz",
    "yq": "jq python3",
    "zcat": f"gzip {_SCRIPT}",
    "zgrep": f"gzip grep sed zgrep cat expr rm mktemp {_SCRIPT}",
    "zipinfo": "unzip",
}
"""Programs that are scripts, or have others do a part of what they do."""


@attrs.frozen(kw_only=True)
class Report:
    """What came of texts: how many were evaluated, ran, and had to be ended; and what should not have happened."""

    evaluated: int = 0
    ran: int = 0
    waited: int = 0
    findings: tuple[tuple[str, str, str], ...] = ()


def missing_programs() -> str:
    """Name what is needed and not here; nothing when all is."""
    return ", ".join(
        name for name in ("bwrap", "strace", "git") if shutil.which(name) is None
    )


def stage(folder: Path) -> Path:
    """Make a project with work that is not committed, secrets and canaries; return its folder."""
    project = folder / "project"
    for name in ("src", "data", "out", "build", ".ssh", ".git"):
        (project / name).mkdir(parents=True)
    run = [
        "git",
        "-C",
        str(project),
        "-c",
        "user.email=a@b.invalid",
        "-c",
        "user.name=n",
    ]
    subprocess.run([*run, "init", "-q", "-b", "main", "--template="], check=True)
    files = {
        "src/app.py": "print(1)\n",
        "a.txt": "a\nb\n",
        "b.txt": "b\n",
        "data.json": '{"a": 1}\n',
        "data/x.csv": "1,2\n",
    }
    files |= {"build/x.o": "o\n", "x.log": "log\n", "list": ".env\n"}
    files[".gitignore"] = ".env\n.ssh\n*.pem\nbuild\n*.log\n"
    for name, text in files.items():
        (project / name).write_text(text)
    subprocess.run([*run, "add", "."], check=True)
    subprocess.run([*run, "commit", "-qm", "one"], check=True)
    subprocess.run([*run, "commit", "-q", "--allow-empty", "-m", "two"], check=True)
    subprocess.run([*run, "branch", "other"], check=True)
    (project / "b.txt").write_text("stashed\n")
    subprocess.run([*run, "stash", "-q"], check=True)
    (project / "src/app.py").write_text("print(2)  # not committed\n")
    (project / "notes.txt").write_text("not tracked\n")
    for name in (".env", ".ssh/id_rsa", "secret.pem"):
        (project / name).write_text(f"secret of {name}\n")
    (project / "canary").write_text("#!/bin/sh\n: > PWNED\n")
    (project / "canary").chmod(0o755)
    (project / ".git/hooks").mkdir(exist_ok=True)
    (folder / "person").mkdir()
    (folder / "person/diary").write_text("private\n")
    (project / "link").symlink_to(folder / "person")
    return project


def run_oracle(folder: Path, policy: ShellPolicy, *, texts: int, seed: int) -> Report:
    """ShellPolicy so many texts, and run those that are allowed.

    Args:
        folder: an empty folder.
        policy: the policy.
        texts: how many are evaluated.
        seed: decides which.
    """
    project = stage(folder)
    path_policy = PathPolicy(
        directory=str(project),
        writable=(str(project),),
        home=str(folder / "person"),
        has_sandbox=False,
    )
    known = {"HOME": str(folder / "person")}
    allowed = (
        text
        for text in islice(generate(seed), texts)
        if policy.evaluate(text, path_policy, known).decision == "allow"
    )
    report = Report(evaluated=texts)
    while batch := list(islice(allowed, _BATCH)):
        answer = _run(batch, project)
        findings = [
            (text, kind, what)
            for text, kind, what in answer.findings
            if not _is_expected(text, kind, what)
        ]
        report = attrs.evolve(
            report,
            ran=report.ran + answer.ran,
            waited=report.waited + answer.waited,
            findings=(*report.findings, *findings),
        )
    return report


def _run(batch: Sequence[str], project: Path) -> Report:
    interpreter = os.path.realpath(sys.executable)
    inner = "echo private > /srv/out"
    base = ["bwrap", "--unshare-all", "--die-with-parent", "--tmpfs", "/"]
    for name in sorted(os.listdir("/")):
        path = f"/{name}"
        if os.path.islink(path):
            base += ["--symlink", os.readlink(path), path]
        elif name not in (
            "dev",
            "home",
            "mnt",
            "proc",
            "srv",
            "tmp",
            "work",
        ) and os.path.isdir(path):
            base += ["--ro-bind", path, path]
    base += [
        "--dev",
        "/dev",
        "--proc",
        "/proc",
        "--tmpfs",
        "/tmp",
        "--tmpfs",
        "/home",
        "--tmpfs",
        "/srv",
    ]
    base += [
        "--size",
        str(1 << 30),
        "--tmpfs",
        "/w",
        "--ro-bind",
        str(project),
        "/template",
    ]
    person = str(project.parent / "person")
    base += ["--ro-bind", person, person]
    base += ["--ro-bind", str(_DRIVER), "/driver.py", "--chdir", "/"]
    done = subprocess.run(
        [
            *base,
            "--",
            "/bin/sh",
            "-c",
            f"{inner}; exec {interpreter} -I /driver.py {person}",
        ],
        input=json.dumps(batch),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"the sandbox failed: {done.stderr[-2000:]}")
    answer = json.loads(done.stdout)
    if answer["ran"] != len(batch):
        raise RuntimeError(f"{answer['ran']} of {len(batch)} texts ran")
    findings = tuple((text, kind, what) for text, kind, what in answer["findings"])
    return Report(ran=answer["ran"], waited=answer["waited"], findings=findings)


def _is_expected(text: str, kind: str, what: str) -> bool:
    """Whether the text names a program that ran, or has one of another name do its part."""
    if what.startswith("/proc/") and re.search(r"\bps\b", text):
        return True  # it opens what it shows only when it is asked to
    if kind != "exec":
        return False
    program = os.path.basename(what)
    named = set(re.findall(r"[\w.+\[-]+", text))
    if program in named or "/git-core/" in what:
        return "./canary" not in what
    return any(
        program in helpers.split()
        for name, helpers in _HELPERS.items()
        if name in named
    )
