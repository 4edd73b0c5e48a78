/**
 * Backups that are killed or fail at a system call, and backups beside a writer that rotates and
 * seals all the time. The former copies stay whole, and every copy verifies.
 */
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import process from "node:process";
import { join } from "node:path";
import { test } from "node:test";
import { randomInteger, seededRandom, testSeed } from "../../tools/support/random.ts";
import { Deployment, withDeployment, withServing } from "../support/deployment.ts";
import { treeOf } from "../support/file_tree.ts";
import { cliCommand, spawnCommand } from "../../tools/support/program.ts";
import { testTraced } from "./support/strace.ts";

const seed = testSeed();
const random = seededRandom(seed);

/** System calls with which a backup changes its directory. */
const CALLS = "fsync,fdatasync,rename,renameat,renameat2,link,linkat,symlink,symlinkat,unlink," +
  "unlinkat,rmdir,mkdir,mkdirat,pwrite64";
/** Kills, each at a random call of one thread. A whole backup makes about as many per thread. */
const KILLS = Number(process.env.BACKUP_KILLS ?? 3);
const KILL_CALL_MAX = 12;
const ROUNDS = Number(process.env.BACKUP_ROUNDS ?? 3);
/** Rotates and seals a tail of a few events. */
const ROTATE_BYTES = 4096;

const isCopy = (name: string) => /^\d{4}-/.test(name);
const copiesIn = (to: string) => readdirSync(to).filter(isCopy).sort();

/** A deployment with a segment and a tail, and a directory with a copy of it. */
async function withCopy(use: (deployment: Deployment, to: string) => Promise<void>): Promise<void> {
  await withServing(async (served) => {
    await served.append("sealed");
    await served.seal();
    await served.start();
    await served.append("in the tail");
    await served.stop();
    const to = join(served.folder, "backups");
    assert.equal((await served.run(["backup", to])).code, 0);
    await use(served, to);
  });
}

/** Runs a backup under strace. */
function backupUnder(deployment: Deployment, to: string, ...injections: string[]) {
  const faults = injections.flatMap((fault) => ["-e", `inject=${fault}`]);
  const wrapper = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", `trace=${CALLS}`, ...faults];
  const args = ["backup", to, "--keep", "2", "--config", deployment.configPath];
  return spawnCommand(cliCommand(args), { wrapper }).exited;
}

testTraced(`a backup killed at a call leaves former copies whole (SEED=${seed})`, async () => {
  await withCopy(async (deployment, to) => {
    for (let kill = 0; kill < KILLS; kill++) {
      const [former] = copiesIn(to).slice(-1);
      const before = await treeOf(join(to, former!));
      const call = randomInteger(random, 1, KILL_CALL_MAX);
      await backupUnder(deployment, to, `${CALLS}:signal=KILL:when=${call}`);
      assert.deepEqual(await treeOf(join(to, former!)), before, `killed at call ${call}`);
      for (const name of copiesIn(to)) await new Deployment(to, join(to, name)).verify();
      const { code, stderr } = await deployment.run(["backup", to, "--keep", "2"]);
      assert.equal(code, 0, stderr);
      assert.deepEqual(readdirSync(to).filter((name) => !isCopy(name)), [".lock", "latest"]);
      assert.equal(copiesIn(to).length, 2);
      await new Deployment(to, join(to, "latest")).verify();
    }
  });
});

testTraced(
  "a backup on a full disk removes what it has copied, and says so",
  () =>
    withCopy(async (deployment, to) => {
      const [former] = copiesIn(to);
      const before = await treeOf(join(to, former!));
      for (const fault of ["pwrite64:error=ENOSPC:when=1+", "mkdir,mkdirat:error=ENOSPC"]) {
        const { code, stderr } = await backupUnder(deployment, to, fault);
        assert.equal(code, 1, stderr);
        assert.match(stderr, /backups: no room for another copy; free some disk space\n$/);
        assert.deepEqual(readdirSync(to).filter((name) => name !== ".partial"), [
          ".lock",
          former,
          "latest",
        ]);
        assert.deepEqual(await treeOf(join(to, former!)), before);
      }
    }),
);

testTraced(
  "a backup that a signal interrupts exits 1 and leaves no partial copy",
  () =>
    withCopy(async (deployment, to) => {
      const { code, stderr } = await backupUnder(deployment, to, "linkat,link:signal=INT:when=1");
      assert.deepEqual([code, stderr], [1, "interrupted; no copy was made or changed\n"]);
      assert.equal(copiesIn(to).length, 1);
      assert.ok(!readdirSync(to).includes(".partial"));
    }),
);

test("each backup beside a writer that rotates and seals has what was acknowledged before it", () =>
  withDeployment(async (deployment) => {
    await deployment.start({ rotateBytes: ROTATE_BYTES });
    const to = join(deployment.folder, "backups");
    let isOver = false;
    const events = Array.from({ length: 3 }, () => ({
      stream: "s",
      record_key: "k",
      kind: "upserted",
      payload: "x".repeat(500),
    }));
    const writing = (async () => {
      for (let n = 0; !isOver; n++) await deployment.ingest(`${n}`, { events });
    })();
    try {
      for (let round = 0; round < ROUNDS; round++) {
        const acknowledged = deployment.receipts.at(-1)?.last_event_id ?? "";
        const { code, stdout, stderr } = await deployment.run(["backup", to]);
        assert.equal(code, 0, stderr);
        const { path, frontier, events } = JSON.parse(stdout);
        assert.ok(frontier >= acknowledged, "nothing that was acknowledged is missing");
        const { events_checked, orphans, remnants } = await new Deployment(to, path).verify();
        assert.deepEqual([events_checked, orphans, remnants], [events, [], []]);
        const known = deployment.receipts.map(({ last_event_id }) => last_event_id);
        assert.ok(known.includes(frontier), "it ends with a whole batch that was acknowledged");
      }
    } finally {
      isOver = true;
      await writing;
    }
    await deployment.stop();
    await deployment.verify();
  }));
