/** `restore`: the log built from a stream is identical to the one that was pushed. */
import assert from "node:assert/strict";
import { cp, mkdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import process from "node:process";
import { canonicalize } from "../../src/event/json/canonical_json.ts";
import { sha256Hex } from "../../src/event/hash.ts";
import { fileStorage } from "../../src/log/storage/file_storage.ts";
import { allEvents } from "../../tests/contract/support/api.ts";
import type { Deployment } from "../../tests/support/deployment.ts";
import { MixedHistory } from "../../tests/support/mixed_history.ts";
import { observe } from "../../tests/support/observation.ts";
import { openTestService } from "../../tests/support/test_service.ts";
import { randomInteger, seededRandom, testSeed } from "../../tools/support/random.ts";
import { isRunning, signalChild, untilReported } from "../../tools/support/program.ts";
import { jetstreamManager } from "@nats-io/jetstream";
import { AFTER, EXPECTED_LAST_MESSAGE_ID } from "../nats/stream.ts";
import { copyStream } from "./support/copied_stream.ts";
import {
  appendPayloads,
  end,
  headIn,
  type Mirrored,
  pushAll,
  refusalOf,
  runMirror,
  startMirror,
  startPush,
  testWithNats,
  withRestored,
} from "./support/mirrored.ts";
import { pause, STREAM } from "./support/nats_stream.ts";

const seed = testSeed();
/** Number of events in the log whose restore is killed. */
const KILLED_EVENTS = Number(process.env.MIRROR_TEST_EVENTS ?? 20_000);
const KILLS = 6;

/** Returns the arguments for restoring into a directory next to the deployment. */
function restoring({ served, nats }: Mirrored, ...more: string[]): string[] {
  return ["restore", "--nats", nats.url, ...more, copyOf(served)];
}

function copyOf({ folder }: Deployment): string {
  return join(folder, "copy");
}

/** Observes a log while its service is stopped. */
async function observed({ logDir }: Deployment, history: MixedHistory) {
  const { service } = await openTestService(fileStorage(logDir));
  const seen = await observe(service, history);
  await service.close();
  return seen;
}

/** Seals a log. @returns its chain head. */
async function sealedHead(deployment: Deployment): Promise<string> {
  const { code, stderr } = await deployment.run(["seal"]);
  assert.equal(code, 0, stderr);
  return headIn(stderr);
}

testWithNats(
  "restore builds a log that answers every request like the original",
  async (mirrored) => {
    const { served } = mirrored;
    const history = new MixedHistory();
    await served.stop();
    const { service } = await openTestService(fileStorage(served.logDir));
    for (const part of history.parts) await part(service);
    await service.close();
    await served.start();
    await pushAll(mirrored);
    await served.stop();
    const head = await sealedHead(served);
    await runMirror(restoring(mirrored, "--head", head));
    await withRestored(served.folder, copyOf(served), async (copy) => {
      assert.deepEqual(await observed(copy, history), await observed(served, history));
      await copy.verify();
      assert.equal(await sealedHead(copy), head);
    });
  },
);

testWithNats("restore --head fails unless the log reaches the chain head", async (mirrored) => {
  const { served } = mirrored;
  await appendPayloads(mirrored, "b1", [1, 2]);
  await pushAll(mirrored);
  await served.stop();
  const head = await sealedHead(served);
  await served.start();
  await appendPayloads(mirrored, "b2", [3]);
  await pushAll(mirrored);
  const other = head.replace(/^./, (digit) => digit === "0" ? "1" : "0");
  for (const run of ["first", "second"]) {
    assert.match(
      await refusalOf(restoring(mirrored, "--head", other)),
      new RegExp(`chain head ${other} was not reached: the log ends with event`),
      run,
    );
  }
  const { stderr } = await runMirror(restoring(mirrored, "--head", head));
  assert.match(stderr, /^the log ends with event \S+, head [0-9a-f]{64}\n$/);
});

testWithNats(`restore resumes after kills (SEED=${seed})`, async (mirrored) => {
  const random = seededRandom(seed);
  const { served } = mirrored;
  for (let events = 0; events < KILLED_EVENTS; events += 1000) {
    await appendPayloads(mirrored, `b${events}`, Array.from({ length: 1000 }, (_, n) => n));
  }
  await pushAll(mirrored);
  const tail = join(copyOf(served), "data", "log", "tail.ndjson");
  const sizeOf = () => stat(tail).then(({ size }) => size, () => 0);
  const wholeBytes = await stat(join(served.logDir, "tail.ndjson")).then(({ size }) => size);
  for (let kill = 0; kill < KILLS; kill++) {
    const running = startMirror(restoring(mirrored));
    const atBytes = await sizeOf() + randomInteger(random, 0, 2 * wholeBytes / KILLS);
    while (await sizeOf() < atBytes && isRunning(running)) await pause();
    signalChild(running.child, "SIGKILL");
    await running.exited;
  }
  await runMirror(restoring(mirrored));
  await withRestored(served.folder, copyOf(served), async (copy) => {
    await copy.start();
    assert.deepEqual(await allEvents(copy.socketPath), await allEvents(served.socketPath));
    await copy.stop();
    assert.equal((await copy.verify()).events_checked, KILLED_EVENTS);
  });
});

testWithNats("restore names the server and exits 1 when interrupted", async (mirrored) => {
  const { served, nats } = mirrored;
  await nats.stop();
  const running = startMirror(restoring(mirrored, "--head", "0".repeat(64)));
  await untilReported(running, `interrupted: ${nats.url}: `);
  assert.equal(await end(running, "SIGINT"), 1);
  assert.match(running.output.stderr, /interrupted; run the same command again\n$/);
  assert.ok((await stat(join(copyOf(served), "service.toml"))).isFile());
});

testWithNats("restore keeps an existing configuration", async (mirrored) => {
  const { served } = mirrored;
  await appendPayloads(mirrored, "b1", ["a"]);
  await pushAll(mirrored);
  const config = join(copyOf(served), "service.toml");
  const text = (await readFile(join(served.dir, "service.toml"), "utf8"))
    .replace('token = ""', 'token = "secret"');
  await mkdir(copyOf(served));
  await writeFile(config, text);
  await runMirror(restoring(mirrored));
  assert.equal(await readFile(config, "utf8"), text);
  await withRestored(served.folder, copyOf(served), async (copy) => {
    assert.equal((await copy.verify()).events_checked, 1);
  });
});

testWithNats("restore refuses altered and missing messages", async (mirrored) => {
  const { nats } = mirrored;
  const { last_event_id } = await appendPayloads(mirrored, "b1", ["a", "b", "c"]);
  await pushAll(mirrored);
  await copyStream(nats, "altered", ({ headers, data }) => {
    return { headers, data: data.replace('"payload":"b"', '"payload":"d"') };
  });
  const altered = await refusalOf(restoring(mirrored, "--stream", "altered"));
  assert.match(altered, /^event \S+ in the stream was altered: its hashes do not match/m);
  await copyStream(nats, "missing", ({ headers, data }, seq) => {
    if (seq === 2) return null;
    // Otherwise the server would reject the message.
    if (seq === 3) headers.set(AFTER, headers.get(EXPECTED_LAST_MESSAGE_ID) || headers.get(AFTER));
    headers.delete(EXPECTED_LAST_MESSAGE_ID);
    return { headers, data };
  });
  const missing = await refusalOf(restoring(mirrored, "--stream", "missing"));
  assert.match(missing, new RegExp(`^event ${last_event_id} in the stream follows event`, "m"));
});

const LIMITS = [{ limit: 4096, config: "max_payload: 4096" }, { limit: 2 ** 20, config: "" }];
for (const { limit, config } of LIMITS) {
  testWithNats(`an event over ${limit} bytes comes back byte for byte`, async (mirrored) => {
    const { served, nats } = mirrored;
    await appendPayloads(mirrored, "b1", [1, "x".repeat(limit)]);
    await appendPayloads(mirrored, "b2", ["y".repeat(3e6), "é".repeat(20_000), 4]);
    const { stderr } = await startPush(mirrored, nats.url, ["--once"]).exited;
    assert.match(
      stderr,
      new RegExp(`^the server accepts messages of ${limit} bytes; larger events are split$`, "m"),
    );
    await appendPayloads(mirrored, "b3", ["z".repeat(limit + 1000)]);
    await pushAll(mirrored);
    await runMirror(restoring(mirrored));
    await withRestored(served.folder, copyOf(served), async (copy) => {
      await copy.start();
      assert.deepEqual(await allEvents(copy.socketPath), await allEvents(served.socketPath));
      await copy.stop();
      await served.stop();
      assert.equal(await sealedHead(copy), await sealedHead(served));
    });
    const { streams } = await jetstreamManager(await nats.connect());
    await streams.purge(`${STREAM}-mirror`, { filter: `${STREAM}-mirror.part.>`, keep: 1 });
    const running = startMirror(["standby", "--nats", nats.url, join(served.folder, "late")]);
    await untilReported(running, "of a message is missing; reconnecting");
    await end(running, "SIGKILL");
  }, { config });
}

testWithNats("restore reports a message that the stream has lost", async (mirrored) => {
  const { last_event_id } = await appendPayloads(mirrored, "b1", ["a", "b", "c"]);
  await pushAll(mirrored);
  const { streams } = await jetstreamManager(await mirrored.nats.connect());
  await streams.deleteMessage(STREAM, 2);
  const told = await refusalOf(restoring(mirrored));
  assert.match(told, new RegExp(`^event ${last_event_id} .*events in between are missing`, "m"));
  assert.doesNotMatch(told, /reconnecting/);
});

testWithNats(
  "restore and standby report a stream that its pusher left behind",
  async (mirrored) => {
    const { served, nats } = mirrored;
    const { last_event_id: stored } = await appendPayloads(mirrored, "b1", [1, 2]);
    await pushAll(mirrored);
    await nats.stop("SIGTERM");
    const stream = join(nats.storeDir, "jetstream", "$G", "streams", STREAM);
    const copy = join(served.folder, "stream");
    await cp(stream, copy, { recursive: true });
    await nats.start();
    const { last_event_id: read } = await appendPayloads(mirrored, "b2", [3]);
    await pushAll(mirrored);
    // The stream loses its end; its companion keeps what the pusher said.
    await nats.stop("SIGTERM");
    await rm(stream, { recursive: true });
    await rename(copy, stream);
    await nats.start();
    const incomplete = new RegExp(
      `^the stream is incomplete: it ends with event ${stored}, .* through event ${read};`,
      "m",
    );
    const standby = startMirror(["standby", "--nats", nats.url, join(served.folder, "standby")]);
    assert.match(await refusalOf(restoring(mirrored)), incomplete);
    await untilReported(standby, "the stream is incomplete");
    assert.match(standby.output.stderr, incomplete);
    await end(standby, "SIGKILL");
  },
);

testWithNats("restore refuses an event that no request can have appended", async (mirrored) => {
  await appendPayloads(mirrored, "b1", ["a"]);
  await pushAll(mirrored);
  await copyStream(mirrored.nats, "forged", ({ headers, data }) => {
    const { payload: _, event_hash: __, ...envelope } = JSON.parse(data);
    const [before, forged] = [envelope.content_hash, sha256Hex('{"a": 1}')];
    const hash = sha256Hex(canonicalize({ ...envelope, content_hash: forged }));
    const line = data.replace('"payload":"a"', '"payload":{"a": 1}').replace(before, forged);
    return { headers, data: line.replace(/(?<="event_hash":")\w+/, hash) };
  });
  const told = await refusalOf(restoring(mirrored, "--stream", "forged"));
  assert.match(
    told,
    /^event \S+ in the stream breaks a rule of ingest: its payload is not canoni/m,
  );
});

testWithNats("restore omits an incomplete batch at the end of the stream", async (mirrored) => {
  const { served, nats } = mirrored;
  const { last_event_id } = await appendPayloads(mirrored, "b1", [1, 2]);
  await appendPayloads(mirrored, "b2", [3, 4, 5]);
  await pushAll(mirrored);
  await copyStream(nats, "cut", (message, seq) => seq === 5 ? null : message);
  const cut = restoring(mirrored, "--stream", "cut");
  const { stderr } = await runMirror(cut);
  assert.match(stderr, /^the stream ends within a batch: the last 2 events were not restored$/m);
  assert.match(stderr, new RegExp(`^the log ends with event ${last_event_id}`, "m"));
  await withRestored(served.folder, copyOf(served), async (copy) => {
    await copy.start();
    const promoted = { nats, served: copy };
    const push = ["push", "--socket", copy.socketPath, "--nats", nats.url, "--stream", "cut"];
    assert.equal((await appendPayloads(promoted, "b2", [3, 4, 5])).status, "committed");
    await runMirror([...push, "--once"]);
    await appendPayloads(promoted, "b3", [6]);
    await runMirror([...push, "--once"]);
    const again = join(served.folder, "again");
    await runMirror(["restore", "--nats", nats.url, "--stream", "cut", again]);
    await withRestored(served.folder, again, async (restored) => {
      await restored.start();
      assert.deepEqual(await allEvents(restored.socketPath), await allEvents(copy.socketPath));
      assert.equal((await allEvents(copy.socketPath)).length, 6);
    });
  });
});
