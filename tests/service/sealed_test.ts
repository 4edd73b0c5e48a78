/**
 * Sealing is invisible to clients. Responses have the same bytes whether a history is in one tail
 * or in segments, pending files and a tail.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { SegmentBounds } from "../../src/log/segment/segment_writer.ts";
import { PENDING_FOLDER, SEGMENTS_FOLDER } from "../../src/log/storage/file_names.ts";
import { SimulatedDisk } from "../support/simulated_disk.ts";
import { MixedHistory } from "../support/mixed_history.ts";
import { observe } from "../support/observation.ts";
import { rotateOnly, sealAll, sealOldest, SMALL_SEGMENTS } from "../support/sealing.ts";
import { openTestService } from "../support/test_service.ts";

/** Changes the files in a closed log, for example by sealing it. */
type Form = (storage: SimulatedDisk) => Promise<unknown>;

const stay: Form = () => Promise.resolve();
const seal = (bounds?: SegmentBounds): Form => (storage) => sealAll(storage, bounds);

interface Observed {
  seen: Record<string, unknown>;
  storage: SimulatedDisk;
}

/** Submits the history and rearranges files after each part. @returns an observation per part. */
async function play(forms: readonly Form[]): Promise<{ after: Observed[] }> {
  const history = new MixedHistory();
  let storage = new SimulatedDisk();
  const after: Observed[] = [];
  for (const [number, part] of history.parts.entries()) {
    const { service } = await openTestService(storage);
    await part(service);
    await service.close();
    await forms[number]!(storage);
    const reopened = await openTestService(storage);
    after.push({ seen: await observe(reopened.service, history), storage });
    await reopened.service.close();
    assert.equal(storage.openFiles, 0, "all files are closed");
    storage = storage.crash();
  }
  return { after };
}

function filesIn(storage: SimulatedDisk, folder: string): number {
  return [...storage.tree().keys()].filter((path) => path.startsWith(`${folder}/`)).length;
}

const plain = play([stay, stay, stay, stay]);

const FORMS: Record<string, { forms: Form[]; segments: number; pending: number }> = {
  "in the middle": { forms: [stay, seal(), stay, stay], segments: 1, pending: 0 },
  "after each part": { forms: [seal(), seal(), seal(), seal()], segments: 4, pending: 0 },
  "twice, then rotated, then extended": {
    forms: [seal(), seal(), rotateOnly, stay],
    segments: 2,
    pending: 1,
  },
  "into many segments, then rotated twice": {
    forms: [seal(SMALL_SEGMENTS), stay, rotateOnly, rotateOnly],
    segments: 3,
    pending: 2,
  },
  "from several pending files": {
    forms: [rotateOnly, rotateOnly, seal(SMALL_SEGMENTS), stay],
    segments: 13,
    pending: 0,
  },
  "in steps that stop between pending files": {
    forms: [rotateOnly, sealOldest, rotateOnly, sealOldest],
    segments: 5,
    pending: 2,
  },
};
for (const [name, { forms, segments, pending }] of Object.entries(FORMS)) {
  test(`a log sealed ${name} returns the same responses as an unsealed one`, async () => {
    const expected = (await plain).after;
    const { after } = await play(forms);
    for (const [part, { seen }] of after.entries()) {
      for (const [question, answer] of Object.entries(expected[part]!.seen)) {
        assert.deepEqual(seen[question], answer, `after part ${part + 1}: ${question}`);
      }
      assert.deepEqual(Object.keys(seen), Object.keys(expected[part]!.seen));
    }
    const { storage } = after.at(-1)!;
    assert.equal(filesIn(storage, SEGMENTS_FOLDER), segments);
    assert.equal(filesIn(storage, PENDING_FOLDER), pending);
  });
}

test("the requests sent to a sealed log cover every kind of response", async () => {
  const seen = (await plain).after.at(-1)!.seen;
  const text = JSON.stringify(seen);
  const codes = [
    ...["duplicate", "already_retired", "batch_id_conflict", "source_retired"],
    ...["source_lineage_conflict", "stream_frontier_conflict", "source_not_found"],
    "stream_anchor_unavailable",
  ];
  assert.deepEqual(codes.filter((code) => !text.includes(`"${code}"`)), []);
  assert.ok(!text.includes('"committed"'), "no request commits anything");
});
