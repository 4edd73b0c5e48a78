/**
 * Acknowledgement after fsync, on the real process: in a trace of its system calls, every 200 to a
 * mutation begins after an fdatasync of the tail has ended that began after the write of its commit
 * had. Needs `strace`.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { withServing } from "../support/deployment.ts";
import { request } from "../support/http_client.ts";
import { skipLoudly } from "./support/skip.ts";
import { attachStrace, straceAbsence } from "./support/strace.ts";
import { parseSystemCalls, type SystemCall } from "./support/system_calls.ts";

const WRITERS = 8;
const BATCHES_PER_WRITER = 25;
/** Whatever can write to a file or a socket, or make a file durable. */
const CALLS = "trace=write,writev,pwrite64,pwritev,pwritev2,sendto,sendmsg,sendmmsg,sendfile," +
  "splice,io_uring_enter,io_submit,fdatasync,fsync,sync_file_range,msync,ftruncate,rename";

/** A 200 as the trace shows it. */
interface Acknowledgement {
  /** First event of the batch, which its commit names too. */
  firstEventId: string;
  call: SystemCall;
}

/** `write`, `pwrite64` and the like, of some bytes to the tail. */
function isTailWrite({ name, args, result }: SystemCall, tailPath: string): boolean {
  return name !== "fdatasync" && args.includes(`<${tailPath}>`) && Number(result) > 0;
}

function isTailSync({ name, args, result }: SystemCall, tailPath: string): boolean {
  return name === "fdatasync" && args.includes(`<${tailPath}>`) && result === "0";
}

const RECEIPT = /\\"(?:first_event_id|retirement_event_id)\\":\\"([0-9a-f-]{36})\\"/;

/** Every 200 to a mutation: what goes to a socket with a receipt in it. */
function acknowledgementsIn(calls: readonly SystemCall[]): Acknowledgement[] {
  return calls.flatMap((call) => {
    if (!call.args.includes("HTTP/1.1 200 OK")) return [];
    const [, firstEventId] = RECEIPT.exec(call.args) ?? [];
    return firstEventId === undefined ? [] : [{ firstEventId, call }];
  });
}

/** @throws {AssertionError} a receipt left before the fsync of its commit had ended. */
function assertDurableBefore(
  { firstEventId, call }: Acknowledgement,
  calls: readonly SystemCall[],
  tailPath: string,
): void {
  const write = calls.find((other) =>
    isTailWrite(other, tailPath) &&
    other.args.includes(`\\"first_event_id\\":\\"${firstEventId}\\"`)
  );
  assert.ok(write !== undefined, `the write of ${firstEventId} is in the trace`);
  const sync = calls.find((other) =>
    isTailSync(other, tailPath) && other.beganLine > write.endedLine &&
    other.endedLine < call.beganLine
  );
  assert.ok(sync !== undefined, `the receipt of ${firstEventId} left before its fdatasync ended`);
}

/** Writers at the same time, duplicates among them, and a retirement each. @returns all 200s. */
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

test("serve answers 200 to a mutation only after the fdatasync of its commit", async (context) => {
  const absence = straceAbsence();
  if (absence !== null) return skipLoudly(context, absence);
  await withServing(async (deployment) => {
    const { folder, logDir, serving, socketPath } = deployment;
    const tracer = await attachStrace(serving.child.pid!, folder, ["-e", CALLS]);
    const acknowledged = await load(socketPath);
    // A response reaches the client before the tracer prints the call that sent it; the thread that
    // answers this one has been past that.
    await request(socketPath, { path: "/v1/streams" });
    const calls = parseSystemCalls(await tracer.stop());
    await deployment.stop();
    const acknowledgements = acknowledgementsIn(calls);
    assert.equal(acknowledgements.length, acknowledged, "every 200 is in the trace");
    const tailPath = join(logDir, "tail.ndjson");
    for (const acknowledgement of acknowledgements) {
      assertDurableBefore(acknowledgement, calls, tailPath);
    }
  });
});
