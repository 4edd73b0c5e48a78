/**
 * Merges indexes of consecutive segments or runs into the index of their run. The result depends
 * only on the segments, so that `verify` can make it again.
 */
import { mergedStreams } from "../read/stream_counts.ts";
import { sumOf } from "../../sum.ts";
import { joined, sortDistinct } from "./entries.ts";
import { NO_COVERAGE } from "./index_format.ts";
import type { IndexReader, TableName } from "./index_reader.ts";
import { type WriteBytes, writeIndex } from "./index_writer.ts";
import { KEY_HASHES } from "./key_hash.ts";

/** Entries sorted at once: 4 MiB. */
const STEP_ENTRIES = 512 * 1024;
/** With many inputs, more entries are sorted at once, so that few pages are read twice. */
const STEP_PAGE_ENTRIES = 2048;

export interface MergeInput {
  index: IndexReader;
  /** Its first segment's ordinal in the run. */
  ordinal: number;
}

/**
 * @param coverage see `Trailer`.
 * @param filterBytes see `IndexContents`.
 * @throws {IndexError} if an input is damaged.
 */
export async function mergeIndexes(
  inputs: readonly MergeInput[],
  coverage: string,
  write: WriteBytes,
  filterBytes?: number,
): Promise<void> {
  const opened = [];
  for (const { index } of inputs) opened.push(await index.open());
  await writeIndex({
    coverage,
    batches: sumOf(opened, ({ batches }) => batches),
    streams: mergedStreams(inputs.map(({ index }) => index), ""),
    identities: entriesOf(inputs, "identities", sumOf(opened, ({ identities }) => identities)),
    locations: entriesOf(inputs, "locations", sumOf(opened, ({ locations }) => locations)),
    filterBytes,
  }, write);
}

/** Yields the entries of all inputs, `count` in all, one range of hashes after another. */
async function* entriesOf(
  inputs: readonly MergeInput[],
  table: TableName,
  count: number,
): AsyncGenerator<BigUint64Array, void> {
  const stepEntries = Math.max(STEP_ENTRIES, STEP_PAGE_ENTRIES * inputs.length);
  const steps = Math.max(1, Math.ceil(count / stepEntries));
  for (let step = 0; step < steps; step++) {
    const [from, to] = [step, step + 1].map((bound) => Math.floor(bound * KEY_HASHES / steps));
    const parts = [];
    for (const input of inputs) {
      const entries = await input.index.readEntries(table, from!, to!);
      parts.push(renumbered(entries, input));
    }
    yield sortDistinct(joined(parts));
  }
}

/** Replaces the ordinals in an input by those of the segments in the run. */
function renumbered(entries: BigUint64Array, { index, ordinal }: MergeInput): BigUint64Array {
  // The ordinals of a segment are those of its row groups.
  const isSegment = index.coverage === NO_COVERAGE;
  const halves = new Uint16Array(entries.buffer, entries.byteOffset, 4 * entries.length);
  for (let at = 0; at < halves.length; at += 4) {
    halves[at] = isSegment ? ordinal : ordinal + halves[at]!;
  }
  return entries;
}
