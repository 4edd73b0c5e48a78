import assert from "node:assert/strict";
import { test } from "node:test";
import { EventLogError } from "../../src/client/errors.ts";

test("EventLogError.is() matches a code and narrows its document", () => {
  const body = { error: "stream_frontier_conflict", message: "m", actual_frontier: null, more: 1 };
  const error = new EventLogError({ status: 409, body, retryAfterMs: null });
  assert(!error.is("batch_id_conflict"));
  if (!error.is("stream_frontier_conflict")) throw new Error("not told apart");
  const actual: string | null = error.body.actual_frontier;
  assert.equal(actual, null);
  assert.equal(error.message, "stream_frontier_conflict: m");
});
