#!/usr/bin/env bash
# MiniStack (an emulator of AWS's endpoint, here for S3 and SQS) on loopback, without Docker.
#
#   ministack.sh DIR [start]   install when needed, start, print `endpoint=URL` and `pid=N`, leave it running
#   ministack.sh DIR hold      the same, then stay until standard input closes, then stop it: the emulator
#                              cannot outlive whoever holds the pipe, however that one ends
#   ministack.sh DIR stop      stop what `start` left running
#   ministack.sh DIR install   only the virtual environment
#
# DIR keeps the virtual environment (made once, re-made when requirements-ministack.txt changes). What the
# emulator stores is temporary and goes with it. PORT=N asks for a fixed port, AUTH=true for IAM and SigV4 checks.
set -euo pipefail

dir=${1:?usage: ministack.sh DIR [start|hold|stop|install]}
action=${2:-start}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
requirements=$here/requirements-ministack.txt
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
venv=$dir/venv
state=$dir/running

say() { printf 'ministack: %s\n' "$*" >&2; }

find_python() {
  local candidate
  for candidate in ${PYTHON:-} python3.13 python3.12 python3.11 python3; do
    if command -v "$candidate" >/dev/null 2>&1 \
      && "$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
      printf '%s\n' "$candidate"
      return
    fi
  done
  say "needs Python 3.10 or newer with the venv module (Debian: apt-get install python3-venv)"
  exit 3
}

install() {
  local stamp
  stamp=$(cksum <"$requirements")
  [ "$(cat "$venv/stamp" 2>/dev/null || true)" = "$stamp" ] && return
  say "installing into $venv"
  rm -rf "$venv"
  "$(find_python)" -m venv "$venv"
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-input -r "$requirements" >&2
  printf '%s' "$stamp" >"$venv/stamp"
}

# Two test programs may come here at once; the second waits for the first's installation.
install_once() {
  if command -v flock >/dev/null 2>&1; then
    ( flock 9; install ) 9>"$dir/lock"
  else
    install
  fi
}

free_port() {
  "$venv/bin/python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# True once the emulator answers, false when it died or 60 s went by.
healthy() {
  "$venv/bin/python" - "$1" "$2" <<'PY'
import os, sys, time, urllib.request
url, pid = sys.argv[1] + "/_ministack/health", int(sys.argv[2])
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
end = time.monotonic() + 60
while time.monotonic() < end:
    try:
        with opener.open(url, timeout=2) as answer:
            sys.exit(answer.status != 200)
    except OSError:
        pass
    try:
        os.kill(pid, 0)
    except OSError:
        sys.exit(1)
    time.sleep(0.03)
sys.exit(1)
PY
}

# Sets `pid`, `endpoint` and `data`. The environment is emptied because functions the emulator starts inherit it.
launch() {
  local port attempt
  for attempt in 1 2 3; do
    port=${PORT:-$(free_port)}
    endpoint=http://127.0.0.1:$port
    data=$(mktemp -d "${TMPDIR:-/tmp}/ministack.XXXXXX")
    mkdir "$data/tmp"
    env -i PATH="$venv/bin:/usr/local/bin:/usr/bin:/bin" HOME="$data" TMPDIR="$data/tmp" LANG=C.UTF-8 \
      AWS_DEFAULT_REGION=us-east-1 AWS_ENDPOINT_URL="$endpoint" \
      GATEWAY_PORT="$port" BIND_HOST=127.0.0.1 MINISTACK_HOST=127.0.0.1 IOT_MTLS_ENABLED=0 ${AUTH:+AUTH="$AUTH"} \
      "$venv/bin/ministack" >"$data/log" 2>&1 </dev/null 9>&- &
    pid=$!
    healthy "$endpoint" "$pid" && return
    say "attempt $attempt on port $port failed:"
    tail -n 5 "$data/log" >&2 || true
    halt "$pid" "$data"
  done
  exit 1
}

halt() {
  local left
  kill "$1" 2>/dev/null || true
  for left in $(seq 100); do
    kill -0 "$1" 2>/dev/null || break
    sleep 0.05
  done
  kill -9 "$1" 2>/dev/null || true
  rm -rf "$2"
}

stop_running() {
  [ -f "$state" ] || return 0
  local pid data
  { read -r pid; read -r data; } <"$state"
  rm -f "$state"
  # Only a process that is still the one we started: a process id may have been given to another.
  if tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null | grep -q "$venv"; then
    halt "$pid" "$data"
  elif [ ! -d /proc ]; then
    halt "$pid" "$data"
  else
    rm -rf "$data"
  fi
}

case $action in
  install) install_once ;;
  start)
    install_once
    stop_running
    launch
    printf '%s\n%s\n' "$pid" "$data" >"$state"
    printf 'endpoint=%s\npid=%s\n' "$endpoint" "$pid"
    ;;
  hold)
    install_once
    launch
    trap 'halt "$pid" "$data"' EXIT
    printf 'endpoint=%s\npid=%s\n' "$endpoint" "$pid"
    cat >/dev/null
    ;;
  stop) stop_running ;;
  *)
    say "unknown action: $action"
    exit 2
    ;;
esac
