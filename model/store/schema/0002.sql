-- Deliveries of webhooks: the same deployment, delivered once more by a provider that saw no answer, counts once.

CREATE TABLE deliveries (
    -- the newest event of each delivery and application
    delivery TEXT NOT NULL,                  -- provider/delivery/deployment
    app      TEXT NOT NULL,                  -- '': the delivery was for all applications
    event_id INTEGER NOT NULL REFERENCES events ON DELETE CASCADE,
    PRIMARY KEY (delivery, app)
) STRICT, WITHOUT ROWID;
CREATE INDEX deliveries_by_event ON deliveries (event_id);
