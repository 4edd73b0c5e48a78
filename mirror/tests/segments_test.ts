/** `segments`: copies of sealed segments in a directory or an S3-compatible store. */
import assert from "node:assert/strict";
import { readdir, readFile, rm, stat, truncate, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { type Deployment, withDeployment } from "../../tests/support/deployment.ts";
import { refusalOf, runMirror } from "./support/mirrored.ts";
import { NEEDS_S3, withS3 } from "./support/s3_server.ts";
import { openStore } from "../segments/store.ts";

/** Appends a batch and seals it into a new segment. */
async function addSegment(deployment: Deployment, batchId: string): Promise<void> {
  await deployment.start();
  await deployment.append(batchId);
  await deployment.stop();
  const { code, stderr } = await deployment.run(["seal"]);
  assert.equal(code, 0, stderr);
}

/** Returns the contents of the manifest and segments in a directory, by name. */
async function filesIn(folder: string): Promise<Map<string, string>> {
  const names = (await readdir(join(folder, "segments"))).map((name) => `segments/${name}`);
  const files = ["manifest.json", ...names.filter((name) => name.endsWith(".parquet"))].sort();
  return new Map(
    await Promise.all(files.map(async (name): Promise<[string, string]> => {
      return [name, await readFile(join(folder, name), "latin1")];
    })),
  );
}

async function stores(deployment: Deployment, url: string, folder: string): Promise<void> {
  const upload = ["segments", "--to", url, deployment.dir];
  await addSegment(deployment, "b1");
  await runMirror(upload);
  const [first] = (await filesIn(folder)).keys().filter((name) => name.endsWith(".parquet"));
  const old = new Date("2020-01-01");
  await utimes(join(folder, first!), old, old);
  await addSegment(deployment, "b2");
  const { stderr } = await runMirror(upload);
  assert.match(stderr, / holds 2 segments, 2 events$/m);
  assert.deepEqual(await filesIn(folder), await filesIn(deployment.logDir));
  assert.deepEqual((await stat(join(folder, first!))).mtime, old, "stored once");

  // The state after an interruption: the manifest and a segment are missing.
  await rm(join(folder, "manifest.json"));
  await rm(join(folder, first!));
  await runMirror(upload);
  assert.deepEqual(await filesIn(folder), await filesIn(deployment.logDir));

  await withDeployment(async (other) => {
    await addSegment(other, "b1");
    assert.match(
      await refusalOf(["segments", "--to", url, other.dir]),
      /holds a different log: \S+ is not segment 0 of/,
    );
  });
}

test("segments copies each sealed segment to a directory once", () =>
  withDeployment(async (deployment) => {
    const kept = join(deployment.folder, "kept");
    await stores(deployment, kept, kept);
  }));

test(
  "segments copies sealed segments to an S3-compatible store",
  NEEDS_S3,
  () =>
    withDeployment((deployment) =>
      withS3(deployment.folder, (url, objects) => stores(deployment, url, objects))
    ),
);

test("segments does not copy a damaged segment", () =>
  withDeployment(async (deployment) => {
    await addSegment(deployment, "b1");
    const kept = join(deployment.folder, "kept");
    const [name] = await readdir(join(deployment.logDir, "segments"));
    const path = join(deployment.logDir, "segments", name!);
    const bytes = await readFile(path);
    bytes[100]! ^= 1;
    await writeFile(path, bytes);
    assert.match(
      await refusalOf(["segments", "--to", kept, deployment.dir]),
      /copied \d+ bytes with SHA-256/,
    );
    await truncate(path, 100);
    assert.match(
      await refusalOf(["segments", "--to", kept, deployment.dir]),
      /copied 100 bytes/,
    );
  }));

test(
  "an S3-compatible store rejects content with a different hash",
  NEEDS_S3,
  () =>
    withDeployment((deployment) =>
      withS3(deployment.folder, async (url) => {
        const path = join(deployment.folder, "file");
        await writeFile(path, "altered");
        const store = openStore(url);
        const source = { path, bytes: 7, sha256: "0".repeat(64) };
        await assert.rejects(store.put("file", source), /PUT .*\/logs\/ground\/file: 400/);
        assert.equal(await store.size("file"), null);
      })
    ),
);
