# .sqlx/: what the database says about every query, so that a build needs no database. Sourced by ./fonds.

# regenerate_sqlx DIR check|clippy [ARGS...]: compiles everything against the running database; the query macros
# write into DIR. Only files that are compiled again write, so the ones with queries are touched first.
regenerate_sqlx() {
  local dir=$1
  shift
  mkdir -p "$dir"
  grep -rlE 'query(_as|_scalar|_file|_file_as)?(_unchecked)?!' --include='*.rs' shared functions cli tests | xargs -r touch
  SQLX_OFFLINE=false SQLX_OFFLINE_DIR=$dir cargo "$1" --workspace --all-targets --locked "${@:2}"
}

# compare_sqlx DIR: the committed files against what the database says now.
compare_sqlx() {
  if diff -r "$root/.sqlx" "$1"; then return 0; fi
  # Another major version may plan a query differently and so infer another nullability; then only the set of
  # queries can be compared.
  if [ "$postgres_major" != "$sqlx_major" ] && [ "$(ls "$root/.sqlx")" = "$(ls "$1")" ]; then
    say "the .sqlx files differ in content only, and were made with PostgreSQL $sqlx_major (this is $postgres_major)"
    return 0
  fi
  say '.sqlx/ is not what the queries need: run ./fonds sqlx and commit it'
  return 1
}

# The version that the committed files are made with.
sqlx_major=15

run_sqlx() {
  need build run
  begin_services
  start_postgres
  [ "$postgres_major" = "$sqlx_major" ] || say "made with PostgreSQL $postgres_major; the committed files come from $sqlx_major"
  regenerate_sqlx "$state/sqlx" check --quiet
  rm -rf "$root/.sqlx"
  cp -r "$state/sqlx" "$root/.sqlx"
  say "$(find "$root/.sqlx" -name '*.json' | wc -l) queries in .sqlx/"
}
