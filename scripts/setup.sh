# Prerequisites: what is missing for a purpose, and how it gets here. Sourced by ./fonds.
# A thing is looked for itself, not its package, so that any way of having installed it counts.

apt_packages=() # Debian packages to install
plain_names=()  # the same for a reader whose system has other packages

want() { apt_packages+=($1); plain_names+=("$2"); }

# The bin folder of the newest PostgreSQL that is new enough. The cli looks in the same places.
postgres_bin() {
  local dir major best='' best_major=14
  local places=("$(dirname "$(command -v postgres || echo /nowhere/postgres)")"
    /usr/lib/postgresql/*/bin /usr/pgsql-*/bin /usr/local/pgsql/bin /opt/homebrew/opt/postgresql@*/bin)
  for dir in "${FONDS_POSTGRES_BIN:-${places[@]}}"; do
    [ -x "$dir/postgres" ] && [ -x "$dir/initdb" ] || continue
    major=$("$dir/postgres" --version | sed 's/[^0-9]*\([0-9]*\).*/\1/')
    if [ "${major:-0}" -gt "$best_major" ]; then best=$dir best_major=$major; fi
  done
  [ -n "$best" ] && printf '%s\n' "$best"
}

browser() {
  local name
  for name in ${FONDS_CHROMIUM:-} chromium-headless-shell chromium chromium-browser google-chrome-stable google-chrome; do
    command -v "$name" && return
  done
  return 1
}

has_font() { [ -n "$(find /usr/share/fonts /usr/local/share/fonts "${HOME:-/nowhere}/.fonts" -name "$1" -print -quit 2>/dev/null)" ]; }

# Builds with whichever installed toolchain is the pinned version: a channel like `stable` may be just that,
# and then nothing has to be downloaded. Where none is, rustup fetches the pin at cargo's first use.
choose_toolchain() {
  local pin name
  if [ -n "${RUSTUP_TOOLCHAIN:-}" ] || ! have rustup; then return; fi
  pin=$(sed -n 's/^channel = "\(.*\)"$/\1/p' "$root/rust-toolchain.toml")
  while read -r name _; do
    case $(rustup run "$name" rustc --version 2>/dev/null) in
      "rustc $pin "*)
        export RUSTUP_TOOLCHAIN=$name
        return
        ;;
    esac
  done < <(rustup toolchain list 2>/dev/null)
}

look_for_build() {
  have cargo || die 'the Rust toolchain is missing: install it with rustup (the version is in rust-toolchain.toml), then run this again'
  choose_toolchain
  have cc || want gcc 'a C compiler'
  { have cc && printf '#include <stdlib.h>\n' | cc -E - >/dev/null 2>&1; } || want libc6-dev 'the C library headers'
}

look_for_run() {
  postgres_bin >/dev/null || want postgresql 'PostgreSQL 15 or newer (the server)'
  browser >/dev/null || want chromium-headless-shell 'Chromium (its headless shell, or the full browser)'
  { has_font 'DejaVu*' || has_font 'Liberation*'; } || want 'fonts-dejavu-core fonts-liberation' 'fonts (DejaVu, Liberation)'
  has_font 'NotoColorEmoji*' || want fonts-noto-color-emoji 'an emoji font (Noto Color Emoji)'
}

look_for_test() {
  python3 -c 'import venv, ensurepip' >/dev/null 2>&1 || want 'python3 python3-venv' 'Python 3.10 or newer with venv'
  [ -n "$(find -L /usr/share/doc/python3-doc /usr/share/doc/python3.*/html -name tutorial -print -quit 2>/dev/null)" ] ||
    want python3-doc 'the Python documentation as HTML (a test crawls it)'
}

# need build|run|test...: returns when everything is there, ends the script when it cannot be had.
need() {
  local purpose
  apt_packages=() plain_names=()
  for purpose; do "look_for_$purpose"; done
  [ ${#apt_packages[@]} -eq 0 ] && return
  if [ -n "${FONDS_NO_INSTALL:-}" ]; then
    die "missing: $(list "${plain_names[@]}"). Debian and Ubuntu: $(apt_command)"
  fi
  have apt-get || die "missing: $(list "${plain_names[@]}"). Install them with your system's package manager, then run this again."
  install_packages
  # What a package did not bring is named now, not by whatever fails later for want of it.
  apt_packages=() plain_names=()
  for purpose; do "look_for_$purpose"; done
  for purpose in "${plain_names[@]}"; do
    case $purpose in
      Chromium* | *font* | 'the Python documentation'*) say "still missing, going on without: $purpose" ;;
      PostgreSQL*) die "still missing: $purpose. This system's own package is older: take it from PostgreSQL's package archive for Debian and Ubuntu, or name its bin folder in FONDS_POSTGRES_BIN." ;;
      *) die "still missing: $purpose" ;;
    esac
  done
}

list() { local IFS=';'; printf '%s' "$*" | sed 's/;/; /g'; }

apt_command() { printf 'apt-get update && apt-get install -y --no-install-recommends %s' "${apt_packages[*]}"; }

install_packages() {
  local as_root=() log name chosen=()
  if [ "$(id -u)" -ne 0 ]; then
    if have sudo && { sudo -n true 2>/dev/null || [ -t 0 ]; }; then
      as_root=(sudo)
    else
      die "missing: $(list "${plain_names[@]}"). As root, run: $(apt_command)"
    fi
  fi
  log=$(mktemp "${TMPDIR:-/tmp}/fonds-setup.XXXXXX")
  say "installing from the system's packages: ${apt_packages[*]}"
  apt_get update >"$log" 2>&1 || say "apt-get update did not succeed; trying with the lists there are"
  for name in "${apt_packages[@]}"; do
    if [ "$name" = chromium-headless-shell ] && ! in_packages "$name"; then name=chromium; fi
    if in_packages "$name"; then chosen+=("$name"); else say "the system's packages have no $name"; fi
  done
  case " ${chosen[*]} " in *' postgresql '*) keep_from_starting_a_cluster "$log" ;; esac
  if ! apt_get install -y -qq --no-install-recommends "${chosen[@]}" >>"$log" 2>&1; then
    tail -n 30 "$log" >&2
    die "the packages could not be installed; the whole log is in $log"
  fi
  rm -f "$log"
}

apt_get() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 "$@" </dev/null
}

in_packages() {
  # Not piped into `grep -q`: the early end of grep would count as a failure of apt-cache.
  case $(apt-cache policy "$1" 2>/dev/null) in *'Candidate: '[!\(]*) return 0 ;; *) return 1 ;; esac
}

# fonds runs a private cluster; Debian's package would make and start one of its own on port 5432.
# Where an administrator has already set that file, it is left as it is.
keep_from_starting_a_cluster() {
  local conf=/etc/postgresql-common/createcluster.conf
  if [ ! -e "$conf" ]; then
    apt_get install -y -qq --no-install-recommends postgresql-common >>"$1" 2>&1 || true
  fi
  "${as_root[@]}" sed -i 's/^#create_main_cluster *=.*/create_main_cluster = false/' "$conf" 2>/dev/null || true
}
