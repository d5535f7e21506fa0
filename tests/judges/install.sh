#!/usr/bin/env bash
# Puts the outside judges of WARC and WACZ into one folder: install.sh DIR
#   DIR/venv        Python tools of requirements.txt
#   DIR/bin/warcat  the Rust verifier
# Runs again without harm; what is there in the right version is left alone.
set -euo pipefail

dir=${1:?usage: install.sh DIR}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
warcat_version=0.3.4

mkdir -p "$dir"
dir=$(cd "$dir" && pwd)

if ! python3 -c 'import ensurepip' 2>/dev/null; then
    echo "python3-venv is missing (apt-get install python3-venv)" >&2
    exit 1
fi
if ! cmp -s "$here/requirements.txt" "$dir/requirements.installed"; then
    [ -x "$dir/venv/bin/python" ] || python3 -m venv "$dir/venv"
    "$dir/venv/bin/pip" install --quiet --disable-pip-version-check -r "$here/requirements.txt"
    cp "$here/requirements.txt" "$dir/requirements.installed"
fi

if [ "$("$dir/bin/warcat" --version 2>/dev/null || true)" != "warcat $warcat_version" ]; then
    # --locked: its dependencies do not agree with each other in their newest versions.
    # A target folder of its own keeps it out of a workspace this may be called from.
    CARGO_TARGET_DIR="$dir/target" cargo install warcat --locked --version "$warcat_version" --features bin --root "$dir"
    rm -rf "$dir/target"
fi
echo "judges are in $dir"
