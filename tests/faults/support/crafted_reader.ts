/**
 * Verifies and reads as many crafted segments as its argument says, in a process of its own. Prints
 * a line before and after each, so that the test knows which one takes too long.
 */
import { Buffer } from "node:buffer";
import { existsSync, readFileSync } from "node:fs";
import process from "node:process";
import { SegmentError, VerifyFailure } from "../../../src/log/storage/errors.ts";
import { HistoryCheck } from "../../../src/log/wal/history_check.ts";
import { verifySegment } from "../../../src/log/verify/segment_verifier.ts";
import { SEED, SeededRandom } from "../../../tools/support/random.ts";
import { CraftedSegment, PAGE } from "../../support/crafted_segment.ts";
import { fileFacts, type ForgedSegment, forgeSegment } from "../../support/forged_segment.ts";
import { SimulatedDisk } from "../../support/simulated_disk.ts";
import { I32, setField } from "../../support/thrift_tree.ts";
import {
  hostileBatch,
  openSegment,
  pendingFile,
  readRowGroup,
  splitLines,
} from "../../support/test_segment.ts";
import { changeBytes } from "./almost_json.ts";
import { ATTACKS } from "./crafted_bombs.ts";

const STATUS = "/proc/self/status";

/** Distance between the seeds of two segments, so that runs with adjacent seeds differ. */
const SEED_STEP = 1_000_003;
/** Bytes that often are a limit, in Thrift's and in Snappy's encoding. */
const BYTES = [0, 1, 2, 3, 0x7f, 0x80, 0xfc, 0xff].map((byte) => [byte]);
/** Events in the first row group; the attacks know it. */
const FIRST_EVENTS = 40;

/** A segment with two row groups, dictionaries and absent values. */
async function original(): Promise<ForgedSegment> {
  const random = new SeededRandom(1);
  const batches = Array.from({ length: 20 }, (_, n) => hostileBatch(random, n, 4));
  const { lines, entries } = await pendingFile([batches]);
  const owners = entries.flatMap((entry) => Array(entry.events).fill(entry));
  const rows = splitLines(lines).map((line, n) => ({ line, entry: owners[n] }));
  return await forgeSegment({ groups: [rows.slice(0, FIRST_EVENTS), rows.slice(FIRST_EVENTS)] });
}

/** Everything in a segment, read as replays and key lookups do; null if it can't be read. */
async function read(storage: SimulatedDisk): Promise<string | null> {
  try {
    const segment = openSegment(storage, "0.parquet");
    try {
      const lines: Buffer[] = [];
      for (const number of (await segment.rowGroups()).keys()) {
        lines.push(await readRowGroup(segment, number));
        lines.push(await segment.readLines(number, "k"));
      }
      return Buffer.concat(lines).toString();
    } finally {
      await segment.close();
    }
  } catch (error) {
    if (error instanceof SegmentError) return null;
    throw error;
  }
}

/** The failure code, or "passed". */
async function verify(
  storage: SimulatedDisk,
  entry: ForgedSegment["entry"],
  options: { chain: boolean },
): Promise<string> {
  const repaired = { ...entry, ...fileFacts(storage) };
  try {
    await verifySegment(storage, repaired, new HistoryCheck(options));
    return "passed";
  } catch (error) {
    if (error instanceof VerifyFailure) return error.code;
    throw error;
  }
}

/** The changes of one segment: each attack once, then bytes of the footer or of a page. */
function change(segment: CraftedSegment, number: number): string {
  const [name, attack] = Object.entries(ATTACKS)[number] ?? [];
  attack?.(segment);
  if (name !== undefined) return name;
  const random = new SeededRandom(SEED + number * SEED_STEP);
  if (random.chance(0.5)) {
    segment.changeFooter = (footer) => changeBytes(random, footer, BYTES);
    return "bytes of the footer";
  }
  const page = random.pick(random.pick(segment.chunks).pages);
  page.body = changeBytes(random, page.body, BYTES);
  setField(page.header, PAGE.bytes, I32, BigInt(page.body.length));
  return "bytes of a page";
}

const count = Number(process.argv[2]);
const { storage: whole, entry } = await original();
const expected = await read(whole);
for (let number = 0; number < count; number++) {
  const segment = new CraftedSegment(whole.contents("0.parquet"));
  const what = change(segment, number);
  const storage = new SimulatedDisk(new Map([["0.parquet", segment.build()]]));
  process.stdout.write(`${JSON.stringify({ number, what })}\n`);
  let outcome;
  try {
    outcome = await verify(storage, entry, { chain: true });
    await verify(storage, entry, { chain: false });
    const found = await read(storage);
    if (outcome === "passed" && found !== expected) outcome = "passed, but reads otherwise";
  } catch (error) {
    outcome = `crashed: ${(error as Error).stack}`;
  }
  const peakMib = Math.round(peakKib() / 1024);
  process.stdout.write(`${JSON.stringify({ number, what, outcome, peakMib })}\n`);
}

/** The peak of this process. Its `maxRSS` includes that of its parent before exec(2). */
function peakKib(): number {
  if (!existsSync(STATUS)) return process.resourceUsage().maxRSS;
  return Number(/^VmHWM:\s*(\d+) kB$/m.exec(readFileSync(STATUS, "utf8"))?.[1]);
}
