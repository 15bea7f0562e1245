-- Drift: how far traffic and response times have left what the present placement was planned on.

CREATE TABLE drift (
    -- of each application that is looked at between cycles: the latest look, and by what it is judged
    app             TEXT PRIMARY KEY,
    state           TEXT NOT NULL,           -- calm rising held started; -: not looked yet since the reference
    at_ms           INTEGER,                 -- wall time of the latest look; NULL: none yet
    reference_cycle INTEGER,                 -- what it was compared with; NULL: none (a deployment)
    distance        REAL,                    -- share of the traffic that goes another way, 0 … 1; NULL: too little traffic
    noise           REAL,                    -- the part of it that the sample alone may make
    response_ratio  REAL,                    -- mean response time as a multiple of what it was; NULL: unknown
    every_ms        INTEGER NOT NULL,        -- 0: no longer looked at
    affinity        REAL NOT NULL,           -- the levels that start a cycle
    response        REAL NOT NULL
) STRICT, WITHOUT ROWID;

CREATE VIEW v_drift AS
    SELECT app, state, at_ms, reference_cycle, distance, noise, response_ratio, every_ms, affinity, response FROM drift;
