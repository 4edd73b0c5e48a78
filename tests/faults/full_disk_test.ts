/**
 * The real service on a full disk. Ingest returns `storage_full`, readers and followers continue,
 * the service can be stopped and started, a seal fails without changes, and ingest resumes once
 * there is space. Nothing acknowledged is lost, and nothing rejected is stored.
 */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { init } from "../../src/commands/init.ts";
import { allEvents, assertError, event } from "../contract/support/api.ts";
import { FollowReader } from "../contract/support/follow_reader.ts";
import { withFolder } from "../../tools/support/program.ts";
import { Deployment } from "../support/deployment.ts";
import { skipLoudly } from "./support/skip.ts";
import {
  makeDisk,
  type Mount,
  mountImage,
  mountMemory,
  type SmallDisk,
} from "./support/small_disk.ts";

const WRITERS = 4;
/** Size of a payload. Payloads are random, because a segment of compressible data might fit. */
const PAYLOAD_BYTES = 15_000;
/** A number of batches that exceeds the space on any of the disks. */
const BATCHES_MAX = 200;

const DISKS: [title: string, mount: Mount][] = [
  ["an in-memory file system", mountMemory],
  ["an ext4 file system", mountImage],
];

/** A service on a small disk, and the receipts it sent. */
class SmallDeployment extends Deployment {
  readonly disk: SmallDisk;
  #batches = 0;

  constructor(disk: SmallDisk) {
    super(disk.dir, disk.dir);
    this.disk = disk;
  }

  /** Ingests a batch, which may run out of space. @returns whether it was accepted. */
  async appendIfRoom(): Promise<boolean> {
    const payload = randomBytes(PAYLOAD_BYTES).toString("hex");
    const events = ["a", "b"].map((record_key) => event({ record_key, payload }));
    const reply = await this.ingest(`${this.#batches++}`, { events });
    if (reply.status !== 200) assertError(reply, "storage_full");
    return reply.status === 200;
  }

  /** Runs writers until each has run out of space twice. */
  async fill(): Promise<void> {
    await Promise.all(Array.from({ length: WRITERS }, async () => {
      for (let refusals = 0; refusals < 2;) {
        assert.ok(this.#batches < BATCHES_MAX, "the disk fills up");
        if (!await this.appendIfRoom()) refusals++;
      }
    }));
  }
}

async function verify(deployment: SmallDeployment): Promise<void> {
  const { events_checked } = await deployment.verify();
  assert.equal(events_checked, deployment.receipts.length * 2);
}

/** Fills the disk, and asserts that ingest resumes once space is freed. */
async function fillAndMakeRoom(deployment: SmallDeployment): Promise<void> {
  await deployment.start();
  const follower = await FollowReader.open(deployment.socketPath);
  await follower.catchUp();
  await deployment.fill();
  const followed = await follower.takeLive(deployment.receipts.length * 2);
  assert.deepEqual(followed, await allEvents(deployment.socketPath));
  await deployment.assertShows();
  await verify(deployment);
  const before = deployment.receipts.length;
  await deployment.disk.makeRoom();
  assert.ok(await deployment.appendIfRoom());
  assert.equal((await follower.takeLive(2)).length, 2);
  assert.equal(deployment.receipts.length, before + 1);
  follower.close();
  await deployment.stop();
}

/** Kills, starts, shuts down, seals and starts the service on the full disk. */
async function restartWhileFull(deployment: SmallDeployment): Promise<void> {
  await deployment.start();
  await deployment.fill();
  await deployment.stop("SIGKILL");
  await deployment.start();
  await deployment.assertShows();
  await deployment.stop();
  const sealed = await deployment.run(["seal"]);
  assert.equal(sealed.code, 1, sealed.stderr);
  assert.match(sealed.stderr, /^[^\n]+\n(sealed [^\n]+ in total; [^\n]+\n)?$/);
  await deployment.start();
  await deployment.assertShows();
  await verify(deployment);
  await deployment.disk.makeRoom();
  assert.ok(await deployment.appendIfRoom());
  await deployment.stop();
}

const TESTS: [name: string, run: (deployment: SmallDeployment) => Promise<void>][] = [
  ["serve refuses ingest on a full disk and loses nothing", fillAndMakeRoom],
  ["serve and seal survive a restart on a full disk", restartWhileFull],
];

for (const [title, mount] of DISKS) {
  for (const [name, run] of TESTS) {
    test(`${name}: ${title}`, async (context) => {
      await withFolder(async (folder) => {
        const disk = makeDisk(folder, mount);
        if (typeof disk === "string") return skipLoudly(context, disk);
        const deployment = new SmallDeployment(disk);
        try {
          await init(disk.dir);
          await run(deployment);
        } finally {
          await deployment.dispose();
          disk.remove();
        }
      });
    });
  }
}
