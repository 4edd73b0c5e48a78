import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { GENESIS_HEAD_HEX } from "../../../src/event/chain.ts";
import { canonicalize } from "../../../src/event/json/canonical_json.ts";
import { MANIFEST_BYTES_MAX } from "../../../src/limits.ts";
import { MANIFEST_FILE, segmentPath } from "../../../src/log/storage/file_names.ts";
import { CorruptLogError, UnsupportedFormatError } from "../../../src/log/storage/errors.ts";
import {
  EMPTY_MANIFEST,
  encodeManifest,
  readManifest,
  type SegmentEntry,
  withSegments,
  writeManifest,
} from "../../../src/log/segment/manifest.ts";
import { idAt } from "../../support/event_ids.ts";
import { SimulatedDisk } from "../../support/simulated_disk.ts";

const EMPTY_TEXT = '{"format":"service/log","min_reader":1,"min_writer":1,"schema_version":1,' +
  '"segments":[]}\n';

function storageWith(manifest: string | Uint8Array): SimulatedDisk {
  return new SimulatedDisk(new Map([[MANIFEST_FILE, Buffer.from(manifest as string)]]));
}

test("writeManifest() durably writes canonical JSON and an LF under the final name", async () => {
  const storage = new SimulatedDisk();
  await writeManifest(storage, EMPTY_MANIFEST);
  const afterCrash = storage.crash();
  assert.deepEqual([...afterCrash.tree().keys()], [MANIFEST_FILE]);
  assert.equal(afterCrash.contents(MANIFEST_FILE).toString(), EMPTY_TEXT);
});

/** A well-formed entry with invented values that follows the entry `before`. */
function entryAfter(before: SegmentEntry | undefined, number: number): SegmentEntry {
  const hash = (value: number) => value.toString(16).padStart(64, "0");
  const facts = {
    first_event_id: idAt(2 * number),
    last_event_id: idAt(2 * number + 1),
    sha256: hash(number),
    bytes: 50_000_000,
    events: 263_000,
    batches: 263_000,
    previous_head: before?.head ?? GENESIS_HEAD_HEX,
    head: hash(number + 1),
  };
  return { ...facts, path: segmentPath(facts), sealed_at: "2026-01-01T00:00:00.000Z" };
}

test("readManifest() reads a manifest of a hundred thousand segments", async () => {
  const segments: SegmentEntry[] = [];
  for (let number = 0; number < 100_000; number++) {
    segments.push(entryAfter(segments.at(-1), number));
  }
  const storage = new SimulatedDisk();
  await writeManifest(storage, { ...EMPTY_MANIFEST, segments });
  assert.equal((await readManifest(storage))?.segments.length, 100_000);
});

test("writeManifest() refuses to write a manifest larger than readManifest() accepts", async () => {
  const storage = storageWith(EMPTY_TEXT);
  const segments = [{ ...entryAfter(undefined, 0), sealed_at: "9".repeat(MANIFEST_BYTES_MAX) }];
  await assert.rejects(
    writeManifest(storage, { ...EMPTY_MANIFEST, segments }),
    /^Error: manifest\.json: \d+ bytes for 1 segments exceed the/,
  );
  assert.deepEqual(storage.tree(), storageWith(EMPTY_TEXT).tree());
});

test("readManifest() rejects a manifest from a newer version, with any content", async () => {
  for (const bound of ["min_reader", "min_writer"]) {
    const texts = [
      EMPTY_TEXT.replace(`"${bound}":1`, `"${bound}":2`),
      JSON.stringify({ min_reader: 1, min_writer: 1, format: "service/log", x: [1], [bound]: 2 }),
    ];
    for (const text of texts) {
      await assert.rejects(
        readManifest(storageWith(text)),
        (error) => error instanceof UnsupportedFormatError && error.message.includes(bound),
      );
    }
  }
});

/** Empty manifests, each with one of `names` set to one of `values`. */
function boundsOf(names: string[], values: string[]): Record<string, string> {
  const cases = names.flatMap((name) =>
    values.map((value) => {
      const text = EMPTY_TEXT.replace(`"${name}":1`, `"${name}":${value}`);
      return [`${name} ${value}`, text] as const;
    })
  );
  return Object.fromEntries(cases);
}

test("readManifest() accepts a newer min_writer for read-only access", async () => {
  const text = (bound: string) => EMPTY_TEXT.replace('"min_writer":1', `"min_writer":${bound}`);
  assert.equal((await readManifest(storageWith(text("2")), "read"))?.min_writer, 2);
  for (const bound of ["0", "-1", "1.5", '"2"', "2.5"]) {
    await assert.rejects(readManifest(storageWith(text(bound)), "read"), CorruptLogError, bound);
  }
});

test("readManifest() rejects every encoding but the canonical one", async () => {
  const cases: Record<string, string | Uint8Array> = {
    "an empty file": "",
    "invalid JSON": "service/log",
    "null": "null\n",
    "an array": "[]\n",
    "a different format": EMPTY_TEXT.replace("service/log", "other/log"),
    "no version members": '{"format":"service/log"}\n',
    ...boundsOf(["min_reader", "min_writer"], ["0", "-1", "1.5", '"1"', "true", "null", "1e300"]),
    "a different schema version": EMPTY_TEXT.replace('"schema_version":1', '"schema_version":2'),
    "an unknown member": EMPTY_TEXT.replace("{", '{"a":1,'),
    "a missing member": EMPTY_TEXT.replace(',"segments":[]', ""),
    "a different member order":
      '{"schema_version":1,"format":"service/log","min_reader":1,"min_writer":1,' +
      '"segments":[]}\n',
    "spaces": EMPTY_TEXT.replaceAll(",", ", "),
    "no LF": EMPTY_TEXT.trimEnd(),
    "two LFs": EMPTY_TEXT + "\n",
    "a truncated end": EMPTY_TEXT.slice(0, 40),
    "malformed UTF-8": Buffer.concat([Buffer.from(EMPTY_TEXT), Buffer.from([0xff])]),
    "zeros": Buffer.alloc(EMPTY_TEXT.length),
  };
  for (const [name, text] of Object.entries(cases)) {
    await assert.rejects(readManifest(storageWith(text)), CorruptLogError, name);
  }
});

test("withSegments() encodes like a manifest that is encoded as a whole", async () => {
  let manifest = EMPTY_MANIFEST;
  for (let number = 0, round = 0; number < 1000; round++) {
    const added: SegmentEntry[] = [];
    for (let more = number % 3; more > 0; more--, number++) {
      added.push(entryAfter(added.at(-1) ?? manifest.segments.at(-1), number));
    }
    if (number % 3 === 0) number += 1;
    const before = manifest;
    manifest = withSegments(before, added);
    // Comparing every one would take time that grows with the square of their number.
    if (round % 50 !== 0) continue;
    assert.equal(encodeManifest(before).toString(), `${canonicalize(before)}\n`);
    assert.equal(encodeManifest(manifest).toString(), `${canonicalize(manifest)}\n`);
  }
  const storage = new SimulatedDisk();
  await writeManifest(storage, manifest);
  assert.deepEqual(storage.contents(MANIFEST_FILE), encodeManifest(manifest));
  assert.ok(manifest.segments.length > 500);
});
