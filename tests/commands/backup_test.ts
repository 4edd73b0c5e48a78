/** The `backup` command: what a copy contains, how copies share files, and which are kept. */
import assert from "node:assert/strict";
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { lockFile } from "../../src/runtime/file_lock.ts";
import type { CliExit } from "../../tools/support/program.ts";
import { Deployment, withDeployment, withServing } from "../support/deployment.ts";

const backupsOf = ({ folder }: Deployment) => join(folder, "backups");
const isCopy = (name: string) => /^\d{4}-/.test(name);

/** Runs `backup`. @returns its result, the copy and its standard error. */
async function backup(deployment: Deployment, ...args: string[]) {
  const to = backupsOf(deployment);
  const { code, stdout, stderr } = await deployment.run(["backup", to, ...args]);
  assert.equal(code, 0, stderr);
  const told = JSON.parse(stdout);
  return { told, stderr, copy: new Deployment(to, told.path) };
}

/** Expects `backup` to fail, and the copies to be as they were. */
async function refused(deployment: Deployment, to = backupsOf(deployment)): Promise<CliExit> {
  const before = readdirSync(backupsOf(deployment));
  const exit = await deployment.run(["backup", to]);
  assert.equal(exit.stdout, "");
  assert.deepEqual(readdirSync(backupsOf(deployment)), before);
  return exit;
}

function segmentOf({ logDir }: Deployment): string {
  return join(logDir, "segments", readdirSync(join(logDir, "segments"))[0]!);
}

const inodeOf = (deployment: Deployment) => statSync(segmentOf(deployment)).ino;

/** A deployment with a sealed event. */
async function sealedOne(served: Deployment): Promise<void> {
  await served.append("sealed");
  await served.seal();
}

test("backup copies what a running service has acknowledged, and the copy can be served", () =>
  withServing(async (served) => {
    await sealedOne(served);
    const config = readFileSync(served.configPath, "utf8").replace(
      'token = ""',
      'token = "secret"',
    );
    writeFileSync(served.configPath, config);
    chmodSync(served.configPath, 0o644);
    const { told: first } = await backup(served);
    assert.deepEqual([first.events, first.segments, first.linked], [1, 1, 0]);

    writeFileSync(served.configPath, config.replace("secret", ""));
    await served.start();
    await served.append("in the tail");
    const { told, copy, stderr } = await backup(served);
    assert.equal(stderr, "");
    assert.deepEqual([told.events, told.segments, told.linked], [2, 1, 1]);
    assert.equal(told.frontier, served.receipts[1]!.last_event_id);
    const { code, stderr: verified } = await copy.run(["verify", "--chain"]);
    assert.equal(code, 0);
    assert.ok(verified.includes(`through event ${told.frontier} of 20`), verified);
    assert.ok(verified.endsWith(`, chain head ${told.head}\n`), verified);
    assert.equal(
      readlinkSync(join(copy.folder, "latest")),
      told.path.slice(copy.folder.length + 1),
    );
    copy.receipts.push(...served.receipts);
    await copy.assertContinues();

    for (const entry of readdirSync(first.path, { recursive: true, encoding: "utf8" })) {
      const stat = lstatSync(join(first.path, entry));
      assert.equal(stat.mode & 0o777, stat.isDirectory() ? 0o700 : 0o600, entry);
    }
    assert.equal(readFileSync(join(first.path, "service.toml"), "utf8"), config);

    // The served copy has an event of its own.
    const { told: third, stderr: removed } = await backup(served, "--keep", "1");
    assert.ok(
      removed.includes(`backup: kept ${told.path}, since a service has used it\n`),
      removed,
    );
    assert.deepEqual(
      readdirSync(copy.folder).filter(isCopy).map((name) => join(copy.folder, name)),
      [told.path, third.path],
    );
  }));

test("backup links intact segments, copies a damaged one again, and keeps --keep copies", () =>
  withServing(async (served) => {
    await sealedOne(served);
    const { copy: first } = await backup(served);
    const { copy: second } = await backup(served);
    assert.notEqual(inodeOf(first), inodeOf(served));
    assert.equal(inodeOf(second), inodeOf(first));

    const damaged = segmentOf(second);
    writeFileSync(damaged, readFileSync(damaged).with(100, 0xff));
    const { copy: third, stderr } = await backup(served);
    assert.match(
      stderr,
      /^backup: segments\/.*\.parquet: damaged in the last copy, copied again\n$/,
    );
    await third.verify();
    const { copy: fourth } = await backup(served);
    assert.equal(inodeOf(fourth), inodeOf(third));

    // Neither a file nor a directory behind a symlink is linked.
    const outside = join(served.folder, "outside");
    renameSync(segmentOf(fourth), outside);
    symlinkSync(outside, join(fourth.logDir, "segments", segmentOf(served).split("/").at(-1)!));
    const { copy: fifth } = await backup(served);
    assert.ok(lstatSync(segmentOf(fifth)).isFile());
    assert.notEqual(inodeOf(fifth), statSync(outside).ino);
    renameSync(join(fifth.dir, "data"), join(served.folder, "moved"));
    symlinkSync(join(served.folder, "moved"), join(fifth.dir, "data"));
    const { told, copy: sixth } = await backup(served);
    assert.equal(told.linked, 0);

    const others = [
      "2026-13-01T00-00-00Z",
      "2026-02-01T00-00-00Z",
      "9999-12-31T23-59-59Z",
      "other",
    ];
    for (const other of others) mkdirSync(join(backupsOf(served), other));
    const { copy: last, stderr: removed } = await backup(served, "--keep", "2");
    assert.equal(removed.match(/^backup: removed /gm)!.length, 5);
    const copies = readdirSync(backupsOf(served)).filter((name) => isCopy(name));
    assert.deepEqual(others.filter((name) => copies.includes(name)), others.slice(0, -1));
    assert.deepEqual(
      copies.filter((name) => !others.includes(name)).map((name) => join(backupsOf(served), name)),
      [sixth.dir, last.dir],
    );
    assert.equal(inodeOf(last), inodeOf(sixth));

    const segment = segmentOf(served);
    writeFileSync(segment, readFileSync(segment).with(100, 0xff));
    rmSync(segmentOf(last));
    const { code, stderr: reason } = await refused(served);
    assert.equal(code, 1);
    assert.match(reason, /parquet: differs from its SHA-256 in the manifest/);
  }));

test("backup puts the data of a deployment with another data.dir into the copy", () =>
  withDeployment(async (deployment) => {
    const elsewhere = join(deployment.folder, "elsewhere");
    renameSync(join(deployment.dir, "data"), elsewhere);
    const config = readFileSync(deployment.configPath, "utf8");
    for (const dir of [elsewhere, "../elsewhere"]) {
      writeFileSync(deployment.configPath, config.replace('"./data"', `"${dir}" # elsewhere`));
      const { copy } = await backup(deployment);
      assert.equal(readFileSync(copy.configPath, "utf8"), config);
      await copy.verify();
    }
    // A copy that a service has used is kept, also if its data directory has another name.
    const { copy: used } = await backup(deployment);
    await used.start();
    await used.append("its own");
    await used.stop();
    renameSync(elsewhere, join(deployment.dir, "store"));
    writeFileSync(deployment.configPath, config.replace('"./data"', '"./store"'));
    const { told, stderr: kept } = await backup(deployment, "--keep", "1");
    assert.ok(kept.includes(`backup: kept ${used.dir}, since a service has used it\n`), kept);
    assert.ok(!kept.includes(`removed ${used.dir}`));
    assert.deepEqual(
      readdirSync(backupsOf(deployment)).filter(isCopy).map((name) => join(used.folder, name)),
      [used.dir, told.path],
    );
    renameSync(join(deployment.dir, "store"), elsewhere);
    writeFileSync(deployment.configPath, `data = { "dir" = "${elsewhere}" }`);
    const { code, stderr } = await refused(deployment);
    assert.equal(code, 2);
    assert.match(stderr, /\[data\] dir cannot be changed in the copy; put it on its own line/);
  }));

test("backup refuses a directory in use, a deployment, its data, or a path too long for a socket", () =>
  withDeployment(async (deployment) => {
    await backup(deployment);
    const release = await lockFile(join(backupsOf(deployment), ".lock"));
    const { code, stderr } = await refused(deployment);
    release!();
    assert.equal(code, 1);
    assert.match(stderr, /backups: another backup to it is running\n$/);
    const inside = await refused(deployment, join(deployment.dir, "data", "backups"));
    assert.equal(inside.code, 2);
    assert.match(inside.stderr, /is in the data directory; choose another/);
    assert.deepEqual(readdirSync(join(deployment.dir, "data")), ["log"]);
    const copy = await refused(deployment, join(backupsOf(deployment), "latest"));
    assert.equal(copy.code, 2);
    assert.match(copy.stderr, /latest: is a deployment; choose another directory for backups\n$/);
    for (const [name, kind] of [["latest", "directory"], [".latest", "file"]] as const) {
      const path = join(backupsOf(deployment), name);
      rmSync(path, { force: true });
      if (kind === "directory") mkdirSync(path);
      else writeFileSync(path, "");
      const odd = await refused(deployment);
      assert.equal(odd.code, 1);
      assert.ok(odd.stderr.endsWith(`${path}: is a ${kind}, but must be a symlink\n`), odd.stderr);
      rmSync(path, { recursive: true });
    }
    const long = await refused(deployment, join(deployment.folder, "x".repeat(100)));
    assert.equal(long.code, 2);
    assert.match(long.stderr, /\[server\] socket must be at most 107 bytes/);
  }));
