import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { COMMIT_BODY_BYTES_MAX, COMMIT_HEADER_BYTES_MAX } from "../../../src/limits.ts";
import { remnantFault } from "../../../src/log/wal/remnant.ts";
import { preparedBatch } from "../../support/prepared.ts";
import { SimulatedDisk, simulatedFile } from "../../support/simulated_disk.ts";
import { logTree, openTestLog, tailOf } from "../../support/test_log.ts";

const MIB = 1024 * 1024;

async function faultOf(bytes: Buffer, from = 0, sizeBytes = bytes.length): Promise<string | null> {
  return await remnantFault(await simulatedFile(bytes), sizeBytes, from);
}

test("remnantFault() finds a commit after any bytes", async () => {
  const commit = tailOf(await logTree([["a"]]));
  const befores: Record<string, Buffer> = {
    "one byte": Buffer.from("x"),
    "an unterminated line": Buffer.from('{"event_id":"'),
    "the start of a header": Buffer.from('{"commit":{"commit":'),
    "zeros": Buffer.alloc(300),
    "zeros up to the end of a read": Buffer.alloc(MIB - 40),
    "zeros beyond the end of a read": Buffer.alloc(MIB + 40),
    "long lines of noise": Buffer.alloc(5 * MIB, "noise\n"),
    "a long line": Buffer.alloc(5 * MIB, "noise"),
  };
  for (const [name, before] of Object.entries(befores)) {
    const fault = await faultOf(Buffer.concat([before, commit]));
    assert.equal(fault, `a valid commit follows at byte ${before.length}`, name);
  }
  assert.equal(await faultOf(commit), null, "a commit at the start offset is not a fault");
});

test("remnantFault() finds a header that straddles two reads at any byte", async () => {
  const commit = tailOf(await logTree([["a"]]));
  const headerBytes = commit.indexOf("\n") + 1;
  for (let cutBytes = headerBytes - 90; cutBytes <= headerBytes + 2; cutBytes++) {
    const fault = await faultOf(Buffer.concat([Buffer.alloc(MIB - cutBytes), commit]));
    assert.equal(fault, `a valid commit follows at byte ${MIB - cutBytes}`);
  }
  const start = Buffer.from('\n{"commit":{"batches":');
  for (let cutBytes = 0; cutBytes <= start.length; cutBytes++) {
    const fault = await faultOf(Buffer.concat([Buffer.alloc(MIB - cutBytes), start]));
    assert.equal(fault, `another commit begins at byte ${MIB - cutBytes + 1}`);
  }
});

test("remnantFault() rejects more bytes than one commit may contain", async () => {
  const bytesMax = COMMIT_HEADER_BYTES_MAX + COMMIT_BODY_BYTES_MAX;
  assert.equal(await faultOf(Buffer.from("{"), 0, bytesMax), null);
  const fault = await faultOf(Buffer.from("{"), 0, bytesMax + 1);
  assert.match(fault!, /more than a single commit can contain/);
});

test("remnantFault() does not mistake client data for a commit", async () => {
  const [header = ""] = tailOf(await logTree([["a"], []])).toString().split("\n").slice(-2);
  const inner = JSON.parse(header);
  const texts = [header, `\n${header}\n`, "\n" + header, `"\n${header}`];
  const storage = new SimulatedDisk();
  const { log } = await openTestLog(storage);
  await log.append(texts.map((text) =>
    preparedBatch(text.slice(0, 200), {
      events: [
        { recordKey: text, payload: text, kind: text },
        { payload: { [text]: inner } },
        { payload: inner },
        { payload: [inner, inner] },
      ],
    })
  ));
  const tail = tailOf(storage.tree());
  for (let offset = 0; offset >= 0; offset = tail.indexOf("\n", offset + 1)) {
    assert.equal(await faultOf(tail, offset), null);
  }
});

test("remnantFault() reads nothing past the given size", async () => {
  const bytes = Buffer.from('{"commit":{"batches":[\n{"commit":{"batches":[');
  const startBytes = bytes.indexOf("\n") + 1;
  for (let sizeBytes = 1; sizeBytes < startBytes + '{"commit":'.length; sizeBytes++) {
    assert.equal(await faultOf(bytes, 0, sizeBytes), null, `size ${sizeBytes}`);
  }
  assert.match((await faultOf(bytes))!, /another commit begins/);
});
