/** The `seal` command: output, exit status, and segments that either runtime can read. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import type { CommittedEvent } from "../../src/event/verify_event.ts";
import {
  type CliExit,
  type CliOptions,
  postJson,
  runCli,
  type Serving,
  startServe,
  withInitialized,
} from "../../tools/support/program.ts";
import { absenceOf, executableOf, type RuntimeName } from "../../tools/support/runtimes.ts";

/** Runs `seal` with minimal permissions. */
function seal(dir: string, options: CliOptions = {}): Promise<CliExit> {
  const permissions = [`--allow-read=${dir}`, `--allow-write=${dir}`];
  return runCli(["seal", "--config", join(dir, "service.toml")], { permissions, ...options });
}

const PAYLOADS = [{ a: 1, "é": [1e21, "\u2028😀"] }, "x".repeat(70_000), null];

function post(serving: Serving, batchId: string, more: object = {}): Promise<Response> {
  const events = PAYLOADS.map((payload, number) => ({
    stream: `s-${number % 2}`,
    record_key: `ключ ${number}`,
    kind: "upserted",
    ...(number === 1 && { occurred_at: "2026-01-31T12:00:00.5Z" }),
    payload,
  }));
  const batch = { source: "shop", batch_id: batchId, events, ...more };
  return postJson(serving, "/v1/events", batch);
}

const retire = (serving: Serving) => postJson(serving, "/v1/sources/retire", { source: "old" });

/** Fills a log and stops the service. @returns its responses before the stop. */
async function fill(dir: string, batchIds: string[], options: CliOptions = {}): Promise<string[]> {
  const serving = await startServe(dir, options);
  for (const batchId of batchIds) assert.equal((await post(serving, batchId)).status, 200);
  const seen = await look(serving, batchIds);
  assert.equal((await serving.stop()).code, 0);
  return seen;
}

/** Responses to all kinds of reads, and to mutations that commit nothing. */
async function look(serving: Serving, batchIds: string[]): Promise<string[]> {
  const paths = [
    "/v1/events",
    "/v1/events?limit=2",
    "/v1/events?stream=s-1",
    `/v1/events?record_key=${encodeURIComponent("ключ 2")}`,
    "/v1/streams",
  ];
  const bodies = paths.map(async (path) => await (await serving.fetch(path)).text());
  for (const batchId of batchIds) {
    bodies.push((await post(serving, batchId)).text());
    const changed = { events: [{ stream: "s", record_key: "1", kind: "k", payload: 1 }] };
    bodies.push((await post(serving, batchId, changed)).text());
  }
  return await Promise.all(bodies);
}

async function readAll({ fetch }: Serving): Promise<CommittedEvent[]> {
  const page = await (await fetch("/v1/events?limit=100000")).json();
  return page.events;
}

/** Parses the output of `seal`. */
function sealedLines(stderr: string): { path: string; events: number; head: string }[] {
  const lines = stderr.split("\n").slice(0, -1);
  const sums = lines.filter((line) => / in total; new segments: \d+$/.test(line));
  assert.ok(sums.length > 0);
  return lines.filter((line) => !sums.includes(line)).map((line) => {
    const match = /^sealed (\S+) \((\d+) events, head ([0-9a-f]{64})\)$/.exec(line);
    assert.ok(match, line);
    return { path: match[1]!, events: Number(match[2]), head: match[3]! };
  });
}

/** Computes the chain head of replayed events. */
function headOf(events: readonly CommittedEvent[]): string {
  let head = createHash("sha256").update("service/genesis/v1").digest();
  for (const { event_hash } of events) {
    head = createHash("sha256").update(head).update(Buffer.from(event_hash, "hex")).digest();
  }
  return head.toString("hex");
}

test("seal reports each segment and its chain head on standard error", () =>
  withInitialized(async (dir) => {
    await fill(dir, ["1", "2"]);
    const first = await seal(dir);
    assert.equal(first.code, 0, first.stderr);
    assert.equal(first.stdout, "");
    await fill(dir, ["3"]);
    const second = await seal(dir);
    assert.equal(second.code, 0, second.stderr);

    const serving = await startServe(dir);
    const events = await readAll(serving);
    await serving.stop();
    const [one, two, ...others] = sealedLines(first.stderr + second.stderr);
    assert.deepEqual(others, []);
    assert.deepEqual([one!.events, two!.events], [6, 3]);
    assert.deepEqual([one!.head, two!.head], [headOf(events.slice(0, 6)), headOf(events)]);
    const segments = await readdir(join(dir, "data", "log", "segments"));
    assert.deepEqual(segments.map((name) => `segments/${name}`), [one!.path, two!.path]);
    assert.deepEqual(await readdir(join(dir, "data", "log", "pending")), []);
  }));

test("seal exits 1 and changes nothing when there is nothing to seal", () =>
  withInitialized(async (dir) => {
    const empty = await seal(dir);
    assert.deepEqual([empty.code, empty.stdout], [1, ""]);
    assert.match(empty.stderr, /nothing to seal\n$/);
    await fill(dir, ["1"]);
    assert.equal((await seal(dir)).code, 0);
    const manifest = await readFile(join(dir, "data", "log", "manifest.json"), "utf8");
    const again = await seal(dir);
    assert.deepEqual([again.code, again.stdout], [1, ""]);
    assert.match(again.stderr, /nothing to seal\n$/);
    assert.equal(await readFile(join(dir, "data", "log", "manifest.json"), "utf8"), manifest);
  }));

const PAIRS: [RuntimeName, RuntimeName][] = [["deno", "node"], ["node", "deno"]];
for (const [sealer, reader] of PAIRS) {
  const absent = [sealer, reader].find((name) => executableOf(name) === null);
  const skip = absent === undefined ? false : absenceOf(absent);
  test(
    `a log sealed under ${sealer} gives the same responses under ${reader}`,
    { skip },
    () =>
      withInitialized(async (dir) => {
        const batchIds = ["1", "2", "😀"];
        await fill(dir, batchIds, { runtime: reader });
        const serving = await startServe(dir, { runtime: reader });
        assert.equal((await post(serving, "4", { source: "old" })).status, 200);
        assert.equal((await retire(serving)).status, 200);
        const retirement = await (await retire(serving)).text();
        const before = await look(serving, batchIds);
        await serving.stop();

        assert.equal((await seal(dir, { runtime: sealer })).code, 0);
        const after = await startServe(dir, { runtime: reader });
        assert.deepEqual(await look(after, batchIds), before);
        assert.equal(await (await retire(after)).text(), retirement);
        assert.equal((await post(after, "5")).status, 200);
        const both = await look(after, [...batchIds, "5"]);
        await after.stop();

        assert.equal((await seal(dir, { runtime: reader })).code, 0);
        for (const runtime of [sealer, reader]) {
          const last = await startServe(dir, { runtime });
          assert.deepEqual(await look(last, [...batchIds, "5"]), both, `read under ${runtime}`);
          await last.stop();
        }
      }),
  );
}

test("seal discards and reports an unfinished commit, and seals the rest", () =>
  withInitialized(async (dir) => {
    const serving = await startServe(dir);
    await post(serving, "1");
    await serving.stop("SIGKILL");
    await writeFile(join(dir, "data", "log", "tail.ndjson"), '{"commit":', { flag: "a" });
    const { code, stderr } = await seal(dir);
    assert.equal(code, 0, stderr);
    assert.match(stderr, /^tail\.ndjson: removed 10 bytes of an unfinished commit after event/);
    assert.equal(sealedLines(stderr.split("\n").slice(1).join("\n"))[0]!.events, 3);
  }));
