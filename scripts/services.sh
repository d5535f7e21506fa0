# What tests and benchmarks need beside the code: a private Postgres, an emulator of S3 and SQS, the outside
# judges of WARC files. All on loopback, in one temporary folder, gone on any exit. Sourced by ./fonds.

state='' # the temporary folder
postgres_pid='' emulator_pid=''

# Everything this script started ends with it: on a normal end, an error, a signal; and where `setpriv` can
# tie a child to its parent, even when the script itself is killed.
end_services() {
  local status=$?
  trap - EXIT INT TERM HUP
  [ -n "$emulator_pid" ] && exec {emulator_in}>&-
  [ -n "$postgres_pid" ] && kill -QUIT "$postgres_pid" 2>/dev/null
  [ -n "$emulator_pid" ] && wait "$emulator_pid" 2>/dev/null
  [ -n "$postgres_pid" ] && wait "$postgres_pid" 2>/dev/null
  [ -n "$state" ] && rm -rf "$state"
  exit "$status"
}

begin_services() {
  # Not below TMPDIR of a user's own: the database's user must be able to enter it.
  state=$(mktemp -d /tmp/fonds-services.XXXXXX)
  chmod 755 "$state"
  trap end_services EXIT
  trap 'exit 130' INT TERM HUP
}

# as_postgres COMMAND...: PostgreSQL refuses to run as root.
as_postgres() {
  if [ "$(id -u)" -eq 0 ]; then
    setpriv --reuid=postgres --regid=postgres --init-groups -- "$@"
  else
    "$@"
  fi
}

free_port() {
  local port
  while :; do
    port=$((20000 + RANDOM % 12000))
    (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { printf '%s\n' "$port"; return; }
  done
}

start_postgres() {
  local bin data=$state/postgres port tied=(setpriv --pdeathsig INT) left
  bin=$(postgres_bin) || die 'no PostgreSQL 15 or newer'
  postgres_major=$("$bin/postgres" --version | sed 's/[^0-9]*\([0-9]*\).*/\1/')
  [ "$(id -u)" -eq 0 ] && tied+=(--reuid=postgres --regid=postgres --init-groups)
  install -d -m 700 "$data"
  [ "$(id -u)" -eq 0 ] && chown postgres "$data"
  (cd / && as_postgres "$bin/initdb" --pgdata="$data" --username=postgres --auth=trust --encoding=UTF8 --locale=C.UTF-8 --no-sync) \
    >"$state/initdb.log" 2>&1 || { cat "$state/initdb.log" >&2; die 'initdb failed'; }
  port=$(free_port)
  # Tests make a database each and many connections; nothing here needs to survive a power cut.
  (cd / && exec "${tied[@]}" -- "$bin/postgres" -D "$data" -p "$port" -k "$data" -c listen_addresses=127.0.0.1 -c max_connections=300 \
    -c fsync=off -c synchronous_commit=off -c full_page_writes=off -c shared_buffers=256MB -c wal_level=minimal -c max_wal_senders=0 \
    -c autovacuum_naptime=10s) >"$state/postgres.log" 2>&1 </dev/null &
  postgres_pid=$!
  for left in $(seq 300); do
    [ "$(sed -n 8p "$data/postmaster.pid" 2>/dev/null | tr -d ' ')" = ready ] && break
    kill -0 "$postgres_pid" 2>/dev/null && [ "$left" -lt 300 ] || { tail -n 20 "$state/postgres.log" >&2; die 'PostgreSQL did not start'; }
    sleep 0.1
  done
  psql_bin=$bin/psql
  [ -x "$psql_bin" ] || psql_bin=psql
  pg_url=postgres://postgres@127.0.0.1:$port
  make_database fonds
  export DATABASE_URL=$pg_url/fonds
}

# make_database NAME: empty, then migrated.
make_database() {
  sql postgres -c "CREATE DATABASE $1" && migrate_up "$1"
}

sql() {
  local name=$1
  shift
  "$psql_bin" --no-psqlrc --quiet --set ON_ERROR_STOP=1 "$pg_url/$name" "$@"
}

# The migrations as plain SQL: what checks the queries must not need the program it is about to check.
migrate_up() {
  local file
  for file in $(printf '%s\n' "$root"/shared/store/migrations/*.up.sql | sort); do sql "$1" -f "$file" || return; done
}

migrate_down() {
  local file
  for file in $(printf '%s\n' "$root"/shared/store/migrations/*.down.sql | sort -r); do sql "$1" -f "$file" || return; done
}

start_emulator() {
  local script=$root/localstack/ministack.sh line
  [ -x "$script" ] || return 0
  # It stays until its standard input closes, so it cannot outlive this script.
  coproc EMULATOR { exec bash "$script" "$target/ministack" hold 2>"$state/emulator.log"; }
  emulator_pid=$EMULATOR_PID
  emulator_in=${EMULATOR[1]}
  if ! IFS= read -r -t 600 line <&"${EMULATOR[0]}"; then
    tail -n 20 "$state/emulator.log" >&2
    die 'the S3 and SQS emulator did not start'
  fi
  export FONDS_MINISTACK_ENDPOINT=${line#endpoint=}
}

install_judges() {
  local script=$root/tests/judges/install.sh
  [ -e "$script" ] || return 0
  # One of them is compiled, which takes minutes: not for a run narrowed to packages that do not ask them.
  case " $* " in
    *' fonds-tests '* | *' fonds-warc '*) ;;
    *' -p '* | *' --package '*) [ -x "$target/judges/bin/warcat" ] || return 0 ;;
  esac
  bash "$script" "$target/judges" >"$state/judges.log" 2>&1 || { tail -n 20 "$state/judges.log" >&2; die 'the outside judges could not be installed'; }
  export FONDS_JUDGES=$target/judges
}

start_services() {
  begin_services
  say 'starting a private Postgres, the emulator and the judges'
  start_postgres
  start_emulator
  install_judges "$@"
  export SQLX_OFFLINE=true
  if [ -z "${FONDS_CORPORA:-}" ] && [ -d "$root/../shared/corpora" ]; then
    FONDS_CORPORA=$(cd "$root/../shared/corpora" && pwd)
    export FONDS_CORPORA
  fi
}
