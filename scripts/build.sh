# Building with one progress line instead of cargo's list of crates. Sourced by ./fonds.

# quiet_cargo WHAT cargo-arguments...: silent when nothing is to be done, one line while something is.
quiet_cargo() {
  local what=$1 log pid total built waited=0 shown='' status=0
  shift
  log=$(mktemp "${TMPDIR:-/tmp}/fonds-build.XXXXXX")
  total=$(grep -c '^name = ' "$root/Cargo.lock")
  (cd "$root" && exec cargo "$@") >"$log" 2>&1 </dev/null &
  pid=$!
  trap 'kill "$pid" 2>/dev/null || true; rm -f "$log"; exit 130' INT TERM
  while kill -0 "$pid" 2>/dev/null; do
    sleep 0.2
    waited=$((waited + 1))
    [ "$waited" -ge 10 ] || continue
    built=$(grep -cE '^ +(Compiling|Checking) ' "$log" || true)
    if [ -t 2 ]; then
      printf '\r\033[Kfonds: %s: %s of about %s crates, %s' "$what" "$built" "$total" "$(clock $((waited / 5)))" >&2
      shown=line
    elif [ $((waited % 300)) -eq 10 ]; then
      if [ -z "$shown" ]; then say "$what (the first time takes minutes)"; else say "$what: $built of about $total crates, $(clock $((waited / 5)))"; fi
      shown=lines
    fi
  done
  wait "$pid" || status=$?
  trap - INT TERM
  [ "$shown" = line ] && printf '\r\033[K' >&2
  if [ "$status" -ne 0 ]; then
    grep -vE '^ +(Compiling|Checking|Downloading|Downloaded|Updating|Locking|Blocking) ' "$log" | tail -n 200 >&2 || true
  elif [ -n "$shown" ]; then
    say "$what: done in $(clock $((waited / 5)))"
  fi
  rm -f "$log"
  return "$status"
}

clock() { printf '%d:%02d' $(($1 / 60)) $(($1 % 60)); }

# The release binary, rebuilt only when cargo finds a source changed.
build_cli() {
  if ! quiet_cargo 'building fonds' build --release --locked --package fonds-cli; then
    die 'the build failed (above)'
  fi
}
