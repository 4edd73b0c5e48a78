/**
 * Flips bits in the files of a running service, with cold and warm caches, and during sealing. Each
 * response must then equal the one from the unaltered log, or fail visibly: a 500, a broken
 * connection, or a follow that ends with `replay_failed`. Each failure is reported with its file
 * and offset. Requests that need no altered byte succeed, and so do appends.
 *
 * SEED reproduces a run, and FLIPS sets the number of flipped bits.
 */
import assert from "node:assert/strict";
import process from "node:process";
import { test } from "node:test";
import { createHandler } from "../../src/api/handler.ts";
import type { CommittedEvent } from "../../src/event/verify_event.ts";
import { TAIL_FILE } from "../../src/log/storage/file_names.ts";
import { openEventLog } from "../../src/service/event_log.ts";
import {
  type Random,
  randomInteger,
  randomItem,
  seededRandom,
  testSeed,
} from "../../tools/support/random.ts";
import { SealingSteps, untilQuiet } from "../support/sealing_steps.ts";
import { SimulatedDisk } from "../support/simulated_disk.ts";
import { submittedEvent } from "../support/submitted.ts";
import { testTime } from "../support/test_log.ts";
import { buildAlteredLog, placesOf } from "./support/altered_log.ts";
import {
  type AlteredRequest,
  ask,
  type FileEvents,
  isFollow,
  type Reply,
  requestsOf,
} from "./support/altered_requests.ts";

const SEED = testSeed();
const FLIPS = Number(process.env.FLIPS ?? 30);
const LOG = await buildAlteredLog();
const PLACES = await placesOf(LOG.tree);
const KINDS = [...PLACES.keys()];

type Served = Awaited<ReturnType<typeof serve>>;

async function serve(storage: SimulatedDisk, steps?: SealingSteps) {
  const reports: string[] = [];
  const report = (line: string) => void reports.push(line);
  const sealing = steps === undefined ? {} : { sealing: steps.on()(storage) };
  const service = await openEventLog({ storage, ...testTime(), report, ...sealing });
  const replay = { defaultLimit: 100_000, maxLimit: 100_000 };
  const options = { log: service, token: "", replay, report };
  return { service, handler: createHandler(options), reports };
}

/** The unaltered log. */
const RIGHT = await serve(new SimulatedDisk(LOG.tree));
const FILES = await fileEvents();
const FRONTIER = FILES.at(-1)!.events.at(-1)!.event_id;
const rightReplies = new Map<string, Reply>();

async function rightReply(request: AlteredRequest): Promise<Reply> {
  const key = JSON.stringify(request);
  const known = rightReplies.get(key);
  if (known !== undefined) return known;
  const reply = await ask(RIGHT.handler, request);
  assert.ok(!reply.isBroken && [200, 404, 409].includes(reply.status), reply.text);
  rightReplies.set(key, reply);
  return reply;
}

/** The events in each file, from oldest to newest. */
async function fileEvents(): Promise<FileEvents[]> {
  const { text } = await ask(RIGHT.handler, { target: "/v1/events" });
  const events: CommittedEvent[] = JSON.parse(text).events;
  const names = [...LOG.tree.keys()].filter((path) => /^(segments|pending)\//.test(path));
  const lastOf = (path: string) => path.split("/")[1]!.split("_")[1]!.slice(0, 36);
  let from = "";
  return [...names.sort((a, b) => lastOf(a) < lastOf(b) ? -1 : 1), TAIL_FILE].map((path) => {
    const last = path === TAIL_FILE ? events.at(-1)!.event_id : lastOf(path);
    const own = events.filter(({ event_id }) => from < event_id && event_id <= last);
    from = last;
    return { path, events: own };
  });
}

/** A flipped bit. */
interface Flip {
  kind: string;
  path: string;
  byte: number;
  bit: number;
}

function randomFlip(random: Random): Flip {
  const kind = randomItem(random, KINDS);
  const { path, start, end } = randomItem(random, PLACES.get(kind)!);
  // Half of the flips in a filter clear a set bit, which hides a key. Most bits are not set.
  const isCleared = isFilter(kind) && random() < 0.5;
  for (;;) {
    const byte = randomInteger(random, start, end - 1);
    const bit = randomInteger(random, 0, 7);
    if (!isCleared || (LOG.tree.get(path)![byte]! >> bit & 1) === 1) {
      return { kind, path, byte, bit };
    }
  }
}

const isFilter = (kind: string) => kind.endsWith("filter");

/** Why a reply is wrong; null if it equals the correct reply or fails visibly. */
function fault(request: AlteredRequest, reply: Reply, right: Reply): string | null {
  if (!reply.isBroken && reply.status === right.status && reply.text === right.text) return null;
  if (reply.status === 500) {
    return reply.text.includes('"internal_error"') ? null : "a 500 without internal_error";
  }
  const { text } = reply;
  const end = '{"type":"end","reason":"replay_failed"';
  const endStart = isFollow(request) ? text.indexOf(end) : text.length;
  if (endStart < 0 || (!isFollow(request) && !reply.isBroken)) return "a complete response differs";
  const served = text.slice(0, endStart);
  return right.text.startsWith(served) && served !== right.text ? null : "altered bytes are served";
}

/** Asserts that a failure is reported on one line, with its file and offset. */
function assertReported(lines: readonly string[], { path }: Flip, what: string): void {
  const failures = lines.filter((line) => !/lookups read the rows|not sealed/.test(line));
  assert.equal(failures.length, 1, `${what}: reported ${JSON.stringify(lines)}`);
  const [line] = failures as [string];
  assert.ok(line.includes(path) && /\bbytes? \[?\d+/.test(line), `${what}: reported ${line}`);
}

/** Sends requests to a log with a flipped bit and checks the replies. @returns failed requests. */
async function judge(
  { handler, reports }: Served,
  requests: readonly AlteredRequest[],
  flip: Flip,
): Promise<number> {
  let failed = 0;
  for (const request of requests) {
    const what = `${JSON.stringify(flip)}, ${JSON.stringify(request).slice(0, 200)}`;
    const right = await rightReply(request);
    const before = reports.length;
    const reply = await ask(handler, request);
    assert.equal(fault(request, reply, right), null, what);
    if (reply.text === right.text) continue;
    failed += 1;
    if (request.file !== undefined) assert.equal(request.file, flip.path, `${what}: not served`);
    assertReported(reports.slice(before), flip, what);
    if (!isFollow(request)) continue;
    const { detail } = JSON.parse(reply.text.trimEnd().split("\n").at(-1)!);
    assert.ok(detail.includes(flip.path), `${what}: detail ${detail}`);
  }
  return failed;
}

/** Appends two batches. They may fail only if damage to a segment hides whether they are new. */
async function judgeIngest(served: Served, flip: Flip): Promise<void> {
  const last = FILES[0]!.events.findLast(({ source }) => source === "heir")!;
  const event = submittedEvent(last.stream);
  const expected = { stream: last.stream, expected_frontier: last.event_id };
  const batches = [
    { source: "new", batch_id: "new", events: [event] },
    { source: "heir", batch_id: "new", events: [event], stream_precondition: expected },
  ];
  const committed: string[] = [];
  for (const batch of batches) {
    for (const status of ["committed", "duplicate"]) {
      const before = served.reports.length;
      const body = JSON.stringify(batch);
      const reply = await ask(served.handler, { target: "/v1/events", body });
      const what = `${JSON.stringify(flip)}, ${status} ${batch.source}: ${reply.text}`;
      if (reply.status === 500) {
        assert.ok(flip.path.startsWith("segments/"), what);
        assertReported(served.reports.slice(before), flip, what);
        break;
      }
      assert.ok(reply.status === 200 && reply.text.includes(`"${status}"`), what);
      if (status === "committed") committed.push(JSON.parse(reply.text).last_event_id);
    }
  }
  const before = served.reports.length;
  const { status, text } = await ask(served.handler, { target: `/v1/events?after=${FRONTIER}` });
  // The damaged block at the end of the tail may also contain the new events.
  if (status === 500 && flip.path === TAIL_FILE) {
    return assertReported(served.reports.slice(before), flip, text);
  }
  const { events } = JSON.parse(text) as { events: CommittedEvent[] };
  assert.deepEqual(events.map(({ event_id }) => event_id), committed);
}

/** Flips a bit while the log is being served. @returns the number of failed requests. */
async function run(random: Random, flip: Flip): Promise<number> {
  const storage = new SimulatedDisk(LOG.tree);
  const isWarm = random() < 0.4;
  const isSealing = random() < 0.25;
  const sealing = Promise.withResolvers<void>();
  const steps = new SealingSteps({ rotateBytes: isSealing ? 1 : Infinity });
  steps.beforeMake = () => sealing.promise;
  const served = await serve(storage, isSealing ? steps : undefined);
  const requests = requestsOf(random, LOG, FILES, isFilter(flip.kind));
  if (isWarm) { for (const request of requests) await ask(served.handler, request); }
  assert.equal(served.reports.length, 0);
  storage.flipBit(flip.path, 8 * flip.byte + flip.bit);
  const half = isSealing ? requests.length >> 1 : requests.length;
  let failed = await judge(served, requests.slice(0, half), flip);
  if (isSealing) {
    sealing.resolve();
    failed += await judge(served, requests.slice(half), flip);
    await untilQuiet(storage);
    failed += await judge(served, requests, flip);
  }
  await judgeIngest(served, flip);
  await served.service.close();
  const indexReports = served.reports.filter((line) => line.includes("lookups read the rows"));
  assert.ok(indexReports.length <= 1, JSON.stringify([flip, indexReports]));
  return failed;
}

test(`${FLIPS} bits flip, and no altered byte is served (SEED=${SEED})`, async (context) => {
  const random = seededRandom(SEED);
  const counts: Record<string, number> = {};
  for (let number = 0; number < FLIPS; number++) {
    const flip = randomFlip(random);
    const failed = await run(random, flip);
    const outcome = `${flip.kind}: ${failed > 0 ? "some requests fail" : "no request fails"}`;
    counts[outcome] = (counts[outcome] ?? 0) + 1;
    // These files are not cached, and replays read them completely.
    if (/^(pending|tail)/.test(flip.kind)) assert.ok(failed > 0, JSON.stringify(flip));
  }
  context.diagnostic(JSON.stringify(counts));
});
