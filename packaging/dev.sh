#!/bin/sh
# Everything from a bare machine in one command:
#   sh packaging/dev.sh run [FILE...]   open a sample trace (without a display: render it to a picture)
#   sh packaging/dev.sh test            lint, types, import direction and every test
#   sh packaging/dev.sh bench           the benchmarks
# Needs Python 3.11 or newer. Makes .venv beside pyproject.toml; installs missing system packages when run as root,
# otherwise prints the one line that does.
set -eu

cd "$(dirname "$0")/.."
task=${1:-run}
[ $# -gt 0 ] && shift

say() { printf '%s\n' "$*" >&2; }

offscreen_packages="libgl1 libegl1 libxkbcommon0 libdbus-1-3 libfontconfig1 libglib2.0-0"
x11_packages="libxcb-cursor0 libxcb-icccm4 libxcb-keysyms1 libxcb-shape0 libxkbcommon-x11-0"

find_python() {
    for candidate in python3 python3.13 python3.12 python3.11 python3.14; do
        if command -v "$candidate" >/dev/null 2>&1 &&
            "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$candidate"
            return
        fi
    done
}

# Prints the packages that are missing among those named "library-file:package".
missing_libraries() {
    for pair in "$@"; do
        "$python" -c 'import ctypes, sys; ctypes.CDLL(sys.argv[1])' "${pair%%:*}" 2>/dev/null || printf '%s ' "${pair#*:}"
    done
}

install_packages() {
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        say "Installing system packages: $*"
        apt-get update -qq >&2
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
    else
        say "These packages are missing. Install them and run this again:"
        say "  sudo apt-get install -y $*"
        exit 1
    fi
}

python=$(find_python)
if [ -z "$python" ]; then
    install_packages python3 python3-venv
    python=$(find_python)
    [ -n "$python" ] || { say "tracescope needs Python 3.11 or newer; this system offers an older one."; exit 1; }
fi
if [ ! -x .venv/bin/python ]; then
    "$python" -c 'import ensurepip, venv' 2>/dev/null || install_packages python3-venv
fi

wanted=$(missing_libraries libGL.so.1:libgl1 libEGL.so.1:libegl1 libxkbcommon.so.0:libxkbcommon0 \
    libdbus-1.so.3:libdbus-1-3 libfontconfig.so.1:libfontconfig1 libglib-2.0.so.0:libglib2.0-0)
if [ -n "${DISPLAY:-}" ] || [ "$task" = test ]; then
    wanted="$wanted$(missing_libraries libxcb-cursor.so.0:libxcb-cursor0 libxcb-icccm.so.4:libxcb-icccm4 \
        libxcb-keysyms.so.1:libxcb-keysyms1 libxcb-shape.so.0:libxcb-shape0 libxkbcommon-x11.so.0:libxkbcommon-x11-0)"
fi
if [ "$task" = test ] && ! command -v Xvfb >/dev/null 2>&1; then
    wanted="$wanted xvfb"
fi
# shellcheck disable=SC2086  # a list of package names
[ -z "$wanted" ] || install_packages $wanted

extra=""
[ "$task" = run ] || extra="[dev]"
stamp=".venv/.installed$(printf '%s' "$extra" | tr -d '[]')"
current=$(cat pyproject.toml packaging/constraints.txt | cksum)
if [ ! -x .venv/bin/python ]; then
    say "Making .venv with $("$python" --version)"
    "$python" -m venv .venv
fi
if [ "$(cat "$stamp" 2>/dev/null || true)" != "$current" ]; then
    say "Installing tracescope and what it needs"
    .venv/bin/python -m pip install --quiet --disable-pip-version-check -c packaging/constraints.txt -e ".$extra"
    printf '%s\n' "$current" >"$stamp"
fi

case $task in
run)
    sample=sample_traces/llama-3-8b_h100_b16_c4096.tscope.h5
    [ $# -gt 0 ] || set -- "$sample"
    if [ -n "${DISPLAY:-}${WAYLAND_DISPLAY:-}" ] || [ "$(uname -s)" = Darwin ]; then
        exec .venv/bin/tracescope "$@"
    fi
    picture=$(basename "$1" .tscope.h5).png
    .venv/bin/tracescope render "$1" -o "$picture"
    say "There is no display here, so the trace was drawn to a picture: $picture"
    ;;
test)
    .venv/bin/ruff check .
    .venv/bin/ruff format --check .
    .venv/bin/lint-imports
    .venv/bin/mypy
    .venv/bin/pytest -n 2 "$@"
    ;;
bench)
    .venv/bin/python -m tests.bench "$@"
    ;;
*)
    say "usage: sh packaging/dev.sh run [FILE...] | test | bench"
    exit 2
    ;;
esac
