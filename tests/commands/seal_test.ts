/** The `seal` command: output, exit status, and segments that either runtime can read. */
import assert from "node:assert/strict";
import { appendFile, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import type { SegmentEntry } from "../../src/log/segment/manifest.ts";
import type { CliExit, CliOptions } from "../../tools/support/program.ts";
import { absenceOf, executableOf, type RuntimeName } from "../../tools/support/runtimes.ts";
import { event, postRetirement } from "../contract/support/api.ts";
import { type Deployment, withDeployment, withServing } from "../support/deployment.ts";

/** Runs `seal` with minimal permissions. */
function seal(deployment: Deployment, options: CliOptions = {}): Promise<CliExit> {
  const { dir } = deployment;
  const permissions = [`--allow-read=${dir}`, `--allow-write=${dir}`];
  return deployment.run(["seal"], { permissions, ...options });
}

const PAYLOADS = [{ a: 1, "é": [1e21, "\u2028😀"] }, "x".repeat(70_000), null];
const EVENTS = PAYLOADS.map((payload, number) =>
  event({
    stream: `s-${number % 2}`,
    record_key: `ключ ${number}`,
    ...(number === 1 && { occurred_at: "2026-01-31T12:00:00.5Z" }),
    payload,
  })
);

/** Ingests batches, which must be accepted. */
async function append(deployment: Deployment, batchIds: string[], more = {}): Promise<void> {
  for (const batchId of batchIds) {
    const reply = await deployment.ingest(batchId, { events: EVENTS, ...more });
    assert.equal(reply.status, 200, reply.text());
  }
}

const retire = ({ socketPath }: Deployment) => postRetirement(socketPath, { source: "old" });

/** Responses to all kinds of reads, and to mutations that commit nothing. */
async function look(deployment: Deployment, batchIds: string[]): Promise<string[]> {
  const paths = [
    "/v1/events",
    "/v1/events?limit=2",
    "/v1/events?stream=s-1",
    `/v1/events?record_key=${encodeURIComponent("ключ 2")}`,
    "/v1/streams",
  ];
  const { fetch } = deployment.serving;
  const bodies = paths.map(async (path) => await (await fetch(path)).text());
  for (const batchId of batchIds) {
    for (const events of [EVENTS, [event()]]) {
      bodies.push(deployment.ingest(batchId, { events }).then((reply) => reply.text()));
    }
  }
  return await Promise.all(bodies);
}

/** Parses the output of `seal`. */
function sealedLines(stderr: string): Pick<SegmentEntry, "path" | "events" | "head">[] {
  const lines = stderr.split("\n").slice(0, -1);
  const sums = lines.filter((line) => / in total; new segments: \d+$/.test(line));
  assert.ok(sums.length > 0);
  return lines.filter((line) => !sums.includes(line)).map((line) => {
    const match = /^sealed (\S+) \((\d+) events, head ([0-9a-f]{64})\)$/.exec(line);
    assert.ok(match, line);
    return { path: match[1]!, events: Number(match[2]), head: match[3]! };
  });
}

test("seal reports each segment and its chain head on standard error", () =>
  withDeployment(async (deployment) => {
    let told = "";
    for (const batchIds of [["1", "2"], ["3"]]) {
      await deployment.start();
      await append(deployment, batchIds);
      await deployment.stop();
      const { code, stdout, stderr } = await seal(deployment);
      assert.deepEqual([code, stdout], [0, ""], stderr);
      told += stderr;
    }
    const { logDir } = deployment;
    const { segments } = JSON.parse(await readFile(join(logDir, "manifest.json"), "utf8"));
    const sealed = sealedLines(told);
    assert.deepEqual(sealed.map(({ events }) => events), [6, 3]);
    assert.deepEqual(
      sealed,
      segments.map(({ path, events, head }: SegmentEntry) => {
        return { path, events, head };
      }),
    );
    assert.equal((await readdir(join(logDir, "segments"))).length, 2);
    assert.deepEqual(await readdir(join(logDir, "pending")), []);
    const { stderr } = await deployment.run(["verify", "--chain"]);
    assert.ok(stderr.endsWith(` chain head ${sealed[1]!.head}\n`), stderr);
  }));

test("seal exits 1 and changes nothing when there is nothing to seal", () =>
  withDeployment(async (deployment) => {
    const assertRefused = async () => {
      const { code, stdout, stderr } = await seal(deployment);
      assert.deepEqual([code, stdout], [1, ""]);
      assert.match(stderr, /nothing to seal\n$/);
    };
    await assertRefused();
    await deployment.start();
    await deployment.append("1");
    await deployment.seal();
    const manifest = await readFile(join(deployment.logDir, "manifest.json"), "utf8");
    await assertRefused();
    assert.equal(await readFile(join(deployment.logDir, "manifest.json"), "utf8"), manifest);
  }));

const PAIRS: [RuntimeName, RuntimeName][] = [["deno", "node"], ["node", "deno"]];
for (const [sealer, reader] of PAIRS) {
  const absent = [sealer, reader].find((name) => executableOf(name) === null);
  const skip = absent === undefined ? false : absenceOf(absent);
  test(
    `a log sealed under ${sealer} gives the same responses under ${reader}`,
    { skip },
    () =>
      withDeployment(async (deployment) => {
        const batchIds = ["1", "2", "😀"];
        await deployment.start({ runtime: reader });
        await append(deployment, batchIds);
        await append(deployment, ["4"], { source: "old" });
        assert.equal((await retire(deployment)).status, 200);
        const retirement = (await retire(deployment)).text();
        const before = await look(deployment, batchIds);
        await deployment.stop();

        assert.equal((await seal(deployment, { runtime: sealer })).code, 0);
        await deployment.start({ runtime: reader });
        assert.deepEqual(await look(deployment, batchIds), before);
        assert.equal((await retire(deployment)).text(), retirement);
        await deployment.stop();
      }),
  );
}

test("seal discards and reports an unfinished commit, and seals the rest", () =>
  withServing(async (deployment) => {
    await append(deployment, ["1"]);
    await deployment.stop("SIGKILL");
    await appendFile(join(deployment.logDir, "tail.ndjson"), '{"commit":');
    const { code, stderr } = await seal(deployment);
    assert.equal(code, 0, stderr);
    assert.match(stderr, /^tail\.ndjson: removed 10 bytes of an unfinished commit after event/);
    assert.equal(sealedLines(stderr.split("\n").slice(1).join("\n"))[0]!.events, 3);
  }));
