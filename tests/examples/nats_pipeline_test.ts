/** What `nats_bridge` has under way at a time, by a NATS whose answers the test gives. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { CommittedEvent } from "../../mod.ts";
import { NatsPipeline, type PublishTarget } from "../../examples/support/nats_pipeline.ts";
import { committedEvent } from "./support/view.ts";

const MIB = 1024 * 1024;

interface Sent {
  subject: string;
  id: string;
  /** Sequence that the stream must end with. */
  after: number;
  acknowledge(sequence: number): Promise<void>;
  refuse(error: Error): Promise<void>;
}

interface PublishOptions {
  msgID: string;
  expect: { lastSequence: number };
}

/** A pipeline behind message 7, what it has sent, and what it has failed with. */
function pipelineAt7() {
  const sent: Sent[] = [];
  const failures: unknown[] = [];
  const publish = (subject: string, _data: Uint8Array, options: PublishOptions) => {
    const answer = Promise.withResolvers<{ seq: number }>();
    sent.push({
      subject,
      id: options.msgID,
      after: options.expect.lastSequence,
      acknowledge: (seq) => settled(answer.resolve({ seq })),
      refuse: (error) => settled(answer.reject(error)),
    });
    return answer.promise;
  };
  const target = { client: { publish }, connection: { info: { max_payload: 64 * MIB } } };
  const pipeline = new NatsPipeline(
    { ...target, stream: "ground" } as unknown as PublishTarget,
    { eventId: "seventh", sequence: 7 },
    (error) => failures.push(error),
  );
  return { pipeline, sent, failures };
}

/** Waits until nothing more happens by itself. */
function settled(_done?: void): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function eventOf(n: number, bytes = 10): CommittedEvent {
  return committedEvent(n, `r${n}`, "upserted", "x".repeat(bytes));
}

async function publishAll(pipeline: NatsPipeline, events: CommittedEvent[]): Promise<void> {
  for (const event of events) await pipeline.publish(event);
}

test("NatsPipeline sends each event behind the one before it, without waiting", async () => {
  const { pipeline, sent } = pipelineAt7();
  const events = [eventOf(1), eventOf(2), eventOf(3)];
  await publishAll(pipeline, events);
  assert.deepEqual(sent.map(({ after }) => after), [7, 8, 9]);
  assert.deepEqual(sent.map(({ id }) => id), events.map(({ event_id }) => event_id));
  assert.deepEqual(sent.map(({ subject }) => subject), Array(3).fill("ground.test.items"));
});

const BOUNDS: [string, number, number, number][] = [
  ["1,024 messages", 1500, 10, 1024],
  ["8 MiB", 5, 3 * MIB, 2],
  ["one event of any size", 2, 20 * MIB, 1],
];
for (const [bound, count, bytes, expected] of BOUNDS) {
  test(`NatsPipeline has at most ${bound} under way`, async () => {
    const { pipeline, sent } = pipelineAt7();
    const publishing = publishAll(
      pipeline,
      Array.from({ length: count }, (_, index) => eventOf(index, bytes)),
    );
    await settled();
    assert.equal(sent.length, expected);
    for (let index = 0; index < count; index++) await sent[index]!.acknowledge(8 + index);
    await publishing;
    assert.equal(sent.length, count);
  });
}

test("NatsPipeline stands at the last one answered", async () => {
  const { pipeline, sent } = pipelineAt7();
  const events = [eventOf(1), eventOf(2), eventOf(3)];
  await publishAll(pipeline, events);
  assert.deepEqual(pipeline.stored, { eventId: "seventh", sequence: 7 });
  await sent[0]!.acknowledge(8);
  assert.deepEqual(pipeline.stored, { eventId: events[0]!.event_id, sequence: 8 });
  // It is stored only if those before it are, so their answers add nothing.
  await sent[2]!.acknowledge(10);
  await sent[1]!.acknowledge(9);
  assert.deepEqual(pipeline.stored, { eventId: events[2]!.event_id, sequence: 10 });
});

test("NatsPipeline does not drain before the last answer", async () => {
  const { pipeline, sent } = pipelineAt7();
  await publishAll(pipeline, [eventOf(1), eventOf(2)]);
  let isDrained = false;
  const draining = pipeline.drain().then(() => isDrained = true);
  await sent[0]!.acknowledge(8);
  assert.ok(!isDrained);
  await sent[1]!.refuse(new Error("timeout"));
  await draining;
});

test("NatsPipeline tells of a message that was not stored, or not where it belongs", async () => {
  const { pipeline, sent, failures } = pipelineAt7();
  await publishAll(pipeline, [eventOf(1), eventOf(2)]);
  const lost = new Error("timeout");
  await sent[0]!.refuse(lost);
  assert.deepEqual(failures, [lost]);
  await sent[1]!.acknowledge(12);
  assert.match(String(failures[1]), /is message 12, not 9/);
  assert.deepEqual(pipeline.stored, { eventId: "seventh", sequence: 7 });
  await pipeline.drain();
});
