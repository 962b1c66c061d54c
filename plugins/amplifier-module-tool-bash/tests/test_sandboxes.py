"""What commands cannot do in a sandbox."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import pytest

from amplifier_kit.processes import SandboxName, find_sandbox
from amplifier_module_tool_bash import Bash
from amplifier_sdk.errors import ToolError

pytestmark = pytest.mark.process

Mount = Callable[..., Bash]  # type: ignore[explicit-any]  # its options go by name
Run = Callable[..., Awaitable[Mapping[str, object]]]  # type: ignore[explicit-any]  # its options go by name

NETWORK = {
    "tcp": "exec 3<>/dev/tcp/127.0.0.1/{port} && echo escaped >&3",
    "tcp-python": "python3 -c \"import socket; socket.create_connection(('127.0.0.1', {port}), 2).send(b'escaped')\"",
    "udp": "echo escaped > /dev/udp/127.0.0.1/{udp}",
    "udp-python": "python3 -c \"import socket; socket.socket(2, 2).sendto(b'escaped', ('127.0.0.1', {udp}))\"",
    "abstract": "python3 -c \"import socket; s = socket.socket(1); s.connect('\\0{name}'); s.send(b'escaped')\"",
    "unix": "python3 -c \"import socket; s = socket.socket(1); s.connect('{path}'); s.send(b'escaped')\"",
}
FILES = {
    "write": "echo x > {out}/file",
    "append": "echo x >> {out}/kept",
    "new": "echo x > {out}/new",
    "delete": "rm -f {out}/kept",
    "rename": "mv {out}/kept {out}/moved",
    "move-in": "mv {out}/kept kept",
    "truncate": "truncate -s 0 {out}/kept",
    "mkdir": "mkdir {out}/made",
    "link": "ln {out}/kept linked && echo x >> linked",
    "symlink": "ln -s {out} away && echo x > away/new",
    "chain": "ln -s {out}/kept a && ln -s a b && echo x >> b",
    "python": "python3 -c \"open('{out}/new', 'w').write('x')\"",
    "child": "(setsid bash -c 'echo x > {out}/new' &); sleep 0.2",
    "proc": "echo x > /proc/self/root{out}/new",
    "fd": "exec 9<{out}; echo x > /proc/self/fd/9/new",
    "special": "mkfifo {out}/pipe",
}
SIGHT = {
    "hidden": "cat {secret}/token",
    "hidden-link": "ln -s {secret} s && cat s/token",
    "environment": "cat /proc/{pid}/environ",
    "memory": "cat /proc/{pid}/maps",
}
PROTECTED = {
    "hook": "mkdir -p .git/hooks; echo x > .git/hooks/pre-commit",
    "renamed": "mv .git git2; mkdir -p .git/hooks; echo x > .git/hooks/pre-commit",
    "config": "echo x > .git/config",
    "replaced": "rm -rf .git; git init .",
    "linked": "ln -s .git g; echo x > g/config",
    "amplifier": "mkdir -p .amplifier && echo x > .amplifier/settings.yaml",
}


@pytest.fixture(params=["bubblewrap", "landlock"])
async def sandbox(request: pytest.FixtureRequest) -> SandboxName:
    found = await find_sandbox(request.param)
    if found == "none":
        pytest.skip(f"{request.param} does not work on this machine")
    return found


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """A folder outside, with a file in it."""
    out = tmp_path.resolve() / "out"
    out.mkdir()
    (out / "kept").write_text("kept")
    return out


async def test_nothing_outside_can_be_changed(
    mount: Mount, run: Run, sandbox: SandboxName, out: Path
) -> None:
    probes = "\n".join(
        f"(mkdir {name} && cd {name}; {probe})" for name, probe in FILES.items()
    )

    result = await run(mount(sandbox=sandbox), probes.format(out=out))

    assert result["sandbox"] == sandbox
    assert [path.name for path in out.iterdir()] == ["kept"]
    assert (out / "kept").read_text() == "kept"


OWN = {
    "read": "cat {home}/settings.yaml {home}/projects/x/transcript.jsonl .amplifier/settings.local.yaml",
    "linked": "ln -s {home} h; cat h/settings.yaml h/projects/x/transcript.jsonl",
    "listed": "ls -R {home}/projects; find {home} -name '*.jsonl' -exec cat {{}} +",
    "written": "echo changed > {home}/settings.yaml; echo changed > .amplifier/settings.local.yaml",
    "replaced": "mv .amplifier a; mkdir .amplifier; echo changed > .amplifier/settings.local.yaml",
}


@pytest.mark.parametrize("probe", OWN)
@pytest.mark.parametrize("place", ["elsewhere", "inside", "around"])
async def test_the_products_own_files_are_neither_read_nor_written(
    mount: Mount,
    run: Run,
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    probe: str,
    place: str,
) -> None:
    """Wherever the person's own folder is: beside the project, in a writable folder, or around the project."""
    if await find_sandbox("bubblewrap") == "none":
        pytest.skip("bubblewrap does not work on this machine")
    home = {
        "elsewhere": root.parent / "own",
        "inside": root / "own",
        "around": root.parent,
    }[place]
    monkeypatch.setenv("AMPLIFIER_HOME", str(home))
    paths = (
        home / "settings.yaml",
        home / "projects/x/transcript.jsonl",
        root / ".amplifier/settings.local.yaml",
    )
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("CANARY")
    shell = mount(sandbox="bubblewrap", hidden_paths=[], protected_paths=[])

    result = await run(shell, OWN[probe].format(home=home))

    assert "CANARY" not in str(result)
    assert [path.read_text() for path in paths] == ["CANARY"] * 3


async def test_home_is_hidden_except_what_models_may_read(
    mount: Mount,
    run: Run,
    sandbox: SandboxName,
    root: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    home = tmp_path.resolve() / "own"
    monkeypatch.setenv("AMPLIFIER_HOME", str(home))
    (home / "skills").mkdir(parents=True)
    (home / "skills" / "run.sh").write_text("echo a skill")
    (home / "settings.yaml").write_text("CANARY")
    (root / "mine.txt").write_text("mine")

    result = await run(
        mount(sandbox=sandbox),
        f"sh {home}/skills/run.sh; cat mine.txt {home}/settings.yaml",
    )
    await run(
        mount(sandbox=sandbox),
        f"echo changed > {home}/skills/run.sh; echo changed > {home}/settings.yaml",
    )

    assert str(result["stdout"]).split() == ["a", "skill", "mine"]
    assert (home / "skills" / "run.sh").read_text() == "echo a skill"
    assert (home / "settings.yaml").read_text() == "CANARY"


async def test_the_network_is_off(
    mount: Mount, run: Run, sandbox: SandboxName, tmp_path: Path
) -> None:
    name = f"amplifier-{tmp_path.name}-{sandbox}"
    path = str(tmp_path / "s")
    with (
        socket.socket() as tcp,
        socket.socket(type=socket.SOCK_DGRAM) as udp,
        socket.socket(socket.AF_UNIX) as unix,
        socket.socket(socket.AF_UNIX) as abstract,
    ):
        tcp.bind(("127.0.0.1", 0))
        udp.bind(("127.0.0.1", 0))
        abstract.bind(f"\0{name}")
        unix.bind(path)
        for listener in (tcp, unix, abstract):
            listener.listen()
        for each in (tcp, udp, unix, abstract):
            each.settimeout(0)
        facts = {
            "port": tcp.getsockname()[1],
            "udp": udp.getsockname()[1],
            "name": name,
            "path": path,
        }

        await run(
            mount(sandbox=sandbox),
            "\n".join(f"({probe})" for probe in NETWORK.values()).format(**facts),
        )

        for listener in (tcp, unix, abstract):
            with pytest.raises(BlockingIOError):
                listener.accept()
        with pytest.raises(BlockingIOError):
            udp.recv(10)


async def test_the_network_can_be_allowed(
    mount: Mount, run: Run, sandbox: SandboxName
) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.settimeout(0)
        port = listener.getsockname()[1]

        await run(
            mount(sandbox=sandbox, network=True), f"exec 3<>/dev/tcp/127.0.0.1/{port}"
        )

        connection, _ = listener.accept()
        connection.close()


@pytest.mark.parametrize("probe", SIGHT)
async def test_what_is_hidden_and_other_processes_cannot_be_read(
    mount: Mount,
    run: Run,
    sandbox: SandboxName,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    probe: str,
) -> None:
    secret = tmp_path.resolve() / "secret"
    secret.mkdir()
    (secret / "token").write_text("canary")
    shell = mount(sandbox=sandbox, hidden_paths=[str(secret)])

    result = await run(shell, SIGHT[probe].format(secret=secret, pid=os.getpid()))

    assert result["stdout"] == ""
    assert result["success"] is False


async def test_ordinary_work_goes_on(
    mount: Mount, run: Run, sandbox: SandboxName, root: Path, out: Path
) -> None:
    shell = mount(sandbox=sandbox, writable_paths=[str(out)])

    result = await run(
        shell,
        f"mkdir -p a/b && echo hi > a/b/c && mv a/b/c d && cat d && echo x > {out}/more && ls /usr > /dev/null"
        " && echo t > $TMPDIR/t && mktemp > /dev/null && cat $TMPDIR/t && (sleep 0 & wait)",
    )

    assert (result["stdout"], result["stderr"], result["success"]) == (
        "hi\nt\n",
        "",
        True,
    )
    assert (root / "d").read_text() == "hi\n"
    assert (out / "more").exists()


@pytest.mark.parametrize("probe", PROTECTED)
@pytest.mark.parametrize("exists", [True, False], ids=["existing", "missing"])
async def test_protected_files_stay_as_they_are(
    mount: Mount, run: Run, root: Path, probe: str, exists: bool
) -> None:
    if await find_sandbox("bubblewrap") == "none":
        pytest.skip("bubblewrap does not work on this machine")
    if exists:
        (root / ".git/hooks").mkdir(parents=True)
        (root / ".git/config").write_text("kept")
        (root / ".amplifier").mkdir()

    await run(mount(sandbox="bubblewrap"), PROTECTED[probe])

    assert not (root / ".git/hooks/pre-commit").exists()
    assert not (root / ".amplifier/settings.yaml").exists()
    assert (root / ".git").exists() is exists
    if exists:
        assert (root / ".git/config").read_text() == "kept"


async def test_the_processes_of_a_sandbox_end_with_it(
    mount: Mount, run: Run, sandbox: SandboxName, running: Callable[[str], list[str]]
) -> None:
    shell = mount(sandbox=sandbox)

    await run(shell, "setsid sleep 81 & (sleep 81 &) ; sleep 81", timeout=0.5)

    assert running("sleep 81") == []


async def test_without_a_sandbox_nothing_runs_when_one_is_required(
    mount: Mount, run: Run, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell = mount(sandbox="none", require_sandbox=True)

    with pytest.raises(ToolError, match="must run in a sandbox, and none works here"):
        await run(shell, "touch ran")

    assert not (root / "ran").exists()
    assert "must run in a sandbox" in str((await shell.bash_status())["problem"])


async def test_the_ladder_ends_in_none(
    monkeypatch: pytest.MonkeyPatch, mount: Mount, run: Run
) -> None:
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)

    assert await find_sandbox("bubblewrap") == "none"
    monkeypatch.setattr("sys.platform", "plan9")
    assert await find_sandbox("auto") == "none"
    assert (await run(mount(sandbox="auto"), "echo on"))["sandbox"] == "none"


async def test_caches_of_installed_tools_can_be_written_in_sandbox(
    mount: Mount,
    run: Run,
    sandbox: SandboxName,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    home, programs = tmp_path / "home", tmp_path / "programs"
    for folder in (home, programs, home / ".npm", home / ".cargo/git"):
        folder.mkdir(parents=True)
    (programs / "npm").write_text("#!/bin/sh\n")
    (programs / "npm").chmod(0o755)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")

    await run(
        mount(sandbox=sandbox),
        "echo x > ~/.npm/kept; echo x > ~/out; mkdir -p ~/.yarn/berry/cache",
    )
    await run(mount(sandbox=sandbox, tool_caches=False), "echo x > ~/.npm/refused")

    assert [path.name for path in (home / ".npm").iterdir()] == ["kept"]
    assert not (home / "out").exists()
    assert sorted(path.name for path in home.iterdir()) == [".cargo", ".npm"]


async def test_no_program_makes_git_load_another_configuration(
    mount: Mount, run: Run, root: Path
) -> None:
    """What a script writes below `.git` does not outlive the sandbox where it would say what git runs."""
    if await find_sandbox("bubblewrap") == "none":
        pytest.skip("bubblewrap does not work on this machine")
    names = (
        "commondir",
        "config",
        "config.worktree",
        "hooks/pre-commit",
        "objects/info/alternates",
    )
    shell = mount(sandbox="bubblewrap")
    (root / ".git/objects/info").mkdir(parents=True)
    (root / ".git/hooks").mkdir()
    (root / ".git/config").write_text("[core]\n")

    probes = (
        f"echo elsewhere > .git/{name}; mv x .git/{name}; ln -sf x .git/{name}"
        for name in names
    )
    await run(shell, f"touch x; {'; '.join(probes)}")
    found = sorted(
        str(path.relative_to(root / ".git"))
        for path in (root / ".git").rglob("*")
        if path.is_file()
    )

    assert (found, (root / ".git/config").read_text()) == (["config"], "[core]\n")


async def test_no_file_grows_without_end(mount: Mount, run: Run) -> None:
    result = await run(mount(sandbox="none"), "ulimit -f")

    assert 0 < int(str(result["stdout"]).strip()) <= 4 * 1024 * 1024
