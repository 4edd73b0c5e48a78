/**
 * `segments`: copies of sealed segments in a directory or an S3-compatible store, and their use.
 * All tests with an S3-compatible store are in this file, since they share environment variables.
 */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { mkdir, readdir, readFile, rm, stat, truncate, utimes, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { jetstreamManager } from "@nats-io/jetstream";
import { allEvents, batchWith, commit, event, ingest } from "../../tests/contract/support/api.ts";
import { rowsOf, withDuckDb } from "../../tests/support/duckdb.ts";
import { type Deployment, withDeployment, withServing } from "../../tests/support/deployment.ts";
import { withLatin1Path } from "../../tests/support/latin1_path.ts";
import {
  appendPayloads,
  type Mirrored,
  pushAll,
  refusalOf,
  runMirror,
  startMirror,
  testWithNats,
  withRestored,
} from "./support/mirrored.ts";
import { lastSequence, STREAM } from "./support/nats_stream.ts";
import { NEEDS_S3, withS3 } from "./support/s3_server.ts";
import { encodeManifest, readManifest, type SegmentEntry } from "../../src/log/segment/manifest.ts";
import { fileStorage } from "../../src/log/storage/file_storage.ts";
import { fetchSegments } from "../segments/fetch.ts";
import { openStore } from "../segments/store.ts";

const SCRIPT = new URL("../../examples/duckdb.sql", import.meta.url);
/** Path of DuckDB's `httpfs` extension; the PyPI package duckdb-extension-httpfs contains it. */
const HTTPFS = process.env.MIRROR_TEST_HTTPFS;

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

test("a store of segments is neither at a path that is not UTF-8 nor at another URL", () => {
  assert.throws(() => openStore("caf\ufffd"), /not valid UTF-8; rename/);
  assert.throws(() => openStore("file:///caf\ufffd"), /not valid UTF-8; rename/);
  assert.throws(() => openStore("http://x/y"), /only file: and s3: are supported/);
});

test("segments --to and restore --segments exit 2 for a path that is not UTF-8", () =>
  withDeployment(async (deployment) => {
    const { dir, folder } = deployment;
    await addSegment(deployment, "b1");
    const wrapper = withLatin1Path(folder);
    const restored = join(folder, "restored");
    const names = (await readdir(folder)).sort();
    for (const args of [["segments", dir, "--to"], ["restore", restored, "--segments"]]) {
      const { code, stderr } = await startMirror(args, undefined, undefined, { wrapper }).exited;
      assert.equal(code, 2, stderr);
      assert.match(stderr, /its absolute path is not valid UTF-8/);
    }
    assert.deepEqual((await readdir(folder)).sort(), names);
  }));

test("restore --segments refuses a wrong URL before it creates anything", () =>
  withDeployment(async ({ folder, configPath }) => {
    const names = (await readdir(folder)).sort();
    for (const url of ["missing", configPath, join(configPath, "x")]) {
      const refusal = await refusalOf(["restore", join(folder, "restored"), "--segments", url]);
      assert.equal(refusal, `${url} has no manifest.json\n`);
    }
    assert.deepEqual((await readdir(folder)).sort(), names);
  }));

test("segments says where it cannot create a directory for the copies", () =>
  withDeployment(async (deployment) => {
    await addSegment(deployment, "b1");
    for (const to of [deployment.configPath, join(deployment.configPath, "x")]) {
      assert.equal(
        await refusalOf(["segments", "--to", to, deployment.dir]),
        `${deployment.configPath}: not a directory; choose another path\n`,
      );
    }
  }));

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

/** What a store tells about its second segment; a lie changes it. */
interface Told {
  entry: { -readonly [Name in keyof SegmentEntry]: SegmentEntry[Name] };
  file: Buffer;
  /** Changes the manifest's text. */
  edit: (text: string) => string;
}

function damage({ file }: Told): void {
  file[file.length >> 1]! ^= 1;
}

/** Lists a segment's file as it is. */
function list({ entry, file }: Told): void {
  const sha256 = createHash("sha256").update(file).digest("hex");
  const path = entry.path.replace(entry.sha256, sha256);
  Object.assign(entry, { bytes: file.length, sha256, path });
}

const COPIED = /copied \d+ bytes with SHA-256/;
const ID = "01900000-0000-7000-8000-000000000000";
const LIES: [lie: (told: Told) => void, refused?: RegExp][] = [
  ...["", "tail.ndjson", "/tmp/escaped", "../../../escaped", "segments/../../../../escaped"].map(
    (path): [(told: Told) => void] => [({ entry }) => entry.path = path],
  ),
  [({ entry }) => entry.path = `segments/${ID}_${ID}_${"0".repeat(64)}.parquet`],
  [({ entry }) => entry.path = entry.path.replace("segments/", "segments/../../../../")],
  [({ entry }) => entry.bytes -= 1, COPIED],
  [({ entry }) => entry.bytes += 1, COPIED],
  [({ entry }) => entry.bytes = -1],
  [({ entry }) => entry.events += 1, /holds an invalid log/],
  [({ entry }) => entry.head = "0".repeat(64), /holds an invalid log/],
  [({ entry }) => entry.previous_head = "0".repeat(64)],
  [(told) => told.edit = (text) => `{"a":1,${text.slice(1)}`],
  [(told) => told.edit = () => "<html>", /manifest\.json/],
  [(told) => told.edit = (text) => text.replace('reader":1', 'reader":2'), /min_reader is 2/],
  [(told) => told.edit = (text) => text.padEnd(2 ** 26 + 1), /exceeds 67108864 bytes/],
  [(told) => told.file = told.file.subarray(1), COPIED],
  [(told) => told.file = Buffer.concat([told.file, told.file]), COPIED],
  [damage, COPIED],
  [(told) => [damage, list].forEach((change) => change(told)), /holds an invalid log/],
  [(told) => [() => told.file = Buffer.alloc(1), list].forEach((f) => f(told)), /invalid log/],
];

test("restore --segments refuses a store's lies, and writes only in its folder", () =>
  withDeployment(async (deployment) => {
    const { folder } = deployment;
    for (const batchId of ["b1", "b2"]) await addSegment(deployment, batchId);
    const store = join(folder, "store");
    await runMirror(["segments", "--to", store, deployment.dir]);
    const manifest = await readManifest(fileStorage(store));
    const [first, second] = manifest!.segments;
    const file = await readFile(join(store, second!.path));
    for (const [number, [lie, refused = /not (a|the) manifest of/]] of LIES.entries()) {
      const told: Told = { entry: { ...second! }, file: Buffer.from(file), edit: (text) => text };
      lie(told);
      const text = encodeManifest({ ...manifest!, segments: [first!, told.entry] }).toString();
      await writeFile(join(store, "manifest.json"), told.edit(text));
      // A store can return any bytes for any path.
      for (const path of [second!.path, told.entry.path || "x"]) {
        const inStore = join(store, path.replaceAll("../", ""));
        await mkdir(dirname(inStore), { recursive: true });
        await writeFile(inStore, told.file);
      }
      const inside = join(folder, `copy${number}`);
      await mkdir(join(inside, "a/b/log"), { recursive: true });
      await assert.rejects(fetchSegments(store, join(inside, "a/b/log"), () => {}), refused);
      const names = await readdir(inside, { recursive: true });
      assert.ok(
        names.every((name) => /^(a|a\/b|a\/b\/log(\/segments(\/.*t)?)?)$/.test(name)),
        `${names}`,
      );
    }
  }));

async function restoresExpired(mirrored: Mirrored, store: string): Promise<void> {
  const { served, nats } = mirrored;
  const copy = join(served.folder, "copy");
  const restore = ["restore", "--nats", nats.url, copy];
  const members = { events: [event(), event({ record_key: "2" })] };
  await commit(served.socketPath, batchWith({ batch_id: "b1", ...members }));
  await pushAll(mirrored);
  await served.stop();
  await served.run(["seal"]);
  await runMirror(["segments", "--to", store, served.dir]);
  await served.start();
  await commit(served.socketPath, batchWith({ batch_id: "b2" }));
  await pushAll(mirrored);
  const { streams } = await jetstreamManager(await nats.connect());
  await streams.purge(STREAM, { seq: await lastSequence(nats) });
  assert.match(await refusalOf(restore), /events in between are missing/);
  await runMirror([...restore, "--segments", store]);
  await withRestored(served.folder, copy, async (restored) => {
    await restored.verify();
    await restored.start();
    assert.deepEqual(await allEvents(restored.socketPath), await allEvents(served.socketPath));
    const repeated = await ingest(restored.socketPath, batchWith({ batch_id: "b1", ...members }));
    assert.equal(repeated.json().status, "duplicate");
  });
}

testWithNats("restore uses segments for events that have expired", (mirrored) => {
  return restoresExpired(mirrored, join(mirrored.served.folder, "kept"));
});

testWithNats(
  "restore uses segments in an S3-compatible store",
  (mirrored) => withS3(mirrored.served.folder, (url) => restoresExpired(mirrored, url)),
  { skip: NEEDS_S3.skip },
);

test(
  "duckdb.sql reads segments in an S3-compatible store",
  { skip: NEEDS_S3.skip || (HTTPFS === undefined ? "MIRROR_TEST_HTTPFS is not set" : false) },
  () =>
    withServing(async (served) => {
      const { last_event_id } = await appendPayloads({ served }, "b1", [{ n: 1 }, { n: 2 }]);
      await served.stop();
      await served.run(["seal"]);
      await withS3(served.folder, async (url) => {
        await runMirror(["segments", "--to", url, served.dir]);
        const { AWS_ENDPOINT_URL, AWS_ACCESS_KEY_ID: id, AWS_SECRET_ACCESS_KEY: key } = process.env;
        await withDuckDb(async (connection) => {
          await connection.run(`LOAD '${HTTPFS}'`);
          await connection.run(
            `CREATE SECRET (TYPE s3, KEY_ID '${id}', SECRET '${key}', REGION 'us-east-1',
             ENDPOINT '${new URL(AWS_ENDPOINT_URL!).host}', URL_STYLE 'path', USE_SSL false)`,
          );
          await connection.run(`SET VARIABLE log = '${url}'`);
          await connection.run(await readFile(SCRIPT, "utf8"));
          const query = "SELECT count(*)::INT AS events, max(event_id) AS last FROM events";
          const expected = [{ events: 2, last: last_event_id }];
          assert.deepEqual(await rowsOf(connection, query), expected);
        });
      });
    }),
);
