-- The store of remap, first version. Never edited after a release: later versions add 0002.sql and so on.
-- The promised surface are the views at the end; the tables below may change with migrations.

CREATE TABLE apps (
    -- what the engine remembers about an application across restarts
    app         TEXT PRIMARY KEY,
    mode        TEXT,                        -- observe, propose or act, as last configured
    paused      INTEGER NOT NULL DEFAULT 0 CHECK (paused IN (0, 1)),
    next_due_ms INTEGER,                     -- wall time of the next cycle; NULL: none
    interval_ms INTEGER                      -- timer set by a deploy event; NULL: the configured one
) STRICT, WITHOUT ROWID;

CREATE TABLE cycles (
    -- one adaptation pass each; AUTOINCREMENT: an id never comes back, not even after retention
    cycle_id    INTEGER PRIMARY KEY AUTOINCREMENT,
    app         TEXT NOT NULL,
    trigger     TEXT NOT NULL,               -- timer, manual, deploy, once, apply, undo, …
    state       TEXT NOT NULL,               -- collecting analyzing planning proposed executing settling verifying done undoing undone failed superseded
    reason      TEXT,                        -- why it failed, was superseded or undone, or did nothing
    attempt     INTEGER NOT NULL DEFAULT 1,  -- a result counts only for the attempt awaited
    started_ms  INTEGER NOT NULL,
    ended_ms    INTEGER,                     -- NULL: still running
    deadline_ms INTEGER,                     -- wall time at which settling or verifying ends
    base_cycle  INTEGER REFERENCES cycles ON DELETE SET NULL, -- apply, undo: the cycle whose plan this is
    dry_run     INTEGER NOT NULL DEFAULT 0 CHECK (dry_run IN (0, 1))
) STRICT;
CREATE INDEX cycles_by_app ON cycles (app, cycle_id);
CREATE INDEX cycles_running ON cycles (cycle_id) WHERE ended_ms IS NULL;
CREATE INDEX cycles_by_end ON cycles (ended_ms) WHERE ended_ms IS NOT NULL;
CREATE INDEX cycles_by_base ON cycles (base_cycle) WHERE base_cycle IS NOT NULL;

CREATE TABLE documents (
    -- the exact bytes that travelled, so that a decision can be replayed and examined
    cycle_id    INTEGER NOT NULL REFERENCES cycles ON DELETE CASCADE,
    kind        TEXT NOT NULL CHECK (kind IN ('base', 'verify', 'analysis', 'options', 'plan')), -- base, verify: model documents
    body        BLOB NOT NULL,               -- JSON, UTF-8; read it with CAST(body AS TEXT)
    PRIMARY KEY (cycle_id, kind)
) STRICT;

CREATE TABLE snapshots (
    -- the model as the monitor saw it: before planning (base) and after settling (verify)
    snapshot_id INTEGER PRIMARY KEY AUTOINCREMENT,
    cycle_id    INTEGER NOT NULL REFERENCES cycles ON DELETE CASCADE,
    phase       TEXT NOT NULL CHECK (phase IN ('base', 'verify')),
    taken_ms    INTEGER,                     -- wall time of the inspection
    from_ms     INTEGER,                     -- window of usage and messages
    to_ms       INTEGER,
    UNIQUE (cycle_id, phase)
) STRICT;

CREATE TABLE hosts (
    snapshot_id          INTEGER NOT NULL REFERENCES snapshots ON DELETE CASCADE,
    host                 TEXT NOT NULL,
    cpu_cap_millis       INTEGER NOT NULL,
    mem_cap_bytes        INTEGER NOT NULL,
    cpu_used_millis      INTEGER NOT NULL,   -- by things that are not instances of this snapshot
    mem_used_bytes       INTEGER NOT NULL,
    cpu_requested_millis INTEGER NOT NULL,
    mem_requested_bytes  INTEGER NOT NULL,
    pods_cap             INTEGER,            -- NULL: unlimited
    pods_used            INTEGER NOT NULL,
    reserve_cpu_millis   INTEGER NOT NULL,   -- kept free
    reserve_mem_bytes    INTEGER NOT NULL,
    schedulable          INTEGER NOT NULL,   -- 0: keeps what it has, receives nothing
    region               TEXT,
    zone                 TEXT,
    PRIMARY KEY (snapshot_id, host)
) STRICT, WITHOUT ROWID;

CREATE TABLE services (
    snapshot_id INTEGER NOT NULL REFERENCES snapshots ON DELETE CASCADE,
    service     TEXT NOT NULL,
    app         TEXT,
    version     TEXT,
    stateful    INTEGER NOT NULL,
    movable     INTEGER NOT NULL,
    rollout     INTEGER NOT NULL,            -- 1: a rollout or scaling was in progress
    replicas    INTEGER NOT NULL,            -- instances in this snapshot
    PRIMARY KEY (snapshot_id, service)
) STRICT, WITHOUT ROWID;

CREATE TABLE instances (
    snapshot_id        INTEGER NOT NULL REFERENCES snapshots ON DELETE CASCADE,
    instance           TEXT NOT NULL,
    service            TEXT NOT NULL,
    host               TEXT,                 -- NULL: not placed
    cpu_used_millis    INTEGER NOT NULL,     -- over the window
    mem_used_bytes     INTEGER NOT NULL,
    cpu_request_millis INTEGER NOT NULL,     -- what the scheduler admits by; 0: asks for nothing
    mem_request_bytes  INTEGER NOT NULL,
    pinned_why         TEXT,                 -- NULL: not pinned
    start_up_ms        INTEGER,              -- measured start-up time; NULL: unknown
    PRIMARY KEY (snapshot_id, instance)
) STRICT, WITHOUT ROWID;

CREATE TABLE messages (
    -- one row per directed edge of the window
    snapshot_id INTEGER NOT NULL REFERENCES snapshots ON DELETE CASCADE,
    message_no  INTEGER NOT NULL,
    level       TEXT NOT NULL CHECK (level IN ('instance', 'service')),
    src         TEXT NOT NULL,
    dst         TEXT NOT NULL,
    src_host    TEXT,                        -- NULL: not placed, or a service on several hosts
    dst_host    TEXT,
    count       INTEGER NOT NULL,
    bytes       INTEGER,                     -- NULL: unknown (never 0 for unknown)
    mean_ms     REAL,                        -- mean response time; NULL: unknown
    local_share REAL,                        -- share that can stay on a host, sum over hosts of min(x_a/d_a, x_b/d_b); NULL: an end is not placed
    PRIMARY KEY (snapshot_id, message_no)
) STRICT, WITHOUT ROWID;

CREATE TABLE affinities (
    -- Eq. 1 of the paper; service rows are sums of instance rows and are never scored beside them
    cycle_id    INTEGER NOT NULL REFERENCES cycles ON DELETE CASCADE,
    level       TEXT NOT NULL CHECK (level IN ('instance', 'service')),
    rank        INTEGER NOT NULL,            -- 1: the strongest of its level
    a           TEXT NOT NULL,               -- a < b, undirected
    b           TEXT NOT NULL,
    degree      REAL NOT NULL,
    count       INTEGER NOT NULL,
    bytes       INTEGER,                     -- NULL: unknown
    PRIMARY KEY (cycle_id, level, rank)
) STRICT, WITHOUT ROWID;

CREATE TABLE plans (
    -- the scalars of the plan document; its moves are rows of moves
    cycle_id        INTEGER PRIMARY KEY REFERENCES cycles ON DELETE CASCADE,
    requested       TEXT,
    planner         TEXT,
    why             TEXT,
    objective       TEXT NOT NULL,           -- affinity or hosts
    granularity     TEXT NOT NULL,           -- instance or service
    status          TEXT NOT NULL,           -- optimal feasible infeasible timeout
    cut             INTEGER NOT NULL,        -- 1: the clock cut the search
    affinity_before REAL NOT NULL,
    affinity_after  REAL NOT NULL,
    affinity_bound  REAL,                    -- proven upper bound; NULL: none
    gap             REAL,                    -- (bound - after) / |bound|
    hosts_before    INTEGER NOT NULL,
    hosts_after     INTEGER NOT NULL,
    hosts_bound     INTEGER,                 -- proven lower bound; NULL: none
    restarts        INTEGER NOT NULL,        -- replicas that restart
    coverage        REAL,                    -- share of known traffic that maps to known pairs; NULL: unknown
    solve_ms        INTEGER NOT NULL,
    unordered       INTEGER NOT NULL         -- 1: no order of the moves respects all capacities
) STRICT;

CREATE TABLE moves (
    -- planned -> intended -> applied | partial | missed | displaced | discarded | failed | undone
    cycle_id     INTEGER NOT NULL REFERENCES cycles ON DELETE CASCADE,
    seq          INTEGER NOT NULL,           -- a move is known by (cycle_id, seq), never by the instance's name
    service      TEXT NOT NULL,
    instance     TEXT,                       -- NULL: all replicas of the service
    source       TEXT,                       -- host; of a whole service: host=replicas, …
    target       TEXT,
    gain         REAL,                       -- change of the score after the moves before it; NULL: not planned (undo, detour)
    restarts     INTEGER NOT NULL DEFAULT 1, -- replicas that restart
    state        TEXT NOT NULL,
    reason       TEXT,
    instance_now TEXT,                       -- its name after the move: replicas are recreated
    intended_ms  INTEGER,                    -- wall time at which the intent was committed, before acting
    settled_ms   INTEGER,
    undo_of      INTEGER,                    -- the seq that this row puts back
    detour       INTEGER NOT NULL DEFAULT 0 CHECK (detour IN (0, 1)), -- 1: over a free host, for a swap
    intent       TEXT,                       -- the intent document: what undo and resume need
    PRIMARY KEY (cycle_id, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX moves_by_service ON moves (service, cycle_id) WHERE intended_ms IS NOT NULL;

CREATE TABLE move_hosts (
    -- the hosts that a move gives to or takes from; the cool-down asks for them
    cycle_id INTEGER NOT NULL,
    seq      INTEGER NOT NULL,
    host     TEXT NOT NULL,
    PRIMARY KEY (cycle_id, seq, host),
    FOREIGN KEY (cycle_id, seq) REFERENCES moves ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE TABLE outcomes (
    -- verification: what was, what the plan predicted, what came true; NULL: unknown
    cycle_id              INTEGER PRIMARY KEY REFERENCES cycles ON DELETE CASCADE,
    hosts_before          INTEGER,
    hosts_predicted       INTEGER,
    hosts_realised        INTEGER,
    affinity_before       REAL,              -- score of the placement, Eq. 2
    affinity_predicted    REAL,
    affinity_realised     REAL,
    response_before_ms    REAL,              -- mean response time per message
    response_predicted_ms REAL,
    response_realised_ms  REAL,
    local_before          REAL,              -- share of messages that stay on a host
    local_predicted       REAL,
    local_realised        REAL
) STRICT;

CREATE TABLE events (
    -- what an operator must find later; append only
    event_id INTEGER PRIMARY KEY AUTOINCREMENT,
    at_ms    INTEGER NOT NULL,
    app      TEXT,
    kind     TEXT NOT NULL,
    cycle_id INTEGER REFERENCES cycles ON DELETE CASCADE,
    text     TEXT NOT NULL
) STRICT;
CREATE INDEX events_by_cycle ON events (cycle_id) WHERE cycle_id IS NOT NULL;
CREATE INDEX events_by_time ON events (at_ms);
CREATE TRIGGER events_stay BEFORE UPDATE ON events
BEGIN
    SELECT RAISE(ABORT, 'events are append only');
END;

CREATE VIEW v_placement AS
    -- where everything was at each application's latest snapshot
    SELECT c.app, c.cycle_id, s.phase, s.taken_ms, i.host, i.service, i.instance, i.cpu_used_millis, i.mem_used_bytes,
           CAST(i.cpu_used_millis AS REAL) / NULLIF(h.cpu_cap_millis, 0) AS cpu_share,
           CAST(i.mem_used_bytes AS REAL) / NULLIF(h.mem_cap_bytes, 0) AS mem_share
    FROM (SELECT max(s2.snapshot_id) AS snapshot_id FROM snapshots s2 JOIN cycles c2 USING (cycle_id) GROUP BY c2.app) AS latest
    JOIN snapshots s ON s.snapshot_id = latest.snapshot_id
    JOIN cycles c ON c.cycle_id = s.cycle_id
    JOIN instances i ON i.snapshot_id = s.snapshot_id
    LEFT JOIN hosts h ON h.snapshot_id = i.snapshot_id AND h.host = i.host;

CREATE VIEW v_cycles AS
    -- moves_* count the plan's own moves, without undos and detours
    SELECT c.cycle_id, c.app, c.trigger, c.state, c.reason, c.started_ms, c.ended_ms,
           (SELECT count(*) FROM moves m WHERE m.cycle_id = c.cycle_id AND m.undo_of IS NULL AND m.detour = 0) AS moves_planned,
           (SELECT count(*) FROM moves m WHERE m.cycle_id = c.cycle_id AND m.undo_of IS NULL AND m.detour = 0
                                           AND m.state = 'applied') AS moves_applied,
           c.dry_run, c.base_cycle
    FROM cycles c;

CREATE VIEW v_edges AS
    -- the traffic that a cycle planned with; crosses: 1 when some of it has to leave its host
    SELECT s.cycle_id, m.src, m.dst, m.src_host, m.dst_host, m.count, m.bytes, m.mean_ms,
           CASE WHEN m.local_share IS NULL THEN NULL WHEN m.local_share < 0.999999999999 THEN 1 ELSE 0 END AS crosses,
           m.level, m.local_share
    FROM snapshots s JOIN messages m USING (snapshot_id)
    WHERE s.phase = 'base';

CREATE VIEW v_affinity AS
    SELECT cycle_id, level, a, b, degree, count, bytes, rank FROM affinities;

CREATE VIEW v_plans AS
    SELECT cycle_id, requested, planner, why, objective, granularity, status, cut, affinity_before, affinity_after,
           affinity_bound, gap, hosts_before, hosts_after, hosts_bound, restarts, coverage, solve_ms, unordered
    FROM plans;

CREATE VIEW v_moves AS
    SELECT cycle_id, seq, service, instance, source, target, gain, state, reason, intended_ms, settled_ms, undo_of,
           detour, restarts, instance_now
    FROM moves;

CREATE VIEW v_savings AS
    -- one row per planned or verified cycle; realised is NULL until verified
    SELECT c.cycle_id, c.app,
           coalesce(o.hosts_before, p.hosts_before) AS hosts_before,
           coalesce(o.hosts_predicted, p.hosts_after) AS hosts_predicted,
           o.hosts_realised,
           coalesce(o.affinity_before, p.affinity_before) AS affinity_before,
           coalesce(o.affinity_predicted, p.affinity_after) AS affinity_predicted,
           o.affinity_realised,
           o.response_before_ms, o.response_predicted_ms, o.response_realised_ms,
           o.local_before, o.local_predicted, o.local_realised
    FROM cycles c LEFT JOIN plans p USING (cycle_id) LEFT JOIN outcomes o USING (cycle_id)
    WHERE p.cycle_id IS NOT NULL OR o.cycle_id IS NOT NULL;

CREATE VIEW v_events AS
    SELECT event_id, at_ms, app, kind, cycle_id, text FROM events;
