/** The service accepts whatever `docs/openapi.yaml` allows, except what a schema cannot express. */
import assert from "node:assert/strict";
import { seededRandom, testSeed } from "../../tools/support/random.ts";
import { request } from "../support/http_client.ts";
import { test } from "../support/tested_service.ts";
import { batchWith, commit, ingest, postRetirement } from "./support/api.ts";
import { OpenApiDocument } from "./support/openapi.ts";
import { SchemaValues } from "./support/schema_values.ts";
import { withService } from "./support/served.ts";

const BODIES = 100;
const seed = testSeed();
/** Statuses of a request that is valid, and may be in conflict with the log. */
const VALID = [200, 404, 409];

interface Batch {
  events: { stream: string }[];
  stream_precondition?: { stream: string };
}

test(`the service accepts every body and cursor that docs/openapi.yaml allows (SEED=${seed})`, () =>
  withService(async ({ socketPath }) => {
    const values = new SchemaValues(new OpenApiDocument(), seededRandom(seed));
    const statuses = new Set<number>();
    const { last_event_id: through } = await commit(socketPath, batchWith({}));
    for (let n = 0; n < BODIES; n++) {
      const batch = values.next("Batch") as Batch;
      // The description of the precondition says so; a schema can't.
      const only = batch.stream_precondition?.stream;
      if (only !== undefined) batch.events.forEach((event) => event.stream = only);
      const reply = await ingest(socketPath, batch);
      statuses.add(reply.status);
      assert.ok(VALID.includes(reply.status), `${reply.text()} for ${JSON.stringify(batch)}`);
      const retirement = await postRetirement(socketPath, values.next("Retirement"));
      assert.ok(VALID.includes(retirement.status), retirement.text());
      const cursor = encodeURIComponent(values.next("StreamCursor") as string);
      const page = await request(socketPath, {
        path: `/v1/streams?through=${through}&after=${cursor}`,
      });
      assert.equal(page.status, 200, `${page.text()} for ${cursor}`);
    }
    assert.ok(statuses.has(200));
  }));
