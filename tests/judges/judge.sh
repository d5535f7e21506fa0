#!/usr/bin/env bash
# Shows a WARC, and a WACZ and an index if given, to the outside judges: judge.sh DIR FILE.warc.gz [FILE.wacz [INDEX.cdxj]]
# DIR is what install.sh made; WARCAT names another warcat binary. Exit 0 only when all agree; every objection is a line "FAIL ...".
set -uo pipefail

dir=${1:?usage: judge.sh DIR FILE.warc.gz [FILE.wacz [INDEX.cdxj]]}
shift
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
exec "$dir/venv/bin/python" "$here/judge.py" --bin "$dir/venv/bin" --warcat "${WARCAT:-$dir/bin/warcat}" "$@"
