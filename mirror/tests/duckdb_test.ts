/** `duckdb.sql` reads the segments in an S3-compatible store, without a local copy. */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import process from "node:process";
import { test } from "node:test";
import { rowsOf, withDuckDb } from "../../tests/support/duckdb.ts";
import { withServing } from "../../tests/support/deployment.ts";
import { appendPayloads, runMirror } from "./support/mirrored.ts";
import { NEEDS_S3, withS3 } from "./support/s3_server.ts";

const SCRIPT = new URL("../../examples/duckdb.sql", import.meta.url);
/** Path of DuckDB's `httpfs` extension; the PyPI package duckdb-extension-httpfs contains it. */
const HTTPFS = process.env.MIRROR_TEST_HTTPFS;
const skip = NEEDS_S3.skip || (HTTPFS === undefined ? "MIRROR_TEST_HTTPFS is not set" : false);

test(
  "duckdb.sql reads segments in an S3-compatible store",
  { skip },
  () =>
    withServing(async (served) => {
      const { last_event_id } = await appendPayloads({ served }, "b1", [{ n: 1 }, { n: 2 }]);
      await served.stop();
      await served.run(["seal"]);
      await withS3(served.folder, async (url) => {
        await runMirror(["segments", "--to", url, served.dir]);
        const { AWS_ENDPOINT_URL, AWS_ACCESS_KEY_ID: id, AWS_SECRET_ACCESS_KEY: key } = process.env;
        await withDuckDb(async (connection) => {
          await connection.run(`LOAD '${HTTPFS}'`);
          await connection.run(
            `CREATE SECRET (TYPE s3, KEY_ID '${id}', SECRET '${key}', REGION 'us-east-1',
             ENDPOINT '${new URL(AWS_ENDPOINT_URL!).host}', URL_STYLE 'path', USE_SSL false)`,
          );
          await connection.run(`SET VARIABLE log = '${url}'`);
          await connection.run(await readFile(SCRIPT, "utf8"));
          const query = "SELECT count(*)::INT AS events, max(event_id) AS last FROM events";
          const expected = [{ events: 2, last: last_event_id }];
          assert.deepEqual(await rowsOf(connection, query), expected);
        });
      });
    }),
);
