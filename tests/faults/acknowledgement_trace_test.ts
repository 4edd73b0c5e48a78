/**
 * The real service acknowledges only after fsync. Its system calls show that each 200 response to a
 * mutation is sent only after an fdatasync of the tail has returned, and that the fdatasync began
 * only after the mutation's commit was written. Needs `strace`.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { withServing } from "../support/deployment.ts";
import { request } from "../support/http_client.ts";
import { attachStrace, testTraced } from "./support/strace.ts";
import { parseSystemCalls, type SystemCall } from "./support/system_calls.ts";

const WRITERS = 8;
const BATCHES_PER_WRITER = 25;
/** System calls that write to a file or socket, or that sync, truncate or rename a file. */
const CALLS = "trace=write,writev,pwrite64,pwritev,pwritev2,sendto,sendmsg,sendmmsg,sendfile," +
  "splice,io_uring_enter,io_submit,fdatasync,fsync,sync_file_range,msync,ftruncate,rename";

const RECEIPT = /\\"(?:first_event_id|retirement_event_id)\\":\\"([0-9a-f-]{36})\\"/;

/** Every 200 response to a mutation, with the id of the first event in its batch. */
function acknowledgementsIn(calls: readonly SystemCall[]): [eventId: string, call: SystemCall][] {
  return calls.flatMap((call): [string, SystemCall][] => {
    const eventId = RECEIPT.exec(call.args)?.[1];
    return eventId !== undefined && call.args.includes("HTTP/1.1 200 OK") ? [[eventId, call]] : [];
  });
}

/** @throws {AssertionError} if a receipt was sent before the fsync of its commit had returned. */
function assertDurableBefore(
  eventId: string,
  receipt: SystemCall,
  callsOnTail: readonly SystemCall[],
): void {
  const write = callsOnTail.find(({ name, args, result }) =>
    name !== "fdatasync" && Number(result) > 0 &&
    args.includes(`\\"first_event_id\\":\\"${eventId}\\"`)
  );
  assert.ok(write !== undefined, `the write of ${eventId} is in the trace`);
  const sync = callsOnTail.find(({ name, result, beganLine, endedLine }) =>
    name === "fdatasync" && result === "0" && beganLine > write.endedLine &&
    endedLine < receipt.beganLine
  );
  assert.ok(sync !== undefined, `the receipt of ${eventId} was sent before its fdatasync returned`);
}

/** Runs concurrent writers, each with duplicates and a retirement. @returns all 200 responses. */
async function load(socketPath: string): Promise<number> {
  const statuses: number[] = [];
  const post = async (path: string, body: unknown) => {
    const { status } = await request(socketPath, { path, body });
    statuses.push(status);
  };
  await Promise.all(Array.from({ length: WRITERS }, async (_, writer) => {
    const source = `w${writer}`;
    for (let number = 0; number < BATCHES_PER_WRITER; number++) {
      const events = [{ stream: "s", record_key: "k", kind: "upserted", payload: { number } }];
      const body = { source, batch_id: `${number}`, events };
      const times = number % 5 === 0 ? 2 : 1;
      await Promise.all(Array.from({ length: times }, () => post("/v1/events", body)));
    }
    await post("/v1/sources/retire", { source });
  }));
  assert.deepEqual([...new Set(statuses)], [200]);
  return statuses.length;
}

testTraced("serve acknowledges a mutation only after the fdatasync of its commit", async () => {
  await withServing(async (deployment) => {
    const { folder, logDir, serving, socketPath } = deployment;
    const tracer = await attachStrace(serving.child.pid!, folder, ["-e", CALLS]);
    const acknowledged = await load(socketPath);
    // A client can receive a response before the tracer prints the call that sent it. The response
    // to this later request shows that the thread has passed that call.
    await request(socketPath, { path: "/v1/streams" });
    const calls = parseSystemCalls(await tracer.stop());
    await deployment.stop();
    const acknowledgements = acknowledgementsIn(calls);
    assert.equal(acknowledgements.length, acknowledged, "every 200 is in the trace");
    const tailPath = join(logDir, "tail.ndjson");
    const callsOnTail = calls.filter(({ args }) => args.includes(`<${tailPath}>`));
    for (const [eventId, call] of acknowledgements) {
      assertDurableBefore(eventId, call, callsOnTail);
    }
  });
});
