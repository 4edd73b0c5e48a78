/**
 * Deployments in which a file or directory is replaced by something else. Every command prints one
 * line and exits with the documented status. It writes nothing through a link, deletes only files
 * that belong to the log, and never blocks on a pipe.
 */
import assert from "node:assert/strict";
import { lstat, mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { spawnCli } from "../../tools/support/program.ts";
import {
  type CommandEnd,
  configOf,
  makeWhole,
  runOn,
  type WholeDeployment,
  withHostile,
} from "./support/hostile_deployment.ts";
import { FOREIGN_ENTRIES, type HostileEntry, LINK, PIPE } from "./support/hostile_entry.ts";

/** Allowed exit statuses. `verify` may report a violation or fail to read the entry. */
interface Statuses {
  seal: number[];
  verify: number[];
  init: number[];
}

interface Place {
  path: string | ((whole: WholeDeployment) => string);
  statuses: Statuses;
  /** Statuses for a link to the original, if they differ. */
  linked?: Statuses;
  isFolder?: true;
}

const REFUSED: Statuses = { seal: [1], verify: [1, 3], init: [1] };
/** `init` examines only the names directly in the log directory. */
const REFUSED_BELOW: Statuses = { ...REFUSED, init: [0] };
/** `verify` takes no lock. */
const LOCKED: Statuses = { ...REFUSED, verify: [0] };
const NO_CONFIG: Statuses = { seal: [2], verify: [2], init: [1] };
const TAKEN: Statuses = { seal: [0], verify: [0], init: [1] };

const PLACES: Record<string, Place> = {
  "the tail": { path: "data/log/tail.ndjson", statuses: REFUSED },
  "the manifest": { path: "data/log/manifest.json", statuses: REFUSED },
  "a segment": { path: ({ segment }) => segment, statuses: REFUSED_BELOW },
  "a pending file": { path: ({ pending }) => pending, statuses: REFUSED_BELOW },
  "the lock": { path: "data/log/.lock", statuses: LOCKED },
  "segments/": { path: "data/log/segments", statuses: REFUSED, isFolder: true },
  "pending/": { path: "data/log/pending", statuses: REFUSED, isFolder: true },
  "the log directory": { path: "data/log", statuses: REFUSED, isFolder: true },
  // A link is allowed, because operators may keep the data on another disk.
  "the data directory": { path: "data", statuses: REFUSED, linked: TAKEN, isFolder: true },
  "the configuration": { path: "service.toml", statuses: NO_CONFIG, linked: TAKEN },
};

function pathOf({ path }: Place): string {
  return typeof path === "string" ? path : path(whole);
}

/** Paths that are unknown or that only a writer uses. */
const STRAY_PATHS = [
  "data/log/stray",
  "data/log/segments/stray",
  "data/log/segments/stray.parquet",
  "data/log/pending/stray",
];
const TEMPORARY_PATHS = [
  "data/log/manifest.json.tmp",
  "data/log/segments/new.parquet.tmp",
  "data/log/segments/next.parquet.tmp",
];

let folder: string;
let whole: WholeDeployment;
before(async () => {
  folder = await mkdtemp(join(await realpath(tmpdir()), "el-"));
  whole = await makeWhole(join(folder, "whole"));
});
after(() => rm(folder, { recursive: true, force: true }));

function assertEnd({ status, stdout, stderr }: CommandEnd, statuses: number[], label: string) {
  assert.ok(statuses.includes(status), `${label}: exit ${status}: ${stderr}`);
  if (status === 0) return;
  assert.match(stderr, /^[^\n]+\n$/, `${label}: one line`);
  assert.doesNotMatch(stderr, /defect/, label);
  if (status === 3) assert.ok(JSON.parse(stdout).failure !== null, label);
  else assert.equal(stdout, "", label);
}

async function exists(path: string): Promise<boolean> {
  return await lstat(path).then(() => true, () => false);
}

/** Runs a command with a hostile entry at `place`. The command must not remove the entry. */
async function runWith(
  place: string,
  entry: HostileEntry,
  command: string[],
  statuses: number[],
): Promise<boolean> {
  const label = `${command.join(" ")} with ${entry.title}`;
  const { isOutsideUntouched } = await withHostile(whole, place, entry, async (dir) => {
    assertEnd(await runOn(dir, command), statuses, label);
    assert.ok(await exists(join(dir, place)), `${label}: the entry still exists`);
    const precious = join(dir, place, "precious");
    assert.ok(entry.title !== "a directory with a file" || await exists(precious), label);
  });
  return isOutsideUntouched;
}

for (const [title, place] of Object.entries(PLACES)) {
  const { statuses, linked, isFolder } = place;
  test(`seal, verify and init exit as documented when an entry replaces ${title}`, async () => {
    for (const entry of [LINK, ...FOREIGN_ENTRIES]) {
      if (isFolder && entry.title === "a directory with a file") continue;
      const isFollowed = entry === LINK && linked !== undefined;
      for (const name of ["seal", "verify", "init"] as const) {
        const expected = isFollowed ? linked[name] : statuses[name];
        const isUntouched = await runWith(pathOf(place), entry, [name], expected);
        assert.ok(isUntouched || isFollowed, `${name} with ${entry.title} wrote outside`);
      }
    }
  });
}

for (const place of STRAY_PATHS) {
  test(`seal and verify ignore any entry at ${place}`, async () => {
    for (const entry of FOREIGN_ENTRIES) {
      for (const name of ["seal", "verify"]) {
        assert.ok(await runWith(place, entry, [name], [0]));
      }
    }
  });
}

for (const place of TEMPORARY_PATHS) {
  const leftoverTitle =
    `seal removes ${place} as a leftover, never follows it, and removes no directory`;
  test(leftoverTitle, async () => {
    for (const entry of FOREIGN_ENTRIES) {
      await withHostile(whole, place, entry, async (dir) => {
        const isFolder = entry.title === "a directory with a file";
        assertEnd(await runOn(dir, ["seal"]), [isFolder ? 1 : 0], entry.title);
        assert.equal(await exists(join(dir, place)), isFolder, entry.title);
      });
    }
  });
}

for (const [title, place] of Object.entries(PLACES)) {
  if (place.linked !== undefined) continue;
  const serveTitle = `serve in a separate process refuses a link or pipe in place of ${title}`;
  test(serveTitle, async () => {
    for (const entry of [LINK, PIPE]) {
      const path = pathOf(place);
      const { isOutsideUntouched } = await withHostile(whole, path, entry, async (dir) => {
        const permissions = [`--allow-read=${dir}`, `--allow-write=${dir}`];
        permissions.push("--allow-net", "--allow-sys");
        const args = ["serve", "--config", configOf(dir)];
        const { code, stdout, stderr } = await spawnCli(args, { permissions }).exited;
        assertEnd({ status: code ?? -1, stdout, stderr }, [1], entry.title);
      });
      assert.ok(isOutsideUntouched, entry.title);
    }
  });
}
