/**
 * Once all that is not right at the end of a tail was taken for what a crash leaves, and cut off: a
 * tail whose line ends an editor had converted came out empty. A crash leaves parts of one commit,
 * so what is of more than one is damage: it is refused, and left for a person to look at.
 */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { CorruptLogError } from "../../src/log/storage/errors.ts";
import { remnantFault } from "../../src/log/wal/remnant.ts";
import { COMMIT_BODY_BYTES_MAX, COMMIT_HEADER_BYTES_MAX } from "../../src/limits.ts";
import { SimulatedDisk, simulatedFile } from "../support/simulated_disk.ts";
import { commitOffsets, logTree, openTestLog, tailOf, withTail } from "../support/test_log.ts";
import { verifyTree } from "../support/verifying.ts";

const MIB = 1024 * 1024;

/** The commits of the tail that have a wrong byte, by their place. */
function withDamagedCommits(tail: Buffer, places: number[]): Buffer {
  const damaged = Buffer.from(tail);
  const offsets = commitOffsets(tail);
  for (const place of places) damaged[offsets[place]! + 100]! ^= 1;
  return damaged;
}

const DAMAGES: [name: string, damage: (tail: Buffer) => Buffer][] = [
  ["line ends that were converted", (tail) => Buffer.from(`${tail}`.replaceAll("\n", "\r\n"))],
  [
    "line ends that were converted, without the last",
    (tail) => Buffer.from(`${tail}`.trimEnd().replaceAll("\n", "\r\n")),
  ],
  ["the last two commits", (tail) => withDamagedCommits(tail, [2, 3])],
  ["every commit", (tail) => withDamagedCommits(tail, [0, 1, 2, 3])],
  [
    "a commit, and the end of the file is missing",
    (tail) => withDamagedCommits(tail, [1]).subarray(0, commitOffsets(tail)[2]! + 40),
  ],
];

for (const [name, damage] of DAMAGES) {
  for (const end of ["killed", "shut down"]) {
    test(`damage is no remnant of a crash: ${name}, in a log that was ${end}`, async () => {
      const last = end === "killed" ? ["d", "e"] : [];
      const tree = await logTree([["a"], ["b"], ["c"], last]);
      const damaged = withTail(tree, damage(tailOf(tree)));
      const storage = new SimulatedDisk(damaged);
      await assert.rejects(openTestLog(storage), (error) => {
        assert.ok(error instanceof CorruptLogError);
        assert.match(error.message, /another commit begins at \d+/);
        return true;
      });
      assert.deepEqual(storage.tree(), damaged, "nothing was changed");
      assert.equal((await verifyTree(damaged, { chain: false })).report.failure, "tail_invalid");
    });
  }
}

test("remnantFault() finds the start of another commit that any read cuts", async () => {
  const start = Buffer.from('\n{"commit":{"batches":');
  for (let cutBytes = 0; cutBytes <= start.length; cutBytes++) {
    const bytes = Buffer.concat([Buffer.alloc(MIB - cutBytes), start]);
    const fault = await remnantFault(await simulatedFile(bytes), bytes.length, 0);
    assert.equal(fault, `another commit begins at ${MIB - cutBytes + 1}`);
  }
});

test("remnantFault() refuses more bytes than a commit may have", async () => {
  const file = await simulatedFile(Buffer.from("{"));
  const bytesMax = COMMIT_HEADER_BYTES_MAX + COMMIT_BODY_BYTES_MAX;
  assert.equal(await remnantFault(file, bytesMax, 0), null);
  assert.match((await remnantFault(file, bytesMax + 1, 0))!, /more than a commit may have/);
});

test("remnantFault() takes nothing that a client can submit for another commit", async () => {
  const tree = await logTree([["a"]]);
  const [header = ""] = tailOf(tree).toString().split("\n");
  for (const text of [header, `\n${header}\n`]) {
    const line = JSON.stringify({ event_id: "", payload: { commit: JSON.parse(header), text } });
    const bytes = Buffer.from(`{"commit":{"batches":[\n${line}\n${line}\n`);
    assert.equal(await remnantFault(await simulatedFile(bytes), bytes.length, 0), null);
  }
});

test("remnantFault() looks at nothing that was appended behind the size", async () => {
  const bytes = Buffer.from('{"commit":{"batches":[\n{"commit":{"batches":[');
  const file = await simulatedFile(bytes);
  const startBytes = bytes.indexOf("\n") + 1;
  for (let sizeBytes = 1; sizeBytes < startBytes + '{"commit":'.length; sizeBytes++) {
    assert.equal(await remnantFault(file, sizeBytes, 0), null, `size ${sizeBytes}`);
  }
  assert.match((await remnantFault(file, bytes.length, 0))!, /another commit begins/);
});
