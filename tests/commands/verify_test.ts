/** The `verify` command: output, exit status and permissions. */
import assert from "node:assert/strict";
import { chmod, mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { GENESIS_HEAD_HEX } from "../../src/event/chain.ts";
import { flipBit } from "../support/corrupt.ts";
import type { CliExit } from "../../tools/support/program.ts";
import { event } from "../contract/support/api.ts";
import { type Deployment, withDeployment } from "../support/deployment.ts";
import { treeOf } from "../support/file_tree.ts";
import { manifestOf, withManifest } from "../support/forged_log.ts";
import type { Tree } from "../support/simulated_disk.ts";
import { fullLog, logOf } from "../support/verifying.ts";

/** Runs `use` with a deployment whose log consists of these files. */
function withLog(tree: Tree, use: (deployment: Deployment) => Promise<void>): Promise<void> {
  return withDeployment(async (deployment) => {
    const { logDir } = deployment;
    for (const folder of ["pending", "segments"]) {
      if (tree.has(folder)) await mkdir(join(logDir, folder));
    }
    for (const [path, bytes] of tree) {
      if (bytes !== null) await writeFile(join(logDir, path), bytes);
    }
    await use(deployment);
  });
}

/** Runs `verify` with minimal permissions, which exclude writes. */
function verify(deployment: Deployment, args: string[] = []): Promise<CliExit> {
  return deployment.run(["verify", ...args], { permissions: [`--allow-read=${deployment.dir}`] });
}

test("verify exits 0 with one JSON document, and changes nothing", () =>
  withDeployment(async (deployment) => {
    const report = '"segments_checked":0,"pending_checked":0,"events_checked":0,"orphans":[],' +
      '"remnants":[],"failure":null}\n';
    const { code, stdout, stderr } = await verify(deployment);
    const end = `verified an empty log, chain head ${GENESIS_HEAD_HEX}\n`;
    assert.deepEqual([code, stderr], [0, end]);
    assert.equal(stdout, `{"ok":true,"chain_checked":false,${report}`);
    const chained = await verify(deployment, ["--chain"]);
    assert.deepEqual([chained.code, chained.stderr], [0, end]);
    assert.equal(chained.stdout, `{"ok":true,"chain_checked":true,${report}`);
    assert.deepEqual(await readdir(deployment.logDir), []);
  }));

test("verify exits 3 with its report on standard output and the damaged file on standard error", async () => {
  const tree = await fullLog();
  const [first, , third] = manifestOf(tree).segments;
  const damaged = [first!.path, third!.path, "tail.ndjson"];
  for (const path of damaged) tree.set(path, flipBit(tree.get(path)!, 1000));
  await withLog(tree, async (deployment) => {
    const before = await treeOf(deployment.logDir);
    const { code, stdout, stderr } = await verify(deployment);
    assert.equal(code, 3);
    assert.match(stdout, /^[^\n]+\n$/);
    assert.deepEqual(JSON.parse(stdout), {
      ok: false,
      chain_checked: false,
      segments_checked: 1,
      pending_checked: 0,
      events_checked: 0,
      orphans: [],
      remnants: [],
      failure: "file_hash_mismatch",
    });
    const { logDir } = deployment;
    const details = "SHA-256 of the file: expected [0-9a-f]{64}, found [0-9a-f]{64}";
    const lines = [
      `file_hash_mismatch: ${logDir}/${first!.path}: ${details}`,
      `file_hash_mismatch: ${logDir}/${third!.path}: ${details}`,
      `tail_invalid: ${logDir}/tail.ndjson: at byte 0: .*`,
    ];
    assert.match(stderr, new RegExp(`^${lines.join("\n")}\n$`));
    assert.deepEqual(await treeOf(deployment.logDir), before);
  });
});

test("verify escapes control characters read from a file", async () => {
  const tree = await logOf({ tailCommits: 1 });
  const escape = "\x1b[31m\n\x9b";
  await withLog(withManifest(tree, { ...manifestOf(tree), [escape]: 1 }), async (deployment) => {
    const { code, stderr } = await verify(deployment);
    assert.equal(code, 3);
    // deno-lint-ignore no-control-regex
    assert.match(stderr, /^manifest_invalid: [^\x00-\x1f\x7f-\x9f]*\n$/);
  });
});

test("verify exits 1 for an unreadable file and prints no report", async () => {
  await withLog(await fullLog(), async (deployment) => {
    const tail = join(deployment.logDir, "tail.ndjson");
    await rm(tail);
    // root can read any file, but not a directory as a file.
    if (process.getuid?.() === 0) await mkdir(tail);
    else {
      await writeFile(tail, "");
      await chmod(tail, 0);
    }
    const { code, stdout, stderr } = await verify(deployment);
    assert.deepEqual([code, stdout], [1, ""]);
    assert.match(stderr, /tail\.ndjson/);
  });
});

test("verify exits 4 for a log in a newer format and prints no report", async () => {
  const tree = await fullLog();
  await withLog(withManifest(tree, { ...manifestOf(tree), min_reader: 2 }), async (deployment) => {
    const { code, stdout, stderr } = await verify(deployment);
    assert.deepEqual([code, stdout], [4, ""]);
    assert.match(stderr, /^manifest\.json: min_reader is 2, but this program supports only 1; use/);
  });
});

test("verify runs while serve commits", async () => {
  await withLog(await fullLog(), async (deployment) => {
    await deployment.start();
    let isDone = false;
    const verifying = verify(deployment, ["--chain"]).finally(() => isDone = true);
    const events = Array(2).fill(event({ payload: "x".repeat(5000) }));
    for (let batches = 0; !isDone; batches++) {
      const reply = await deployment.ingest(`live ${batches}`, { events });
      assert.equal(reply.status, 200, reply.text());
    }
    const { code, stdout, stderr } = await verifying;
    assert.equal(code, 0);
    assert.match(stderr, /^verified .*\n$/);
    const { ok, events_checked } = JSON.parse(stdout);
    const eventsMax = 46 + 2 * deployment.receipts.length;
    assert.ok(ok && events_checked >= 46 && events_checked <= eventsMax);
    await deployment.stop();
    assert.equal((await deployment.verify()).events_checked, eventsMax);
  });
});
