-- Reads a log's sealed history in place with DuckDB. From the command line:
--
--     duckdb -cmd "SET VARIABLE log = 'demo/data/log'" -f examples/duckdb.sql
--
-- or run `.read examples/duckdb.sql` in a session, followed by your own queries. The script never
-- writes to the log, so the service may be running. To export the records:
--
--     COPY (FROM records ORDER BY source, stream, record_key) TO 'records.parquet';
--
-- Unsealed events are missing. Run the script again after the next seal.

SET VARIABLE log = coalesce(getvariable('log'), 'demo/data/log');

-- The manifest lists the log's segments; other files may be partial, or not yet part of the log.
-- The list is NULL before the first seal.
SET VARIABLE segments = (
  SELECT list(getvariable('log') || '/' || (segment ->> '$.path'))
  FROM (
    SELECT unnest(segments) AS segment
    FROM read_json(getvariable('log') || '/manifest.json', columns = {segments: 'JSON[]'})
  )
);

-- read_parquet() rejects an empty list.
SET VARIABLE history = if(
  getvariable('segments') IS NULL,
  'SELECT
    NULL::UUID AS event_id, NULL AS source, NULL AS stream, NULL AS record_key, NULL AS kind,
    NULL AS occurred_at, NULL::TIMESTAMPTZ AS observed_at, NULL AS payload, NULL AS batch_id,
    NULL::BLOB AS content_hash, NULL::BLOB AS batch_digest, NULL::BLOB AS event_hash
  WHERE false',
  'FROM read_parquet(getvariable(''segments''))'
);

SELECT 'nothing is sealed yet: stop the service, run seal, and restart it' AS note
WHERE getvariable('segments') IS NULL;

-- Events, with types suited to queries. `occurred_at` is the client's string, with up to nine
-- fractional digits; `occurred_time` is its value in microseconds. DuckDB prunes row groups when you
-- filter by source, stream, record_key, batch_id or event_id.
CREATE OR REPLACE TEMP VIEW events AS
SELECT
  event_id, source, stream, record_key, kind, occurred_at,
  TRY_CAST(occurred_at AS TIMESTAMPTZ) AS occurred_time,
  observed_at,
  payload::JSON AS payload,
  lower(hex(content_hash)) AS content_hash,
  batch_id,
  lower(hex(batch_digest)) AS batch_digest,
  lower(hex(event_hash)) AS event_hash
FROM query(getvariable('history'));

-- Streams, as listed by GET /v1/streams.
CREATE OR REPLACE TEMP VIEW streams AS
SELECT source, stream, max(event_id) AS frontier_event_id, count(*) AS event_count
FROM events
GROUP BY source, stream;

-- The current records: the last upsert of each, unless it has since been deleted.
-- Other kinds of events do not affect a record's state.
CREATE OR REPLACE TEMP VIEW records AS
SELECT source, stream, record_key, newest.payload, newest.event_id
FROM (
  SELECT
    source, stream, record_key,
    arg_max({kind: kind, payload: payload, event_id: event_id}, event_id) AS newest
  FROM events
  WHERE kind IN ('upserted', 'deleted')
  GROUP BY source, stream, record_key
)
WHERE newest.kind = 'upserted';

FROM streams ORDER BY source, stream;

-- Payload members as typed columns: `->>` returns a string, or NULL if the member is missing.
SELECT record_key, TRY_CAST(payload ->> '$.total' AS DOUBLE) AS total
FROM records
WHERE source = 'shop' AND stream = 'orders'
ORDER BY record_key;
