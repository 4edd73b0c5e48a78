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

test("readManifest() rejects every encoding but the canonical one", async () => {
  const cases: Record<string, string | Uint8Array> = {
    "an empty file": "",
    "invalid JSON": "service/log",
    "null": "null\n",
    "an array": "[]\n",
    "a different format": EMPTY_TEXT.replace("service/log", "other/log"),
    "no version members": '{"format":"service/log"}\n',
    ...Object.fromEntries(
      ["0", "-1", "1.5", '"1"', "null"].map((bound) => [
        `min_writer ${bound}`,
        EMPTY_TEXT.replace('"min_writer":1', `"min_writer":${bound}`),
      ]),
    ),
    "min_reader 0": EMPTY_TEXT.replace('"min_reader":1', '"min_reader":0'),
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

test("withSegments() encodes like a manifest that is encoded as a whole", () => {
  let manifest = EMPTY_MANIFEST;
  for (let round = 0; round < 30; round++) {
    const before = manifest;
    const added: SegmentEntry[] = [];
    for (let more = round % 3; more > 0; more--) {
      const last = added.at(-1) ?? before.segments.at(-1);
      added.push(entryAfter(last, before.segments.length + added.length));
    }
    manifest = withSegments(before, added);
    assert.equal(encodeManifest(before).toString(), `${canonicalize(before)}\n`);
    assert.equal(encodeManifest(manifest).toString(), `${canonicalize(manifest)}\n`);
  }
});
