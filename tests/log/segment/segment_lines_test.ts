import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import type { CommittedEvent } from "../../../src/event/verify_event.ts";
import { type EventFilter, lineMatcher } from "../../../src/log/line/stored_line.ts";
import { ScanMemory } from "../../../src/log/read/scan_memory.ts";
import type { LogFile } from "../../../src/log/read/snapshot.ts";
import { SEED, SeededRandom } from "../../../tools/support/random.ts";
import {
  historyOf,
  hostileBatch,
  sealCommits,
  smallBatches,
  splitLines,
} from "../../support/test_segment.ts";

function chunksOf(segment: LogFile, filter: EventFilter, after?: string) {
  return segment.lines({ after, filter, wantedBytes: () => 1, memory: new ScanMemory() });
}

async function linesOf(segment: LogFile, filter: EventFilter, after?: string) {
  const chunks: Buffer[] = [];
  for await (const chunk of chunksOf(segment, filter, after)) {
    assert.ok(chunk.length > 0);
    chunks.push(Buffer.from(chunk));
  }
  return splitLines(Buffer.concat(chunks)).map(String);
}

/** A log with a single segment. */
async function sealOne(...commits: Parameters<typeof sealCommits>[0]) {
  const sealed = await sealCommits(commits);
  const { files: [segment] } = historyOf(sealed.storage, sealed.segments);
  return { ...sealed, segment: segment!, lines: splitLines(sealed.lines) };
}

test("Segment.lines() reads only the lines for a key, and little for an absent key", async () => {
  const { segment, lines, storage } = await sealOne(smallBatches(5000));
  const all = lines.map(String);
  assert.deepEqual(await linesOf(segment, { recordKey: "key-2500" }), [all[2500]]);
  assert.deepEqual(await linesOf(segment, { recordKey: "key-4999" }), [all[4999]]);
  const before = storage.operations.length;
  for (let absent = 0; absent < 2000; absent++) {
    assert.deepEqual(await linesOf(segment, { recordKey: `absent-${absent}` }), []);
  }
  const reads = storage.operations.slice(before).filter(({ kind }) => kind === "read");
  assert.equal(reads.length, 2000, "each lookup reads one page of the index");
  const bytes = storage.contents("0.parquet").length;
  assert.ok(reads.every(({ sizeBytes }) => sizeBytes! < bytes / 40), "only the key column is read");
});

test(`Segment.lines() returns every event that matches a filter (seed ${SEED})`, async () => {
  const random = new SeededRandom();
  const hostile = Array.from(
    { length: 300 },
    (_, n) => hostileBatch(random, n, 1 + random.below(9)),
  );
  const { segment, lines } = await sealOne(hostile, smallBatches(3000));
  for (let run = 0; run < 60; run++) {
    const filter = randomFilter(random, random.pick(lines));
    const matches = lineMatcher(filter) ?? (() => true);
    const expected = lines.filter((line) => matches(line, 0)).map(String);
    const found = await linesOf(segment, filter);
    const passing = found.filter((line) => matches(Buffer.from(line), 0));
    assert.deepEqual(passing, expected, JSON.stringify(filter));
  }
});

function randomFilter(random: SeededRandom, line: Buffer): EventFilter {
  const event: CommittedEvent = JSON.parse(line.toString());
  return {
    ...(random.chance(0.3) && { source: event.source }),
    ...(random.chance(0.3) && { stream: event.stream }),
    ...(random.chance(0.6) && { recordKey: event.record_key }),
    ...(random.chance(0.3) && { kind: random.chance(0.9) ? event.kind : "none" }),
  };
}

test("Segment.lines() returns copies that callers can change without affecting later reads", async () => {
  const { segment, lines } = await sealOne(smallBatches(100));
  for (let reading = 0; reading < 2; reading++) {
    const { value: chunk } = await chunksOf(segment, {}).next();
    assert.ok(chunk!.equals(Buffer.concat(lines)));
    chunk!.fill(0);
  }
});
