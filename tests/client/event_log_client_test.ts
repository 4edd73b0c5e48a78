/** The client against a real service, including while the service is killed and restarted. */
import assert from "node:assert/strict";
import { cp, rm } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import {
  AlteredEventError,
  type Batch,
  type CommittedEvent,
  EventLogClient,
  type Fetch,
  PositionError,
  type Receipt,
  unixFetch,
  verifyEvent,
} from "../../mod.ts";
import { SEED, SeededRandom } from "../../tools/support/random.ts";
import { type Deployment, withServing } from "../support/deployment.ts";
import { collect, errorOf } from "./support/fake_service.ts";

function batchOf(source: string, batchId: string, stream: string, size = 3): Batch {
  const events = Array.from({ length: size }, (_, index) => ({
    stream,
    record_key: `${batchId}/${index}`,
    kind: "upserted",
    payload: { index, text: "naïve \u{1f600}", list: [1.5, null, true] },
  }));
  return { source, batchId, events };
}

function clientOf({ socketPath }: Deployment): EventLogClient {
  return new EventLogClient(unixFetch(socketPath));
}

test("EventLogClient appends, replays, lists and retires", async () => {
  await withServing(async (deployment) => {
    const client = clientOf(deployment);
    const first = await client.append(batchOf("shop", "b1", "orders"));
    assert.equal(first.status, "committed");
    assert.deepEqual(await client.append(batchOf("shop", "b1", "orders")), {
      ...first,
      status: "duplicate",
    });
    const second = await client.append({
      ...batchOf("shop", "b2", "orders"),
      precondition: { stream: "orders", expectedFrontier: first.last_event_id },
    });
    await client.append(batchOf("crm", "b1", "contacts", 1));

    const events = await collect(client.replay({ limit: 2 }));
    assert.equal(events.length, 7);
    for (const event of events) {
      assert.deepEqual(await verifyEvent(event), { contentHash: true, eventHash: true });
    }
    const filtered = client.replay({
      source: "shop",
      recordKey: "b2/1",
      after: first.last_event_id,
    });
    assert.deepEqual((await collect(filtered)).map((event) => event.batch_id), ["b2"]);

    const { streams, snapshotThroughEventId } = await client.streams();
    assert.equal(snapshotThroughEventId, events.at(-1)?.event_id);
    assert.equal(streams.length, 2);
    assert.deepEqual(streams[1], {
      source: "shop",
      stream: "orders",
      frontier_event_id: second.last_event_id,
      event_count: 6,
    });

    const retired = await client.retire("shop");
    assert.deepEqual([retired.status, retired.final_frontier], ["retired", second.last_event_id]);
    assert.equal((await client.retire("shop")).status, "already_retired");
  });
});

test("reads refuse the position of a consumer once its log was restored from an older copy", async () => {
  await withServing(async (deployment) => {
    const client = clientOf(deployment);
    const append = (batchId: string) => client.append(batchOf("shop", batchId, "orders"));
    const { last_event_id: kept } = await append("b1");
    await deployment.stop();
    const copy = join(deployment.folder, "copy");
    await cp(deployment.logDir, copy, { recursive: true });
    await deployment.start();
    await append("b2");
    const read = (after: string | null) => collect(client.replayPages({ after }));
    const position = (await read(null)).at(-1)!.nextAfter!;
    const hash = (await client.findEvent(position))!.event_hash;
    assert.equal((await read(position))[0]!.nextAfter, position);

    await deployment.stop();
    await rm(deployment.logDir, { recursive: true });
    await cp(copy, deployment.logDir, { recursive: true });
    await deployment.start();
    const { last_event_id: frontier } = await append("b3");
    assert.ok(position < frontier, "the log has grown past the position");
    const filter = { source: "shop", after: position, afterHash: hash };
    const reads = [
      client.replay({ after: position }),
      client.replay({ ...filter, kind: "none" }),
      client.follow({ after: position }),
      client.followRecords(filter),
    ];
    for (const read of reads) {
      const error = await errorOf(PositionError, read.next());
      assert.equal(error.frontier, frontier);
    }
    assert.equal(await client.findEvent(position), null);
    assert.equal(await client.findEvent("no id"), null);
    assert.equal((await client.findEvent(kept))?.record_key, "b1/2");
    assert.deepEqual((await read(kept)).flatMap(({ events }) => events).length, 3);
  });
});

/** Appends batches and returns their receipts. */
async function appendAll(client: EventLogClient, source: string, batches: number) {
  const receipts: Receipt[] = [];
  for (let n = 0; n < batches; n++) {
    receipts.push(await client.append(batchOf(source, `b${n}`, "orders")));
  }
  return receipts;
}

/** Follows until `count` events have arrived. */
async function followEvents(client: EventLogClient, count: number): Promise<CommittedEvent[]> {
  const events: CommittedEvent[] = [];
  for await (const item of client.follow({ limit: 10 })) {
    if (item.type === "event") events.push(item.event);
    if (events.length === count) break;
  }
  return events;
}

test(`append() and follow() lose or repeat no event across kill -9 (seed ${SEED})`, async () => {
  const random = new SeededRandom();
  const sources = ["a", "b", "c", "d"];
  const batches = 150;
  await withServing(async (deployment) => {
    const client = clientOf(deployment);
    const total = sources.length * batches * 3;
    const following = followEvents(client, total);
    const appending = Promise.all(sources.map((source) => appendAll(client, source, batches)));
    for (let kill = 0; kill < 3; kill++) {
      await followEvents(client, total * kill / 4 + 1 + random.below(total / 4));
      await deployment.stop("SIGKILL");
      await deployment.start();
    }
    const receipts = (await appending).flat();
    const followed = await following;
    const replayed = await collect(client.replay());
    assert.deepEqual(followed, replayed);
    const starts = new Set(receipts.map(({ first_event_id }) => first_event_id));
    assert.equal(starts.size, sources.length * batches);
    for (const event of replayed) {
      if (event.record_key.endsWith("/0")) assert(starts.has(event.event_id));
    }
  });
});

test("replay() and follow() verify hashes on request, and return typed payloads", async () => {
  await withServing(async (deployment) => {
    const client = clientOf(deployment);
    await client.append(batchOf("shop", "b1", "orders"));
    const indices: number[] = [];
    for await (const { payload } of client.replay<{ index: number }>({ verify: true })) {
      indices.push(payload.index);
    }
    assert.deepEqual(indices, [0, 1, 2]);

    // Changes one character of a payload in transit.
    const altering: Fetch = async (input, init) => {
      const response = await unixFetch(deployment.socketPath)(input, init);
      const text = response.body!.pipeThrough(new TextDecoderStream()).pipeThrough(
        new TransformStream<string, string>({
          transform: (part, to) => to.enqueue(part.replace('"index":1', '"index":9')),
        }),
      );
      return new Response(text.pipeThrough(new TextEncoderStream()), response);
    };
    const altered = new EventLogClient(altering);
    assert.equal((await collect(altered.replay())).length, 3);
    const options = { verify: true, limit: 1 };
    for (const read of [altered.replay(options), altered.followRecords(options)]) {
      assert.ok(!(await read.next()).done);
      const error = await errorOf(AlteredEventError, read.next());
      assert.equal(error.event.record_key, "b1/1");
    }
  });
});
