CREATE EXTENSION IF NOT EXISTS pg_trgm;

-- Legal moves of every status in the system, enforced by one trigger. fonds_domain's may_become
-- says the same for runs; a test compares the two.
CREATE TABLE status_transition (
    entity text NOT NULL,
    old    text NOT NULL,
    new    text NOT NULL,
    PRIMARY KEY (entity, old, new)
);

INSERT INTO status_transition (entity, old, new) VALUES
    ('run', 'queued', 'running'),
    ('run', 'queued', 'cancelled'),
    ('run', 'queued', 'failed'),
    ('run', 'running', 'running'),
    ('run', 'running', 'queued'),
    ('run', 'running', 'succeeded'),
    ('run', 'running', 'failed'),
    ('run', 'running', 'cancelled'),
    ('run', 'running', 'discarded'),
    ('run', 'failed', 'queued'),
    ('run', 'cancelled', 'queued'),
    ('crawl', 'queued', 'started'),
    ('crawl', 'queued', 'paused'),
    ('crawl', 'queued', 'sealed'),
    ('crawl', 'started', 'paused'),
    ('crawl', 'started', 'sealed'),
    ('crawl', 'paused', 'queued'),
    ('crawl', 'paused', 'started'),
    ('crawl', 'paused', 'sealed'),
    ('snapshot', 'queued', 'started'),
    ('snapshot', 'queued', 'paused'),
    ('snapshot', 'queued', 'sealed'),
    ('snapshot', 'started', 'queued'),
    ('snapshot', 'started', 'paused'),
    ('snapshot', 'started', 'sealed'),
    ('snapshot', 'paused', 'queued'),
    ('snapshot', 'paused', 'started'),
    ('snapshot', 'paused', 'sealed');

CREATE FUNCTION refuse_illegal_transition() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM status_transition t WHERE t.entity = TG_ARGV[0] AND t.old = OLD.status AND t.new = NEW.status) THEN
        RAISE EXCEPTION 'illegal % transition % -> %', TG_ARGV[0], OLD.status, NEW.status
            USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;

-- The queue of record. A message only carries the id.
CREATE TABLE task_run (
    id               uuid PRIMARY KEY,
    kind             text NOT NULL,
    status           text NOT NULL DEFAULT 'queued'
                     CHECK (status IN ('queued', 'running', 'succeeded', 'failed', 'cancelled', 'discarded')),
    priority         smallint NOT NULL DEFAULT 0,
    crawl_id         uuid,
    entity           uuid,                      -- the row the run works on
    input            jsonb NOT NULL DEFAULT 'null',
    cursor           jsonb,
    step             integer NOT NULL DEFAULT 0,  -- slices completed
    attempt          integer NOT NULL DEFAULT 0,
    max_attempts     integer NOT NULL,
    lease            uuid,
    lease_expires_at timestamptz,
    not_before       timestamptz NOT NULL DEFAULT now(),  -- 'infinity' holds a run of a paused crawl
    rung_at          timestamptz NOT NULL DEFAULT now(),
    created_at       timestamptz NOT NULL DEFAULT now(),
    started_at       timestamptz,               -- first claim
    progress_at      timestamptz,
    deadline_at      timestamptz,               -- end of the phase, set at the first claim
    finished_at      timestamptz,
    cancel_requested boolean NOT NULL DEFAULT false,
    error_code       text,
    error            text,
    CONSTRAINT lease_iff_running CHECK ((status = 'running') = (lease IS NOT NULL AND lease_expires_at IS NOT NULL)),
    CONSTRAINT finished_iff_terminal CHECK ((status IN ('queued', 'running')) = (finished_at IS NULL))
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

CREATE TRIGGER task_run_status BEFORE UPDATE OF status ON task_run
    FOR EACH ROW WHEN (OLD.status IS DISTINCT FROM NEW.status)
    EXECUTE FUNCTION refuse_illegal_transition('run');

CREATE INDEX task_run_due ON task_run (kind, priority, not_before, id) WHERE status = 'queued';
CREATE INDEX task_run_lease ON task_run (lease_expires_at) WHERE status = 'running';
-- What the sweep looks for is rare, and so are these entries.
CREATE INDEX task_run_held ON task_run (crawl_id) WHERE status = 'queued' AND not_before = 'infinity';
CREATE INDEX task_run_phase ON task_run (deadline_at) WHERE status = 'queued' AND deadline_at IS NOT NULL;
-- One open run per kind and entity: enqueueing twice is one run.
CREATE UNIQUE INDEX task_run_open ON task_run (entity, kind) WHERE status IN ('queued', 'running');

CREATE TABLE crawl (
    id                uuid PRIMARY KEY,
    status            text NOT NULL DEFAULT 'queued' CHECK (status IN ('queued', 'started', 'paused', 'sealed')),
    stop_reason       text,
    config            jsonb NOT NULL,
    label             text NOT NULL DEFAULT '',
    notes             text NOT NULL DEFAULT '',
    tags              text[] NOT NULL DEFAULT '{}',
    max_depth         integer NOT NULL DEFAULT 0,
    max_urls          bigint,
    max_size          bigint,
    timeout_s         integer,
    snapshot_max_size bigint,
    max_concurrent    integer,
    n_snapshots       bigint NOT NULL DEFAULT 0,   -- admitted
    n_sealed          bigint NOT NULL DEFAULT 0,
    n_failed          bigint NOT NULL DEFAULT 0,   -- sealed with an error code
    n_skipped         bigint NOT NULL DEFAULT 0,   -- sealed unrun: limits, cancel, rules
    n_results         bigint NOT NULL DEFAULT 0,
    n_results_failed  bigint NOT NULL DEFAULT 0,
    bytes             bigint NOT NULL DEFAULT 0,
    setup_done        boolean NOT NULL DEFAULT false,
    discovery_blocked boolean NOT NULL DEFAULT false,  -- a limit kept at least one link out
    setup_report      jsonb,                       -- what became of the input: counts, rejected lines
    files             jsonb NOT NULL DEFAULT '[]', -- index and collection files of the sealed crawl
    error_code        text,
    error             text,
    created_by        uuid,
    created_at        timestamptz NOT NULL DEFAULT now(),
    started_at        timestamptz,                 -- first admission; crawl_timeout counts from here
    paused_at         timestamptz,
    paused_s          double precision NOT NULL DEFAULT 0,
    sealed_at         timestamptz,
    modified_at       timestamptz NOT NULL DEFAULT now(),
    delete_at         timestamptz,
    CONSTRAINT sealed_iff_reason CHECK (status <> 'sealed' OR (sealed_at IS NOT NULL AND stop_reason IS NOT NULL)),
    CONSTRAINT counts CHECK (n_sealed <= n_snapshots AND n_failed + n_skipped <= n_sealed AND bytes >= 0)
) WITH (fillfactor = 50);

CREATE TRIGGER crawl_status BEFORE UPDATE OF status ON crawl
    FOR EACH ROW WHEN (OLD.status IS DISTINCT FROM NEW.status)
    EXECUTE FUNCTION refuse_illegal_transition('crawl');

CREATE INDEX crawl_open ON crawl (id) WHERE status <> 'sealed';
CREATE INDEX crawl_expiry ON crawl (delete_at) WHERE delete_at IS NOT NULL;
CREATE INDEX crawl_tags ON crawl USING gin (tags);

-- The submitted text, apart from the row that every settle updates.
CREATE TABLE crawl_input (
    crawl_id uuid PRIMARY KEY REFERENCES crawl ON DELETE CASCADE,
    body     text NOT NULL
);

CREATE TABLE snapshot (
    id            uuid PRIMARY KEY,
    crawl_id      uuid NOT NULL REFERENCES crawl ON DELETE CASCADE,
    parent_id     uuid,
    url           text NOT NULL CHECK (octet_length(url) <= 65535),
    url_key       bytea NOT NULL,              -- first 16 bytes of the sha256 of the URL's identity
    host          text NOT NULL,               -- host[:port] as in the URL
    depth         integer NOT NULL DEFAULT 0,
    title         text,
    tags          text[] NOT NULL DEFAULT '{}',
    status        text NOT NULL DEFAULT 'queued' CHECK (status IN ('queued', 'started', 'paused', 'sealed')),
    step          text,                        -- stage being worked on
    final_url     text,
    http_status   integer,
    mime          text,
    size          bigint NOT NULL DEFAULT 0,
    n_ok          integer NOT NULL DEFAULT 0,
    n_failed      integer NOT NULL DEFAULT 0,
    error_code    text,
    error         text,
    bookmarked_at timestamptz,
    created_at    timestamptz NOT NULL DEFAULT now(),
    downloaded_at timestamptz,
    sealed_at     timestamptz,
    delete_at     timestamptz,
    UNIQUE (crawl_id, url_key),
    CONSTRAINT sealed_iff_stamped CHECK ((status = 'sealed') = (sealed_at IS NOT NULL))
) WITH (fillfactor = 80);

CREATE TRIGGER snapshot_status BEFORE UPDATE OF status ON snapshot
    FOR EACH ROW WHEN (OLD.status IS DISTINCT FROM NEW.status)
    EXECUTE FUNCTION refuse_illegal_transition('snapshot');

CREATE INDEX snapshot_by_crawl ON snapshot (crawl_id, id);
CREATE INDEX snapshot_open ON snapshot (crawl_id) WHERE status <> 'sealed';
CREATE INDEX snapshot_by_url ON snapshot (url_key, id);
CREATE INDEX snapshot_by_host ON snapshot (host, id);
-- A domain with all below it: the labels from the right, so that it is a prefix.
CREATE INDEX snapshot_by_domain ON snapshot ((reverse(split_part(host, ':', 1)) || '.') text_pattern_ops, id);
CREATE INDEX snapshot_tags ON snapshot USING gin (tags) WHERE tags <> '{}';
CREATE INDEX snapshot_failed ON snapshot (id) WHERE error_code IS NOT NULL;
CREATE INDEX snapshot_expiry ON snapshot (delete_at) WHERE delete_at IS NOT NULL;

CREATE TABLE archive_result (
    snapshot_id  uuid NOT NULL REFERENCES snapshot ON DELETE CASCADE,
    extractor    text NOT NULL,
    status       text NOT NULL CHECK (status IN ('queued', 'started', 'backoff', 'succeeded', 'failed', 'skipped', 'noresults')),
    files        jsonb,                        -- [{path, mime, size, sha256, object, offset, length}]
    output       text,                         -- one line for people: a title, a count, a reason
    error_code   text,
    error        text,
    attempt      smallint NOT NULL DEFAULT 1,
    duration_ms  integer,
    tool         text,
    ended_at     timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (snapshot_id, extractor)
);

-- What a retry overwrote: the history of failures.
CREATE TABLE archive_result_attempt (
    snapshot_id uuid NOT NULL REFERENCES snapshot ON DELETE CASCADE,
    extractor   text NOT NULL,
    attempt     smallint NOT NULL,
    error_code  text,
    error       text,
    ended_at    timestamptz NOT NULL,
    PRIMARY KEY (snapshot_id, extractor, attempt)
);

-- A stored object that snapshots refer to. An object is deleted only when no row here refers to it.
CREATE TABLE object (
    key        text PRIMARY KEY,
    size       bigint NOT NULL,
    sha256     bytea NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE object_ref (
    snapshot_id uuid NOT NULL REFERENCES snapshot ON DELETE CASCADE,
    object_key  text NOT NULL REFERENCES object ON DELETE CASCADE,
    role        text NOT NULL,                 -- own: made by this snapshot; original: what its revisits refer to
    PRIMARY KEY (snapshot_id, object_key)
);
CREATE INDEX object_ref_by_object ON object_ref (object_key);

-- The dedup index: where in the scope a body is already held. Rows go with their object.
CREATE TABLE payload (
    scope      uuid NOT NULL,                  -- the crawl, or all zero for the library
    sha256     bytea NOT NULL,
    object_key text NOT NULL REFERENCES object ON DELETE CASCADE,
    record_id  text NOT NULL,
    url        text NOT NULL,
    date       timestamptz NOT NULL,
    wacz_path  text,
    record_offset bigint NOT NULL,             -- of the record's gzip member within the object
    record_length bigint NOT NULL,
    PRIMARY KEY (scope, sha256)
);
CREATE INDEX payload_by_object ON payload (object_key);

-- Full text of a snapshot, for search and its snippets.
CREATE TABLE snapshot_text (
    snapshot_id uuid PRIMARY KEY REFERENCES snapshot ON DELETE CASCADE,
    label       text NOT NULL,                 -- title and URL, for typo-tolerant look-ups
    body        text NOT NULL,
    tsv         tsvector NOT NULL              -- made by the program: its words, not Postgres's
);
CREATE INDEX snapshot_text_tsv ON snapshot_text USING gin (tsv);
CREATE INDEX snapshot_text_label ON snapshot_text USING gin (label gin_trgm_ops);

-- Politeness towards a public host and how it has behaved. Runs are spread over time when they are
-- admitted (paced_until); next_at is the gate at the start of a request.
CREATE TABLE host (
    name          text PRIMARY KEY,            -- host[:port]
    paced_until   timestamptz NOT NULL DEFAULT now(),
    next_at       timestamptz NOT NULL DEFAULT now(),
    blocked_until timestamptz,                 -- Retry-After
    fail_streak   integer NOT NULL DEFAULT 0,
    failed_at     timestamptz,
    last_error    text,
    modified_at   timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE api_token (
    id           uuid PRIMARY KEY,
    name         text NOT NULL,
    hash         bytea NOT NULL UNIQUE,        -- sha256 of the secret
    scopes       text[] NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT now(),
    last_used_at timestamptz,
    expires_at   timestamptz,
    revoked_at   timestamptz
);

CREATE TABLE idempotency (
    token_id   uuid NOT NULL,
    key        text NOT NULL CHECK (octet_length(key) BETWEEN 1 AND 255),
    body_hash  bytea NOT NULL,
    crawl_id   uuid NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (token_id, key)
);

CREATE TABLE app_setting (
    key         text PRIMARY KEY,
    value       jsonb NOT NULL,
    modified_at timestamptz NOT NULL DEFAULT now()
);

-- Which tools a function found, for doctor and for TOOL_MISSING.
CREATE TABLE capability (
    function    text PRIMARY KEY,
    tools       jsonb NOT NULL,
    modified_at timestamptz NOT NULL DEFAULT now()
);
