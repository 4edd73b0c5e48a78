-- Reads a log's whole history in place with DuckDB. From the command line:
--
--     duckdb -cmd "SET VARIABLE log = 'demo/data/log'" -f examples/duckdb.sql
--
-- or run `.read examples/duckdb.sql` in a session, followed by your own queries. The script never
-- writes to the log, so the service may be running. To export the records:
--
--     COPY (FROM records ORDER BY source, stream, record_key) TO 'records.parquet';
--
-- The views show the log as of this moment; run the script again to see newer events, and also if a
-- file disappears while it is read, since it was just sealed. A commit that is still being written
-- is left out. One that is complete is shown, although a power failure may undo the last one until
-- its fsync has returned. To leave that out, too, first set the variable `through` to the
-- `snapshot_through_event_id` of GET /v1/streams?limit=1.

SET VARIABLE log = coalesce(getvariable('log'), 'demo/data/log');

-- Events that are not sealed yet are lines in the tail and in pending/. A file moves from the tail
-- to pending/ and then into segments. So the tail is read first and the manifest last: what moves
-- meanwhile is seen twice, and counted once, rather than missed. A line that is not complete, and
-- the space that the service reserves, are not JSON, and become NULL. A log that has never been
-- served has no files, and DuckDB fails on a pattern that matches none. The patterns for single files
-- make it look for them also in an S3-compatible store, which has no tail.
SET VARIABLE nothing = 'SELECT NULL::JSON AS json WHERE false';
SET VARIABLE tail = getvariable('log') || '/tail.ndjso[n]';
SET VARIABLE reader = if(
  (SELECT count(*) FROM glob(getvariable('tail'))) = 0, getvariable('nothing'),
  'FROM read_ndjson_objects(getvariable(''tail''),
    ignore_errors = true, maximum_object_size = 134217728)'
);
CREATE OR REPLACE TEMP TABLE unsealed_lines AS FROM query(getvariable('reader'));

SET VARIABLE pending = getvariable('log') || '/pending/*.ndjson';
SET VARIABLE reader = if(
  (SELECT count(*) FROM glob(getvariable('pending'))) = 0, getvariable('nothing'),
  'FROM read_ndjson_objects(getvariable(''pending''),
    ignore_errors = true, maximum_object_size = 134217728)'
);
INSERT INTO unsealed_lines FROM query(getvariable('reader'));

-- The manifest lists the log's segments; other files may be partial, or not yet part of the log.
SET VARIABLE manifest = getvariable('log') || '/manifest.jso[n]';
SET VARIABLE reader = if(
  (SELECT count(*) FROM glob(getvariable('manifest'))) = 0, getvariable('nothing'),
  'SELECT unnest(segments) AS json
   FROM read_json(getvariable(''manifest''), columns = {segments: ''JSON[]''})'
);
CREATE OR REPLACE TEMP TABLE sealed AS
SELECT
  getvariable('log') || '/' || (json ->> '$.path') AS path,
  (json ->> '$.last_event_id')::UUID AS last_event_id
FROM query(getvariable('reader'));
SET VARIABLE segments = (SELECT list(path) FROM sealed);

-- Each commit starts with a header, which lists its batches. If the events of a batch are not all
-- there, its commit is still being written, or was torn by a crash.
CREATE OR REPLACE TEMP TABLE unsealed AS
WITH headers AS (
  SELECT unnest((json -> '$.commit.batches')::JSON[]) AS batch
  FROM unsealed_lines
  WHERE (json -> '$.commit') IS NOT NULL
), batches AS (
  SELECT DISTINCT
    batch ->> '$.source' AS source,
    batch ->> '$.batch_id' AS batch_id,
    batch ->> '$.batch_digest' AS batch_digest,
    (batch ->> '$.events')::BIGINT AS events
  FROM headers
), lines AS (
  SELECT DISTINCT
    (json ->> '$.event_id')::UUID AS event_id,
    json ->> '$.source' AS source,
    json ->> '$.batch_id' AS batch_id,
    json::VARCHAR AS line
  FROM unsealed_lines
  WHERE (json -> '$.event_id') IS NOT NULL
), counted AS (
  SELECT *, count(*) OVER (PARTITION BY source, batch_id) AS found FROM lines
)
SELECT
  event_id, source,
  line ->> '$.stream' AS stream,
  line ->> '$.record_key' AS record_key,
  line ->> '$.kind' AS kind,
  line ->> '$.occurred_at' AS occurred_at,
  (line ->> '$.observed_at')::TIMESTAMPTZ AS observed_at,
  -- The payload as stored, which is canonical.
  regexp_extract(line, ',"payload":(.*),"content_hash":"[0-9a-f]{64}","batch_id":', 1) AS payload,
  unhex(line ->> '$.content_hash') AS content_hash,
  batch_id,
  unhex(batch_digest) AS batch_digest,
  unhex(line ->> '$.event_hash') AS event_hash
FROM counted JOIN batches USING (source, batch_id)
WHERE found = events
  AND event_id > coalesce((SELECT max(last_event_id) FROM sealed), '00000000-0000-0000-0000-000000000000'::UUID);
DROP TABLE unsealed_lines;

-- read_parquet() rejects an empty list.
SET VARIABLE history = if(
  getvariable('segments') IS NULL,
  'FROM unsealed',
  'FROM read_parquet(getvariable(''segments'')) UNION ALL BY NAME FROM unsealed'
);

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
FROM query(getvariable('history'))
WHERE getvariable('through') IS NULL OR event_id <= getvariable('through')::UUID;

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
