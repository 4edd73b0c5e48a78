import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { findCommitAfter } from "../../../src/log/wal/remnant.ts";
import { repairFraming } from "../../support/corrupt.ts";
import { SimulatedDisk, simulatedFile } from "../../support/simulated_disk.ts";
import { preparedBatch } from "../../support/prepared.ts";
import { commitOffsets, logTree, openTestLog, tailOf } from "../../support/test_log.ts";

const MIB = 1024 * 1024;

async function find(bytes: Buffer, from: number): Promise<number | null> {
  return await findCommitAfter(await simulatedFile(bytes), bytes.length, from);
}

test("findCommitAfter() finds the next right commit, but not the one it starts at", async () => {
  const tail = tailOf(await logTree([["a"], ["b", "c"], [], ["d"]]));
  const offsets = commitOffsets(tail);
  for (const [number, offset] of offsets.entries()) {
    assert.equal(await find(tail, offset), offsets.slice(0, -1)[number + 1] ?? null);
  }
});

test("findCommitAfter() finds a commit whatever stands before it", async () => {
  const commit = tailOf(await logTree([["a"]]));
  const befores: Record<string, Buffer> = {
    "one byte": Buffer.from("x"),
    "a line without its end": Buffer.from('{"event_id":"'),
    "the start of a header": Buffer.from('{"commit":{"commit":'),
    "zeros": Buffer.alloc(300),
    "zeros up to the end of what is read at once": Buffer.alloc(MIB - 40),
    "zeros beyond it": Buffer.alloc(MIB + 40),
    "long lines of noise": Buffer.alloc(5 * MIB, "noise\n"),
    "a long line": Buffer.alloc(5 * MIB, "noise"),
    "another end of line": Buffer.from("x\n"),
  };
  for (const [name, before] of Object.entries(befores)) {
    assert.equal(await find(Buffer.concat([before, commit]), 0), before.length, name);
  }
});

test("findCommitAfter() finds a header whose end any read cuts", async () => {
  const commit = tailOf(await logTree([["a"]]));
  const headerBytes = commit.indexOf("\n") + 1;
  for (let cutBytes = headerBytes - 90; cutBytes <= headerBytes + 2; cutBytes++) {
    const before = Buffer.alloc(MIB - cutBytes);
    assert.equal(await find(Buffer.concat([before, commit]), 0), before.length, `cut ${cutBytes}`);
  }
});

test("findCommitAfter() takes nothing that a client can submit for a commit", async () => {
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
  assert.equal(await find(tail, 0), null);
  for (let offset = 0; offset >= 0; offset = tail.indexOf("\n", offset + 1)) {
    assert.equal(await find(tail, offset), null);
  }
});

test("findCommitAfter() passes over commits that are damaged themselves", async () => {
  const tail = tailOf(await logTree([["a"], ["b"], ["c"]]));
  const offsets = commitOffsets(tail);
  const damaged = Buffer.from(tail);
  damaged[tail.indexOf('"orders"', offsets[1])]! ^= 1;
  assert.equal(await find(damaged, 0), offsets[2]);
  assert.equal(await find(repairFraming(damaged), 0), offsets[1]);
  assert.equal(await find(damaged.subarray(0, -1), 0), null);
});
