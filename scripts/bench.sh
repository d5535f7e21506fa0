# Benchmarks, with the services they need. Sourced by ./fonds.

run_bench() {
  local name=${1:-} known
  known=$(cd "$root/tests/benches" 2>/dev/null && ls -- *.rs 2>/dev/null | sed 's/\.rs$//' | tr '\n' ' ')
  if [ -z "$name" ]; then
    printf 'usage: ./fonds bench NAME [ARGUMENTS...]\nbenchmarks: %s\n' "${known:-none}"
    return 2
  fi
  case " $known " in *" $name "*) ;; *) die "no benchmark is called $name; known: ${known:-none}" ;; esac
  shift
  need build run test
  start_services
  quiet_cargo 'building the benchmark' bench --locked --package fonds-tests --bench "$name" --no-run
  cargo bench --quiet --locked --package fonds-tests --bench "$name" -- "$@"
}
