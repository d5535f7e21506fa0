# Every check there is, in the order in which they fail soonest. Sourced by ./fonds.
#
# The last line is `N passed, N failed`: the tests of every test program, and each other check as one more.

. "$root/scripts/sqlx.sh"

passed=0 failed=0 failures=()

# check NAME COMMAND...: one check that is no test program. Its output is shown when it fails.
check() {
  local name=$1 log=$state/check.log began=$SECONDS
  shift
  if "$@" >"$log" 2>&1; then
    passed=$((passed + 1))
    printf 'ok      %s (%s)\n' "$name" "$(clock $((SECONDS - began)))"
  else
    failed=$((failed + 1))
    failures+=("$name")
    printf 'FAILED  %s (%s)\n' "$name" "$(clock $((SECONDS - began)))"
    grep -vE '^ +(Compiling|Checking|Documenting|Downloading|Downloaded|Updating|Locking) ' "$log" | tail -n 200 | sed 's/^/    /' || true
  fi
}

migrations_are_reversible() {
  local left="SELECT c.relname || ' was left behind' FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = 'public' AND c.relkind IN ('r', 'v', 'm', 'S')"
  # Chained, because a function called as a condition does not stop at a command that fails.
  make_database migrations && schema_of migrations >"$state/schema-1" && migrate_down migrations &&
    sql migrations -At -c "$left" | tee "$state/left" && [ ! -s "$state/left" ] &&
    migrate_up migrations && schema_of migrations >"$state/schema-2" && diff "$state/schema-1" "$state/schema-2"
}

# Without pg_dump's key, which is another on every run.
schema_of() { "${psql_bin%psql}pg_dump" --schema-only "$pg_url/$1" | grep -vE '^\\(un)?restrict '; }

lint_and_regenerate() { regenerate_sqlx "$state/sqlx" clippy -- -D warnings; }

sqlx_is_current() { compare_sqlx "$state/sqlx"; }

documented() { RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps --locked; }

# Shows which program runs, its verdict, and everything about a failure; not the thousands of passing lines.
digest() {
  awk '
    /^failures:$/ { inside = 1 }
    inside || /^ +(Running|Doc-tests) / || /^test result: / || /\.\.\. FAILED/ || /has been running for over/ || /^error/ { print; fflush() }
    /^test result: / { inside = 0 }
  '
}

# run_tests cargo-test-arguments...
run_tests() {
  local log=$state/tests.log status=0 good bad
  if ! quiet_cargo 'building the tests' test --locked "$@" --no-run; then
    failed=$((failed + 1))
    failures+=('building the tests')
    return
  fi
  timeout --kill-after=30 --signal=INT "${FONDS_TEST_TIMEOUT:-1800}" cargo test --locked --no-fail-fast "$@" 2>&1 | tee "$log" | digest || status=$?
  read -r good bad < <(awk '/^test result: / { good += $4; bad += $6 } END { print good + 0, bad + 0 }' "$log")
  passed=$((passed + good))
  failed=$((failed + bad))
  while IFS= read -r name; do failures+=("$name"); done < <(sed -n 's/^test \(.*\) \.\.\. FAILED$/\1/p' "$log" | sort -u)
  # A test program that was killed or did not finish has no result line of its own.
  if [ "$status" -ne 0 ] && [ "$bad" -eq 0 ]; then
    failed=$((failed + 1))
    failures+=("cargo test ended with status $status")
    tail -n 60 "$log"
  fi
}

report() {
  local name
  printf '\n'
  for name in "${failures[@]}"; do printf 'failed: %s\n' "$name"; done
  printf 'took %s\n%s passed, %s failed\n' "$(clock "$SECONDS")" "$passed" "$failed"
  [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
}

run_test() {
  need build run test
  start_services "$@"
  if [ $# -gt 0 ]; then
    case $1 in -*) ;; *) set -- --workspace "$@" ;; esac
    run_tests "$@"
    report
    return
  fi
  check 'formatting' cargo fmt --all --check
  check 'migrations up, down and up again' migrations_are_reversible
  # One pass over the code lints it and asks the database about every query.
  check 'lints' lint_and_regenerate
  check '.sqlx is what the queries need' sqlx_is_current
  check 'documentation' documented
  if have cargo-deny; then check 'licences and banned crates' cargo deny --locked check bans licenses sources; fi
  run_tests --workspace
  report
}
