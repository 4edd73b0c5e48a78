/** The memory budget for request bodies, tested over a socket. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { Admission } from "../../src/service/admission.ts";
import { batch } from "../support/batches.ts";
import { test } from "../support/tested_service.ts";
import { request } from "../support/http_client.ts";
import { RawConnection } from "../support/raw_client.ts";
import { withService } from "./support/served.ts";
import { withServedLog } from "./support/served_log.ts";

const MIB = 1024 * 1024;
const HEAD = "POST /v1/events HTTP/1.1\r\nHost: localhost\r\n";

/** A batch padded with spaces to a given size. */
function paddedBatch(batchId: string, sizeBytes: number): Buffer {
  const body = Buffer.alloc(sizeBytes, " ");
  body.write(JSON.stringify(batch(batchId)));
  return body;
}

test("a body over the memory budget gets 429 with Retry-After, and nothing is written", async () => {
  const admission = new Admission({ totalBytes: 1000, bodyBytes: 500, admitWaitMs: 5 });
  const held = admission.admit(450);
  await withServedLog(async ({ socketPath }) => {
    const refused = await request(socketPath, { body: batch("b1") });
    assert.deepEqual([refused.status, refused.json().error], [429, "overloaded"]);
    assert.match(refused.headers["retry-after"]!, /^[1-9][0-9]*$/);
    admission.release(await held);
    const accepted = await request(socketPath, { body: batch("b1") });
    assert.equal(accepted.json().status, "committed");
    assert.equal(admission.heldBytes, 0);
  }, { handler: { admission } });
});

test("a body waits for memory", async () => {
  const admission = new Admission({ totalBytes: 1000, bodyBytes: 500, admitWaitMs: 10_000 });
  const held = await admission.admit(450);
  await withServedLog(async ({ socketPath }) => {
    const answered = request(socketPath, { body: batch("b1") });
    // Reads reserve no memory.
    assert.equal((await request(socketPath)).status, 200);
    admission.release(held);
    assert.equal((await answered).json().status, "committed");
  }, { handler: { admission } });
});

test("slow senders reserve memory only for the bytes they have sent", async () => {
  await withService(async ({ socketPath }) => {
    const slow: RawConnection[] = [];
    for (let i = 0; i < 20; i++) {
      const connection = await RawConnection.open(socketPath);
      await connection.write(`${HEAD}Content-Length: ${32 * MIB}\r\n\r\n{`);
      slow.push(connection);
    }
    const body = paddedBatch("b1", 32 * MIB);
    assert.equal((await request(socketPath, { body })).json().status, "committed");
    for (const connection of slow) connection.destroy();
  });
});

test("more bodies than the memory budget admits at once are all committed", async () => {
  const admission = new Admission({ totalBytes: 10 * MIB, bodyBytes: 4 * MIB });
  await withServedLog(async ({ socketPath }) => {
    const replies = await Promise.all(
      Array.from({ length: 12 }, (_, i) => {
        return request(socketPath, { body: paddedBatch(`b${i}`, 3 * MIB) });
      }),
    );
    assert.deepEqual(replies.map((reply) => reply.status), replies.map(() => 200));
    assert.equal(admission.heldBytes, 0);
  }, { handler: { admission } });
});

for (const lengthBytes of [100, 10 * MIB]) {
  test(`a body of ${lengthBytes} bytes that stops arriving gets 429`, async () => {
    const admission = new Admission();
    await withServedLog(async ({ socketPath }) => {
      const connection = await RawConnection.open(socketPath);
      await connection.write(`${HEAD}Content-Length: ${lengthBytes}\r\n\r\n{`);
      const response = await connection.readResponse();
      assert.deepEqual([response?.status, response?.headers.connection], [429, "close"]);
      assert.equal(admission.heldBytes, 0);
      connection.destroy();
    }, { handler: { admission }, listen: { bodyStallTimeoutMs: 16 } });
  });
}

test("a client that disconnects releases its reservation", async () => {
  const admission = new Admission();
  await withServedLog(async ({ socketPath, reports }) => {
    const connection = await RawConnection.open(socketPath);
    await connection.write(`${HEAD}Content-Length: ${MIB}\r\n\r\n{`);
    while (admission.heldBytes === 0) await request(socketPath);
    connection.destroy();
    for (let n = 0; n < 200 && admission.heldBytes > 0; n++) await request(socketPath);
    assert.equal(admission.heldBytes, 0);
    assert.deepEqual(reports, []);
  }, { handler: { admission } });
});
