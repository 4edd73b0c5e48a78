/** Conditions under which `nats_bridge` exits with status 1 and says what to do. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { jetstreamManager } from "@nats-io/jetstream";
import {
  appendPayloads,
  type Bridged,
  endBridge,
  startBridge,
  testWithNats,
} from "./support/nats_bridge.ts";
import type { NatsServer } from "./support/nats_server.ts";
import {
  assertMirrors,
  lastSequence,
  readCursor,
  STREAM,
  untilSequence,
  writeCursor,
} from "./support/nats_stream.ts";
import { untilPrinted } from "../../tools/support/program.ts";
import { runExample } from "./support/run_script.ts";
import { withServing } from "../support/deployment.ts";

/** Runs a bridge that exits by itself. @returns its standard error. */
async function refusal(bridged: Bridged, url?: string): Promise<string> {
  const { code, stderr } = await startBridge(bridged, url).exited;
  assert.equal(code, 1, stderr);
  return stderr;
}

/** Runs a bridge until the stream has message `sequence`. */
async function carry(bridged: Bridged, sequence: number): Promise<void> {
  const bridge = startBridge(bridged);
  await untilSequence(bridged.nats, sequence, bridge);
  assert.equal(await endBridge(bridge, "SIGTERM"), 0);
}

async function purge(nats: NatsServer): Promise<void> {
  const { streams } = await jetstreamManager(await nats.connect());
  await streams.purge(STREAM);
}

testWithNats("nats_bridge reports an oversized event and does not skip it", async (bridged) => {
  const { nats } = bridged;
  await appendPayloads(bridged, "b1", [1, 2]);
  const large = await appendPayloads(bridged, "b2", ["x".repeat(4096)]);
  await appendPayloads(bridged, "b3", [4]);
  const told = await refusal(bridged);
  assert.match(told, new RegExp(`^event ${large.first_event_id} of shop/orders has 4\\d{3} b`));
  assert.match(told, /accepts messages of 4096 .*: raise its max_payload/);
  assert.equal(await lastSequence(nats), 2);
  assert.equal((await readCursor(nats)).sequence, 2);

  await nats.stop("SIGTERM");
  await nats.start("max_payload: 8192");
  await carry(bridged, 4);
  await assertMirrors(bridged);
}, "max_payload: 4096");

testWithNats("nats_bridge does not copy a different log into a stream", async (bridged) => {
  await appendPayloads(bridged, "b1", [1, 2]);
  await carry(bridged, 2);
  await withServing(async (served) => {
    const other = { ...bridged, served };
    await appendPayloads(other, "b1", [1, 2, 3]);
    assert.match(await refusal(other), /^event \S+, message 2 .* is not in this log/);
  });
  assert.equal(await lastSequence(bridged.nats), 2);
});

testWithNats("nats_bridge resumes from the cursor when the messages are gone", async (bridged) => {
  const { nats } = bridged;
  await appendPayloads(bridged, "b1", [1, 2]);
  await carry(bridged, 2);
  await purge(nats);
  const { last_event_id } = await appendPayloads(bridged, "b2", [3]);
  await carry(bridged, 3);
  assert.deepEqual(await readCursor(nats), { event_id: last_event_id, sequence: 3 });
});

testWithNats("nats_bridge stops when both messages and cursor are gone", async (bridged) => {
  const { nats } = bridged;
  const { first_event_id } = await appendPayloads(bridged, "b1", [1, 2]);
  await carry(bridged, 2);
  await purge(nats);
  await writeCursor(nats, { event_id: first_event_id, sequence: 1 });
  assert.match(
    await refusal(bridged),
    /^message 2, .* is gone, and the cursor is \{.*"sequence":1/,
  );
  assert.equal(await lastSequence(nats), 2);
});

testWithNats("nats_bridge logs in with the user and password of the URL", async (bridged) => {
  const { url } = bridged.nats;
  const as = (who: string) => url.replace("//", `//${who}@`);
  await appendPayloads(bridged, "b1", [1]);
  const bridge = startBridge(bridged, as("ada:s%2Fecret"));
  await untilPrinted(bridge, ({ stdout }) => stdout.startsWith("1 events"));
  assert.equal(await endBridge(bridge, "SIGTERM"), 0);
  const told = await refusal(bridged, as("ada:wrong"));
  assert.match(told, /authorization violation/i);
  assert.doesNotMatch(told, /wrong/);
}, 'authorization: { user: "ada", password: "s/ecret" }');

testWithNats("nats_bridge refuses a stream that does not accept its subjects", async (bridged) => {
  const { streams } = await jetstreamManager(await bridged.nats.connect());
  await streams.add({ name: STREAM, subjects: ["elsewhere.>"] });
  assert.match(
    await refusal(bridged),
    /subjects elsewhere\.>: add ground\.\*\.\* to its/,
  );
});

test("nats_bridge exits 2 for invalid arguments", async () => {
  const { code, stderr } = await runExample("nats_bridge", ["s", "--stream", "a.b"]);
  assert.equal(code, 2);
  assert.match(stderr, /a\.b is not a valid NATS name/);
});
