"""The rules that hold unless `default_rules` is off: ordinary work runs, what reaches further is asked about."""

from __future__ import annotations

from typing import Final

from amplifier_sdk.kit.shell import Rule

__all__ = ["DEFAULT_RULES"]

_HARMLESS: Final = Rule(
    decision="allow",
    commands=(
        "true|false|:|test|[|exit|return|break|continue|shift|wait|sleep|seq|yes|expr|factor|numfmt|getconf",
        "echo|printf|pwd|date|cal|whoami|id|groups|uname|arch|nproc|uptime|free|tty|locale|logname",
        "hostname $",
        "basename|dirname|realpath|readlink|which|type|whereis|tput|clear|printenv|ps|pgrep|jobs|lsb_release",
        "env $",
        "cd|pushd|popd|dirs",
        "export|declare|local|readonly|typeset|unset|set|let|read|mapfile|readarray|getopts",
        "alias|ulimit|umask $",
        "* --version|--help|-V $",
        "node|npm|ruby|php|java|perl -v|-version $",
    ),
    match=("echo hi", "test -f x", "gcc --version"),
    not_match=("hostname evil", "env sh", "alias ls=rm", "gcc --version x.c"),
)
_READERS: Final = Rule(
    decision="allow",
    commands=(
        "cat|head|tail|less|more|nl|tac|rev|wc|cut|paste|tr|fold|fmt|column|expand|unexpand|join|comm|tsort|shuf",
        "sort|diff|cmp|colordiff|ls|dir|tree|stat|file|du|df|find|fd|fdfind|locate|exa|eza|bat|strings|od|hexdump",
        "xxd [!-]* $",
        "xxd -* [!-]* $",
        "xxd -l|-s|-c|-g [0-9]* [!-]* $",
        "xxd $",
        "grep|egrep|fgrep|rg|ag|ack|jq|yq|awk|gawk|mawk|sed|md5sum|sha1sum|sha256sum|sha512sum|cksum|b2sum|base64",
        "zcat|zgrep|zipinfo|nm|objdump|readelf|size|iconv",
        "unzip -l",
        "gunzip -c|-l|-t",
        "tar tf|-tf|tvf|-tvf|tzf|-tzf|tjf|-t",
        "uniq",
        "cloc|tokei|scc|wc|getfacl|lsof|lscpu|lsblk|vmstat|iostat",
    ),
    paths="read",
    match=("cat a.txt", "ls -la /usr/lib", "grep -rn TODO src"),
    not_match=("cat ~/notes.txt", "ls /root", "cat $FILE"),
)
_WRITERS: Final = Rule(
    decision="allow",
    commands=("mkdir|touch|cp|mv|rm|rmdir|ln|tee|truncate|split|install|mktemp|gzip|gunzip|bzip2|xz|zip|unzip|patch",),
    paths="write",
    match=("rm -rf build/", "cp a.txt src/b.txt", "mkdir -p x/y"),
    not_match=("rm -rf /", "rm -rf ~", "rm -rf .", "rm -rf *", "cp a /etc/a", "mv x ../y", "rm -rf $DIR/"),
)
_IN_THE_FOLDER: Final = Rule(
    decision="allow",
    commands=(
        "cp|mkdir",
        "chmod +x|644|755|u+x|a+x|664|600|700|-x",
        "tar",
        (
            "git add|status|log|diff|show|commit|stash|blame|shortlog|describe|ls-files|ls-tree|rev-parse|"
            "rev-list|grep|mv|rm|switch|checkout|merge|cherry-pick|revert|init|merge-base|cat-file|"
            "name-rev|whatchanged|for-each-ref|show-ref|symbolic-ref|count-objects|check-ignore|apply"
        ),
        "git --no-pager status|log|diff|show|blame",
        "git --no-pager branch $",
        "git --no-pager branch -a|-r|-v|-vv|--list|--show-current $",
        "git -C * status|log|diff|show",
        "git -C * branch $",
        "git -C * branch -a|-r|-v|-vv|--list|--show-current $",
        "git branch|tag|remote",
        "git worktree list",
        "git config --get|--list|-l|get|list",
        "git restore --staged",
        "git reflog|fsck|version|help",
    ),
    paths="work",
    match=("git status -sb", "git add .", "git commit -m 'message'"),
    not_match=("git push", "git -c core.pager=x log", "git clone https://example.com/x"),
)
_PROGRAMS: Final = Rule(
    decision="allow",
    commands=(
        "pytest|py.test|tox|nox|mypy|ruff|black|isort|flake8|pylint|pyright|bandit|sphinx-build",
        "coverage report|html|xml|json|lcov|annotate|combine|erase|debug|help",
        "coverage run [!-]*",
        "coverage run ** -m pytest|unittest",
        "pre-commit run",
        "mkdocs build",
        "python|python3|python3.* [!-]*",
        (
            "python|python3|python3.* -m pytest|unittest|mypy|ruff|black|isort|flake8|pylint|compileall|"
            "py_compile|json.tool|tox|nox|venv|build|doctest|sphinx|pyright"
        ),
        "python|python3|python3.* -m coverage report|html|xml|json|lcov|annotate|combine|erase|debug|help",
        "python|python3|python3.* -m coverage run [!-]*",
        "python|python3|python3.* -m coverage run ** -m pytest|unittest",
        "python|python3|python3.* -u|-B|-O [!-]*",
        "python|python3|python3.* -W|-X * [!-]*",
        "python|python3|python3.* -m pip list|show|freeze|check|--version",
        "pip|pip3 list|show|freeze|check|index",
        *(
            f"{pip} install {files} $"
            for pip in ("pip|pip3", "python|python3|python3.* -m pip")
            for files in (
                "-r|-e *",
                "-q|-U|--upgrade|--no-deps -r|-e *",
                "-r|-e * -q|-U|--upgrade|--no-deps",
                "-r|-e * -r|-e *",
            )
        ),
        "uv run pytest|mypy|ruff|black|nox|tox",
        "uv run python [!-]*",
        "uv sync|lock|tree|build|version",
        "uv pip list|show|freeze|check|tree",
        "poetry run pytest|mypy|ruff|black",
        "poetry install|check|show|lock|build",
        "npm|pnpm|yarn|bun test|t|run|run-script|ls|list|outdated|audit|view|ci|why|build|lint|start",
        "npm|pnpm|yarn|bun install $",
        "npx tsc|eslint|prettier|jest|vitest|mocha|playwright|next|vite",
        "npx tsx|ts-node [!-]*",
        "tsc|eslint|prettier|jest|vitest|mocha|webpack|vite|rollup|esbuild|stylelint|biome",
        "node|ruby|perl|php|lua|Rscript|julia [!-]*",
        "deno|bun *.js|*.mjs|*.cjs|*.ts|*.mts|*.cts|*.tsx|*.jsx",
        "node --check|--test",
        "deno test|check|lint|fmt|run",
        "bun test",
        "cargo build|test|check|clippy|fmt|run|doc|bench|tree|metadata|b|t|c|r|nextest|update",
        "rustc|rustfmt|gcc|g++|cc|c++|clang|clang++|clang-format|clang-tidy|ld|ar|as|javac|java|scalac|ghc|swiftc",
        "kotlinc [!-]*",
        "swift build|test",
        "swift *.swift",
        "go build|test|vet|fmt|run|list|doc|mod|version|generate",
        "go env $",
        "gofmt|goimports|golangci-lint|staticcheck",
        "make|gmake|ninja|cmake|ctest|meson|just|task|rake|ant",
        "bazel build|test",
        "mvn test|compile|package|verify|clean|install|validate",
        "mvn -q|-B|-o|-U|-ntp test|compile|package|verify|clean|install|validate",
        "gradle test|build|check|clean|assemble|tasks",
        "bundle exec rspec|rubocop|rake",
        "bundle exec rails test|routes|db:migrate|assets:precompile|zeitwerk:check",
        "bundle install $",
        "rspec|rubocop|phpunit",
        "composer install|test|validate",
        "mix test|compile|format",
        "dotnet build|test|run|restore",
        "shellcheck|shfmt|hadolint|yamllint|markdownlint|actionlint|sqlfluff",
        "terraform fmt|validate",
        "bash|sh|zsh|dash [!-]*",
        "bash|sh|zsh|dash -n|-e|-x|-ex|-eu|-eux|-u [!-]*",
        "./*",
    ),
    paths="work",
    runs_files=True,
    match=("pytest -q tests", "python main.py --fast", "npm run build", "make -j4", "./gradlew test"),
    not_match=("python -c 'x'", "python", "bash -s", "pip install requests", "python /opt/x.py", "npm install evil"),
)
_ASK: Final = Rule(
    decision="ask",
    commands=(
        "find ** -delete|-fprint|-fprint0|-fprintf|-fls|-exec|-execdir|-ok|-okdir|-files0-from",
        "fd|fdfind ** -[!-]*x*|-[!-]*X*|-x*|-X*|--exec*",
        "rg ** --pre|--pre=*|--hostname-bin*|--search-zip|-z",
        "grep|egrep|fgrep|zgrep|rg|ag|ack ** /|//*|/.|/./*|/*/..|/*/../*",
        "ag|ack ** --pager*|--output*|--ackrc*",
        "sort ** -o*|-[!-]*o*|--output*|--compress-program*|--files0-from*|-T*|-[!-]*T*",
        "shuf|iconv|scc ** -o*|-[!-]*o*|--output*|--format-multi*",
        "tree ** -o*|-[!-]*o*|--output*",
        "nm|objdump|readelf|size|strings ** --plugin*",
        "cloc ** --vcs*|--extract-with*|--out*|--report-file*|--sql*|--write-lang-def*|--config*",
        "bat ** --pager*|--config-file*",
        "file ** -C|-[!-]*C*|--compile|-m*",
        "date ** -s*|-u*s*|--set*",
        "date [0-9]*",
        "date -u|--utc [0-9]*",
        "yq|jq ** -i*|--inplace|-f*|--from-file*|-L*|env|*env.*|*$ENV*|*input_filename*|*strenv*|*load*",
        "yq ** -[!-]*i*|-[!-]*s*|-s*|--split*|--output*",
        "uniq ** [!-]* [!-]*",
        "uniq ** - *",
        "uniq ** -- * *",
        "less|more ** +*|-[!-]*o*|-[!-]*O*|-o*|-O*|--log-file*|-k*|--lesskey*",
        "sed ** --posix|-f*|--file*|-s*",
        "xxd ** -r*",
        "base64 ** -d*|--decode|-D",
        "ps ** e*|[!-]*e*|-E",
        "env|printenv *",
        "declare|typeset|local|readonly ** *n*=|-*n*",
        "set ** -o|-*x*|-*k*|-*H*",
        "split ** --filter*",
        (
            "tar ** --to-command*|--use-compress-program*|--checkpoint-action*|--rsh-command*|--rmt-command*|"
            "--info-script*|--new-volume-script*|--absolute-names|--files-from*|--remove-files|"
            "-I*|-F*|-P*|-T*|-[!-]*I*|-[!-]*F*|-[!-]*P*|-[!-]*T*|*:*"
        ),
        "tar [!-]*I*|[!-]*F*|[!-]*P*|[!-]*T*",
        "zip|unzip ** -T*|-[!-]*T*|--unzip-command*|-*:*",
        "patch ** -e*|--ed",
        (
            "git ** --output*|--ext-diff|--exec*|--upload-pack*|--receive-pack*|-O*|-[!-]*O*|--open-files-in-pager*|"
            "--textconv|--no-index|--config-env*|--git-dir*|--work-tree*|--template*|--separate-git-dir*|"
            "--unsafe-paths"
        ),
        "git checkout|switch ** --|.|./*|*/|-f|-[!-]*f*|--force|--discard-changes|:/|*:*|-B",
        "git checkout ** *.[a-z]*|*.[a-z]",
        "git checkout [!-]* *",
        "git checkout -q|--quiet|-m|--merge|--ours|--theirs|-p|--patch * *",
        "git checkout --ours|--theirs|-p|--patch",
        (
            "git branch ** -D*|-d*|-f*|-M*|-m*|-[!-]*D*|-[!-]*d*|-[!-]*f*|-[!-]*M*|-C*|--delete|--force|--move|"
            "--edit-description"
        ),
        "git tag ** -d*|-f*|-[!m-]*d*|-[!m-]*f*|--delete|--force",
        "git stash ** drop|clear",
        "git remote ** add|remove|rm|set-url|rename|update|prune|set-head|set-branches",
        "git remote ** show *",
        "git commit|merge|revert|cherry-pick ** --no-verify|-n*|-[!-m]*n*|-S*|--gpg-sign*|-s*=*|--strategy*",
        "git worktree add|remove|move|prune|repair|lock|unlock",
        "git reflog expire|delete",
        "git symbolic-ref * *",
        "git rm ** -r*|-[!-]*r*|-f*|.",
        "git config ** --global|--system|--add|--unset|--replace-all|-e|--edit",
        "rm|mv ** .git|.git/*|./.git",
        "cp|mv|ln|install ** -t*|--target-directory*",
        "ln ** -s*|--symbolic|-*s*",
        "rm ** --no-preserve-root",
        "chmod ** -*R*|--recursive|*777*|*+s*|u+s|g+s|4*|2*",
        "install ** -o*|-g*|--owner*|--strip-program*|-m*|--mode*",
        (
            "make|gmake ** --eval*|-E*|-[!-]*E*|*SHELL*=*|*=*$*|*=*`*|*=*;*|*=*&*|*!=*|MAKEFLAGS=*|-f*|-[!-]*f*|"
            "--file*|--makefile*"
        ),
        "make|gmake ** '[A-Z]*=[!-]* *'",
        "just ** -c*|--command*|--shell*|--chooser*|--choose|-e|--edit|-f*|--justfile*",
        "task ** -t*|--taskfile*|exec*",
        "rake ** -e*|-E*|-p*|--execute*|-r*|--require*|-f*|--rakefile*",
        "bundle exec rake ** -e*|-E*|-p*|--execute*|-r*|--require*|-f*|--rakefile*",
        "bazel ** --run_under*|--workspace_status_command*|--shell_executable*|--script_path*|--override_*|--*=/*",
        "mvn ** deploy*|*:*|-f*|--file*|-s*|--settings*|-gs*|--global-settings*",
        "gradle ** publish*|upload*|-I*|--init-script*|-b*|-p*|--project-dir*",
        "dotnet ** *Event=*|*Command=*|*Exec*=*|@*",
        "cmake ** -P*|-E*|-C*|*LAUNCHER*",
        "ninja ** -f*",
        (
            "npm|pnpm|yarn|bun publish|login|adduser|exec|config|set|link|unpublish|owner|token|access|"
            "deprecate|dlx|x|create"
        ),
        "npm|pnpm|yarn|bun ** --script-shell*|-g|--global*|--prefix*|--registry*|--node-options*|--userconfig*",
        "npm audit fix",
        "bun run sh|bash|dash|zsh|env|python*|perl|ruby|node|git|rm|mv|cp|curl|wget|ssh|sudo|find|xargs|awk|sed|tee|dd",
        "go ** -exec*|-toolexec*|-overlay*|-vettool*|*extld*|-C*",
        "go mod edit|download|get",
        "go run|build|test|generate|list ** *@*|[a-z]*.[a-z]*/*",
        "cargo ** --config*|-Z*|--target-dir*=/*",
        (
            "gcc|g++|cc|c++|clang|clang++|ld|rustc ** -fplugin*|-specs*|--specs*|-wrapper|-B*|-load|"
            "-Clinker*|--codegen=linker*|linker=*|@*|-Xclang|-plugin*|--plugin*"
        ),
        "ghc ** -e*|-pgm*|-F|--interactive|-package-db*",
        "java ** *:/*|*:..*|*:~*",
        "java|javac ** -agent*|-javaagent*|-XX:OnError*|-XX:OnOutOfMemoryError*|-XX:Flags*|-J*|@*",
        *(
            f"{start}{tool}"
            for start in ("", "python|python3|python3.* -m ", "uv|poetry run ", "coverage run -m ")
            for tool in (
                (
                    "pytest|py.test ** -p[!n]*|-pn[!o]*|--pyargs|-c*|--rootdir*|--confcutdir*|--override-ini*|-o*|"
                    "--basetemp*|--pastebin*"
                ),
                "pytest|py.test ** -p [!n]*|n[!o]*|no[!:]*",
                "mypy ** --python-executable*|--install-types|--config-file*",
                "pylint ** --init-hook*|--load-plugins*|--rcfile*",
                "tox exec|e|devenv|d|run-parallel|quickstart",
                "tox ** -x*|--override*|-c*|--conf*|--workdir*|--root*",
                "nox ** -f*|--noxfile*",
                "black|ruff ** --config*|-c",
                "pip install ** *://*|git+*|git@*|--index-url*|-i*|--extra-index-url*|--target*|-t|--user|--root*|--prefix*",
            )
        ),
        "pip3 install ** *://*|git+*|git@*|--index-url*|-i*|--extra-index-url*|--target*|-t|--user|--root*|--prefix*",
        "coverage run ** -m [!pu]*|p[!y]*|py[!t]*|u[!n]*",
        "python|python3|python3.* -m coverage run ** -m [!pu]*|p[!y]*|py[!t]*|u[!n]*",
        "python|python3|python3.* -*c*|-i|-",
        "python|python3|python3.* -u|-B|-O -*c*|-i|-",
        "python|python3|python3.* -W|-X * -*c*|-i|-",
        "node|deno|bun|ruby|perl|php|lua|Rscript|julia -e*|--eval*|-r*|--require*|--import*|-p*|--print*|-",
        (
            "node --check|--test ** -e*|--eval*|-r*|--require*|--import*|--loader*|--experimental*|-p*|--print*|"
            "--env-file*"
        ),
        "deno|bun ** *://*|npm:*|jsr:*|data:*|-A|--allow*|-",
        (
            "uv ** --index*|--default-index*|--extra-index-url*|--find-links*|--config-file*|--with*|--directory*|"
            "--project*"
        ),
        "read ** -u*",
        "mapfile|readarray ** -C*",
        "prettier|eslint ** --config*|-c|-f*|--rulesdir*|--plugin*|--resolve-plugins*",
        "shfmt ** -w=*",
        "sudo|doas|su|pkexec",
    ),
    reason="it may change or run more than its name says",
    match=("find . -delete", "git checkout -- .", "sort -o x y", "find . $X"),
    not_match=("find . -name '*.py'", "git checkout main", "sort x"),
)
_DENY: Final = Rule(
    decision="deny",
    commands=(
        "rm ** /|//|/.|/[*]|/bin|/boot|/dev|/etc|/home|/lib|/lib64|/opt|/proc|/root|/sbin|/srv|/sys|/usr|/var|/Users",
        "rm ** --no-preserve-root",
        "mkfs*",
        "wipefs|fdisk|sfdisk|parted|mkswap",
        "dd ** of=/dev/sd*|of=/dev/nvme*|of=/dev/vd*|of=/dev/hd*|of=/dev/disk*|of=/dev/mmc*",
        "shutdown|reboot|halt|poweroff",
    ),
    reason="it would destroy more than a session may risk",
    match=("rm -rf /", "rm -rf /usr", "mkfs.ext4 /dev/sda1", "dd if=/dev/zero of=/dev/sda"),
    not_match=("rm -rf build", "rm x", "dd if=a of=b"),
)

DEFAULT_RULES: Final = (_HARMLESS, _READERS, _WRITERS, _IN_THE_FOLDER, _PROGRAMS, _ASK, _DENY)
"""The default rules."""
