-- The sealed history of a log in DuckDB, read where it lies. From the shell of DuckDB:
--
--     duckdb -cmd "SET VARIABLE log = 'demo/data/log'" -f examples/duckdb.sql
--
-- or `.read examples/duckdb.sql` in a session, for more questions of your own. It only reads the
-- log, also while the service runs; what it writes is the file that the last statement exports:
-- `records.parquet` in the current folder, or where the variable `export` says.
--
-- The tail is not in it: the newest events are there after the next sealing. Run it again then.

SET VARIABLE log = coalesce(getvariable('log'), 'demo/data/log');
SET VARIABLE export = coalesce(getvariable('export'), 'records.parquet');

-- Which files are the log is what the manifest says. Others in the folder may be half written, or
-- sealed and not part of it yet. (A log that was never sealed has none, and DuckDB says so below.)
SET VARIABLE segments = (
  SELECT list(getvariable('log') || '/' || (segment ->> '$.path'))
  FROM (
    SELECT unnest(segments) AS segment
    FROM read_json(getvariable('log') || '/manifest.json', columns = {segments: 'JSON[]'})
  )
);

-- Events, in types for queries. `occurred_at` is as the client spelled it, with up to nine digits
-- of a second; `occurred_time` is the time that it means, in microseconds. Filter by source,
-- stream, record_key, batch_id or event_id: by these DuckDB leaves out what it need not read.
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
FROM read_parquet(getvariable('segments'));

-- What GET /v1/streams lists.
CREATE OR REPLACE TEMP VIEW streams AS
SELECT source, stream, max(event_id) AS frontier_event_id, count(*) AS event_count
FROM events
GROUP BY source, stream;

-- The records as they are at the end: what was upserted last, without what was deleted since.
-- Other kinds of events say nothing about a record's state.
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

-- Members of payloads, in types of their own: `->>` gives text, and null where there is none.
SELECT record_key, TRY_CAST(payload ->> '$.total' AS DOUBLE) AS total
FROM records
WHERE source = 'shop' AND stream = 'orders'
ORDER BY record_key;

COPY (FROM records ORDER BY source, stream, record_key) TO (getvariable('export'));
