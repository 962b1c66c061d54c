"""By which words an answer covers commands, and which texts reach the network."""

from __future__ import annotations

import pytest

from amplifier_kit.shell.coverage import lone_command, prefix_of
from amplifier_kit.shell.network import installs_what_is_locked, reaches_network


@pytest.mark.parametrize(
    ("text", "prefix"),
    [
        ("git push", "git push"),
        ("git push --force origin 'main'", "git push"),
        ("npm run deploy -- --now", "npm run deploy"),
        ("docker compose up -d", "docker compose up"),
        ("uv pip install httpx", "uv pip install"),
        ("gh pr create --fill", None),
        ("gh pr view 3", "gh pr view"),
        ("curl https://example.com", "curl"),
        ("terraform apply", "terraform apply"),
        ("pip install 'httpx[http2]>=0.27'", "pip install"),
        ("npm install -D @types/node lodash@4", "npm install"),
        ("git push origin HEAD:main", "git push"),
        ("git checkout -- src/app.py", "git checkout"),
        ("git reset --hard HEAD~1", "git reset"),
    ],
)
def test_plain_command_covered_by_words_that_say_what_it_does(
    text: str, prefix: str | None
) -> None:
    assert prefix_of(text) == prefix


@pytest.mark.parametrize(
    "text",
    [
        "",
        "git",
        "git -C . push",
        "git -c core.sshCommand=x push",
        "git push; rm x",
        "git push && git push",
        "git push | tee log",
        "git push > log",
        "git push $(cat x)",
        "git push `cat x`",
        "git push $REMOTE",
        "git push *",
        "GIT_SSH_COMMAND=x git push",
        "x=1; git push",
        "f() { git push; }; f",
        "git push &",
        "(git push",
        "/usr/bin/git push",
        "./git push",
        "sudo git push",
        "env git push",
        "bash -c 'git push'",
        "xargs git push",
        "git config alias.x '!sh'",
        "git bisect run touch x",
        "git rebase -x 'touch x' HEAD~1",
        "git clone -u 'touch x;' . y",
        "git stash clear",
        "git difftool -x sh",
        "git submodule foreach x",
        "flock a.txt touch x",
        "taskset 1 touch x",
        "strace touch x",
        "script -qc 'touch x' /dev/null",
        "watch ls",
        "busybox sh",
        "unshare sh",
        "chroot / sh",
        "fd -x rm",
        "perf stat x",
        "tmux new sh",
        "sqlite3 x",
        "hg clone --ssh ./x a",
        "svn diff --diff-cmd ./x",
        "jj fix",
        "gh alias set a b",
        "wget --use-askpass=./x u",
        "docker run -v /:/host alpine",
        "docker compose run x",
        "npm exec evil",
        "npm run",
        "uv run x",
        "npx evil",
        "python3 -c 'x'",
        "python3.12 -m evil",
        "node -e 'x'",
        "sed -n 1p x",
        "awk 1 x",
        "rm -rf /srv",
        "find / -delete",
        "ssh host",
        "tee x",
        "'git push'",
        "'curl x'",
        "$CURL x",
        "c*l x",
        "docker build .",
        "docker compose -f other.yaml up",
        "curl -K file",
        "curl -o .bashrc https://example.com",
        "curl -H @file https://example.com",
        "curl -d @file https://example.com",
        "curl file:///etc/passwd",
        "git fetch ext::sh",
        "git fetch 'ext::sh -c touch%20x'",
        "git push ./other main",
        "git push https://example.com/x main",
        "git pull --upload-pack x",
        "git remote add x y",
        "git checkout --pathspec-from-file=x",
        "git worktree add x",
        "git merge -s x main",
        "npm install ./x",
        "npm install git+https://example.com/x",
        "npm install --prefix /x y",
        "pip install -r x",
        "pip install x.whl",
        "pip install --index-url https://example.com x",
        "cargo run",
        "terraform apply plan",
        "kubectl exec x",
        "kubectl get -f x",
        "helm install x",
        "gh api x",
        "aws s3 rm x",
        "pytest -p x",
        "ping -f host",
    ],
)
def test_other_texts_are_covered_by_nothing_but_themselves(text: str) -> None:
    assert prefix_of(text) is None


def test_a_lone_command_has_known_words() -> None:
    command = lone_command("cp a ~/b", {"HOME": "/home/ana"})
    assert command is not None
    assert [word.static for word in command.words] == ["cp", "a", "/home/ana/b"]


@pytest.mark.parametrize(
    "text",
    [
        "curl https://example.com",
        "/usr/bin/curl x",
        "cd sub && git fetch",
        "sudo apt-get install x",
        "bash -c 'wget x'",
        "timeout 5 git clone x",
        "python3 -m pip install httpx",
        "pip3 install httpx",
        "npm ci",
        "yarn",
        "kubectl get pods",
        "for x in a b; do curl $x; done",
        "mvn -q deploy",
        "gradle build --refresh-dependencies",
    ],
)
def test_programs_that_reach_the_network_are_known(text: str) -> None:
    assert reaches_network(text)


@pytest.mark.parametrize(
    "text",
    [
        "ls",
        "git status",
        "npm test",
        "python3 -m pytest",
        "echo curl",
        "(",
        "",
        "x=curl",
        "$PROGRAM x",
        "python3 -m",
    ],
)
def test_other_texts_do_not_reach_it_as_far_as_is_known(text: str) -> None:
    assert not reaches_network(text)


def test_a_text_that_is_nested_too_deeply_is_not_followed() -> None:
    assert reaches_network("env " * 4 + "curl x")
    assert not reaches_network("env " * 12 + "curl x")


@pytest.mark.parametrize(
    "text",
    [
        "npm ci",
        "pip install -r requirements.txt",
        "uv sync --frozen",
        "go mod download",
    ],
)
def test_installs_of_what_is_locked_are_known(text: str) -> None:
    assert installs_what_is_locked(text)


@pytest.mark.parametrize(
    "text",
    [
        "npm ci; curl x",
        "npm ci && python3 x.py",
        "npm ci $(curl x)",
        "X=1 npm ci",
        "pip install httpx",
        "npm ci > x",
    ],
)
def test_an_install_beside_other_things_is_not_one(text: str) -> None:
    assert not installs_what_is_locked(text)
