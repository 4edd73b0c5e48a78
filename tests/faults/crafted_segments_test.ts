/**
 * Segments crafted by someone who can repair every checksum: attacks on each bound, then random
 * changes of footers and pages. Each ends in a failure code or is harmless, in bounded time and
 * memory. CRAFTED sets the number of segments, and SEED reproduces a run.
 */
import assert from "node:assert/strict";
import process from "node:process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { spawnScript } from "../../tools/support/program.ts";
import { SEED } from "../../tools/support/random.ts";
import { ATTACKS } from "./support/crafted_bombs.ts";

const READER = fileURLToPath(new URL("support/crafted_reader.ts", import.meta.url));
const COUNT = Number(process.env.CRAFTED ?? Object.keys(ATTACKS).length + 50);
/** Time for all segments, on a busy machine. */
const TIMEOUT_MS = 60_000 + 1000 * COUNT;
const PEAK_MIB_MAX = 1024;
/** Codes other than `segment_invalid` are for valid values that differ from the sealed ones. */
const OUTCOMES = ["passed", "segment_invalid", "order_invalid", "idempotency_invalid"];
OUTCOMES.push("batch_commitment_mismatch", "content_hash_mismatch", "event_hash_mismatch");
OUTCOMES.push("chain_head_mismatch");

interface Result {
  number: number;
  what: string;
  outcome?: string;
  peakMib?: number;
}

/** Reads the segments in a child process, which is killed if one never ends. */
async function results(): Promise<Result[]> {
  const wrapper = ["env", `SEED=${SEED}`];
  const options = { wrapper, permissions: ["--allow-all"], timeoutMs: TIMEOUT_MS };
  const { stdout, stderr } = await spawnScript(READER, [String(COUNT)], options).exited;
  const lines = stdout.trim().split("\n").map((line): Result => JSON.parse(line));
  const last = lines.at(-1);
  const where = `after ${JSON.stringify(last)}: ${stderr.trim()}`;
  assert.ok(last?.number === COUNT - 1 && last.outcome !== undefined, where);
  return lines.filter(({ outcome }) => outcome !== undefined);
}

test(`${COUNT} crafted segments are rejected or harmless (seed ${SEED})`, async (context) => {
  const counts: Record<string, number> = {};
  for (const { number, what, outcome, peakMib } of await results()) {
    const where = `segment ${number}, ${what}`;
    assert.ok(OUTCOMES.includes(outcome!), `${where}: ${outcome}`);
    assert.ok(peakMib! <= PEAK_MIB_MAX, `${where}: a peak of ${peakMib} MiB`);
    counts[outcome!] = (counts[outcome!] ?? 0) + 1;
    counts.peakMib = peakMib!;
  }
  context.diagnostic(JSON.stringify(counts));
});
