#!/bin/sh
# Everything from a bare machine in one command:
#   sh packaging/dev.sh run [FILE...]   open a sample trace or FILE (where no display answers: draw it to a picture)
#   sh packaging/dev.sh test            lint, types, import direction and every test
#   sh packaging/dev.sh fast            lint and the tests of rules and formulas: seconds, without windows
#   sh packaging/dev.sh bench           the benchmarks
# Needs Python 3.11 or newer (PYTHON=... names one). Makes .venv beside pyproject.toml. What the system lacks is named
# as one line to paste; as root on a system with apt-get it is installed.
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
task=${1:-run}
[ $# -gt 0 ] && shift

case $task in
run | test | fast | bench) ;;
*)
    echo "usage: sh packaging/dev.sh run [FILE...] | test | fast | bench" >&2
    exit 2
    ;;
esac

say() { printf '%s\n' "$*" >&2; }

find_python() {
    for candidate in ${PYTHON:-python3 python3.13 python3.12 python3.11 python3.14}; do
        if command -v "$candidate" >/dev/null 2>&1 &&
            "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$candidate"
            return
        fi
    done
}

# The package manager of this system, which is also the heading of its column in system_packages.txt; empty: unknown.
find_manager() {
    [ "$(uname -s)" = Linux ] || return 0
    for candidate in apt-get dnf pacman apk; do
        if command -v "$candidate" >/dev/null 2>&1; then
            printf '%s' "$candidate"
            return
        fi
    done
}

# Prints those of the libraries named that the loader does not find; without Python, that lie nowhere it looks.
missing_libraries() {
    if [ -n "$python" ]; then
        "$python" -c '
import ctypes, sys
for name in sys.argv[1:]:
    try:
        ctypes.CDLL(name)
    except OSError:
        print(name)' "$@"
        return
    fi
    known=$(ls /lib /usr/lib /lib64 /usr/lib64 /usr/local/lib /lib/*-linux-* /usr/lib/*-linux-* 2>/dev/null || true)
    for name in "$@"; do
        case $known in *"$name"*) ;; *) printf '%s\n' "$name" ;; esac
    done
}

# Prints what is missing for the task, as names of the first column of system_packages.txt.
missing_things() {
    [ -n "$python" ] || printf 'python3\nvenv\n'
    if [ -n "$python" ] && [ ! -x "$root/.venv/bin/python" ]; then
        "$python" -c 'import ensurepip, venv' 2>/dev/null || echo venv
    fi
    [ "$(uname -s)" = Linux ] || return 0
    uses=" draw "
    if [ -n "${DISPLAY:-}" ] || [ "$task" = test ]; then uses="$uses x11 "; fi
    if [ -n "${WAYLAND_DISPLAY:-}" ]; then uses="$uses wayland "; fi
    # shellcheck disable=SC2046  # names without spaces
    missing_libraries $(awk -v uses="$uses" '!/^#/ && index(uses, " " $2 " ") { print $1 }' "$packages")
    if [ "$task" = test ] && ! command -v Xvfb >/dev/null 2>&1; then echo Xvfb; fi
}

# Prints the line that installs the packages named, with rights where they are needed.
install_line() {
    case $manager in
    apt-get) line="apt-get update && apt-get install -y $*" ;;
    dnf) line="dnf install -y $*" ;;
    pacman) line="pacman -S --needed $*" ;;
    apk) line="apk add $*" ;;
    esac
    if [ "$(id -u)" = 0 ]; then
        printf '%s' "$line"
    elif command -v sudo >/dev/null 2>&1; then
        case $line in *'&&'*) printf "sudo sh -c '%s'" "$line" ;; *) printf 'sudo %s' "$line" ;; esac
    else
        printf "su - -c '%s'" "$line"
    fi
}

# Installs what is missing, or says what it is in one line and ends.
provide() {
    if [ -z "$manager" ]; then
        say "These are missing. Install them with your system's package manager and run this again:"
        say "  $*"
        exit 1
    fi
    names=$(for thing in "$@"; do
        awk -v thing="$thing" -v manager="$manager" '
            BEGIN { column["apt-get"] = 3; column["dnf"] = 4; column["pacman"] = 5; column["apk"] = 6 }
            $1 == thing { print $column[manager] }' "$packages"
    done | sort -u | tr '\n' ' ')
    names=${names% }
    # shellcheck disable=SC2086  # a list of package names
    line=$(install_line $names)
    if [ "$(id -u)" = 0 ] && [ "$manager" = apt-get ]; then
        say "Installing system packages: $names"
        apt-get update -qq >&2 || true
        # shellcheck disable=SC2086
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $names >/dev/null && return
        say "That failed. This is the line to try by hand:"
    else
        say "System packages are missing. Paste this line, then run this again:"
    fi
    say "  $line"
    exit 1
}

# Ends where the system's Python is there and too old: no package of that name brings a newer one.
refuse_old_python() {
    if [ -n "${PYTHON:-}" ] || command -v python3 >/dev/null 2>&1; then
        say "tracescope needs Python 3.11 or newer; here is $("${PYTHON:-python3}" --version 2>&1 || true)."
        say "Install a newer one and name it: PYTHON=python3.12 sh packaging/dev.sh $task"
        exit 1
    fi
}

# Draws every trace named to a picture in the folder where the user stands.
draw() {
    for file in "$@"; do
        case $file in -*) continue ;; esac
        picture=$(basename -- "$file" | sed -e 's/\.gz$//' -e 's/\.tscope\.h5$//' -e 's/\.json$//' -e 's/\.pt\.trace$//').png
        "$root/.venv/bin/tracescope" render "$file" -o "$picture" || [ $? -eq 3 ]
        say "So the trace was drawn to a picture: $picture"
    done
}

packages=$root/tracescope/presets/system_packages.txt
manager=$(find_manager)
python=$(find_python)
[ -n "$python" ] || refuse_old_python
wanted=$(missing_things)
if [ -n "$wanted" ]; then
    # shellcheck disable=SC2086  # a list of names
    provide $wanted
    python=$(find_python)
    [ -n "$python" ] || refuse_old_python
fi

extra=""
[ "$task" = run ] || extra="[dev]"
stamp="$root/.venv/.installed$(printf '%s' "$extra" | tr -d '[]')"
current=$(cat "$root/pyproject.toml" "$root/packaging/constraints.txt" | cksum)
if [ ! -x "$root/.venv/bin/python" ]; then
    say "Making .venv with $("$python" --version)"
    "$python" -m venv "$root/.venv"
fi
if [ "$(cat "$stamp" 2>/dev/null || true)" != "$current" ]; then
    say "Installing tracescope and what it needs"
    "$root/.venv/bin/python" -m pip install --quiet --disable-pip-version-check \
        -c "$root/packaging/constraints.txt" -e "$root$extra"
    printf '%s\n' "$current" >"$stamp"
fi

case $task in
run)
    [ $# -gt 0 ] || set -- "$root/sample_traces/llama-3-8b_h100_b16_c4096.tscope.h5"
    # What the window itself would refuse: no display, one that does not answer, a library of it that is missing.
    if no_window=$("$root/.venv/bin/python" -c '
import sys
from tracescope.core.errors import TraceError
from tracescope.ui.startup import check_display
try:
    check_display()
except TraceError as refused:
    print(refused.what)
    sys.exit(1)'); then
        exec "$root/.venv/bin/tracescope" "$@"
    fi
    say "${no_window:-The window cannot start.}"
    draw "$@"
    ;;
test)
    cd "$root"
    .venv/bin/ruff check .
    .venv/bin/ruff format --check .
    .venv/bin/lint-imports
    .venv/bin/mypy
    .venv/bin/pytest -n 2 "$@"
    ;;
fast)
    cd "$root"
    .venv/bin/poe --quiet fast "$@"
    ;;
bench)
    cd "$root"
    .venv/bin/python -m tests.bench "$@"
    ;;
esac
