import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import {
  batchKeyHash,
  buildKeyFilter,
  KEY_PAGE_BYTES,
  keyPlace,
  mayHoldKey,
  openDamagedPages,
  streamKeyHash,
} from "../../../src/log/segment/key_filter.ts";
import { streamKey } from "../../../src/log/read/stream_counts.ts";
import { sourceKey } from "../../../src/log/segment/stream_index.ts";
import { SEED, SeededRandom } from "../../../tools/support/random.ts";
import { flipBit } from "../../support/corrupt.ts";

test(`buildKeyFilter() includes every key, for any number of pages (seed ${SEED})`, () => {
  const random = new SeededRandom();
  for (const count of [0, 1, 2, 10, 11, 1000, 1 + random.below(20_000)]) {
    const hashes = Array.from({ length: count }, (_, n) => batchKeyHash(random.text(9), `${n}`));
    const filter = buildKeyFilter(hashes);
    assert.equal(filter.length % KEY_PAGE_BYTES, 0);
    assert.ok(hashes.every((hash) => mayHoldKey(filter, hash)), `${count} keys`);
    if (count === 0) assert.ok(!mayHoldKey(filter, streamKeyHash(sourceKey("a"))));
  }
});

test("buildKeyFilter() has few false positives", () => {
  const keys = 50_000;
  const hashes = Array.from({ length: keys }, (_, n) => batchKeyHash("shop", `batch-${n}`));
  const filter = buildKeyFilter(hashes);
  assert.ok(filter.length < 3.05 * keys + KEY_PAGE_BYTES, `${filter.length} bytes`);
  const others = 200_000;
  let passed = 0;
  for (let n = 0; n < others; n++) {
    if (mayHoldKey(filter, batchKeyHash("shop", `other-${n}`))) passed++;
  }
  assert.ok(passed < others / 3000, `${passed} of ${others}`);
});

test("a source, a stream and a batch with the same name have different keys", () => {
  const hashes = [
    ...[sourceKey("a"), sourceKey("a.b"), streamKey("a", "b"), streamKey("a.b", "b")]
      .map(streamKeyHash),
    batchKeyHash("a", "b"),
    batchKeyHash("a", "a b"),
    batchKeyHash("a", ""),
  ];
  assert.equal(new Set(hashes.map(({ high, low }) => `${high} ${low}`)).size, hashes.length);
});

test(`openDamagedPages() lets every key pass a page with a flipped bit (seed ${SEED})`, () => {
  const random = new SeededRandom();
  const hashes = Array.from({ length: 5000 }, (_, n) => batchKeyHash("shop", `batch-${n}`));
  const filter = buildKeyFilter(hashes);
  assert.ok(filter.length > 2 * KEY_PAGE_BYTES);
  const right = Buffer.from(filter);
  openDamagedPages(right);
  assert.ok(right.equals(filter));
  for (let run = 0; run < 200; run++) {
    const bit = random.below(8 * filter.length);
    const page = Math.floor(bit / 8 / KEY_PAGE_BYTES) * KEY_PAGE_BYTES;
    const opened = flipBit(filter, bit);
    openDamagedPages(opened);
    right.copy(opened, page, page, page + KEY_PAGE_BYTES);
    assert.ok(opened.equals(right), "the other pages are unchanged");
    openDamagedPages(opened.fill(0, page, page + KEY_PAGE_BYTES));
    const inPage = hashes.filter((hash) => keyPlace(filter.length, hash).page === page);
    assert.ok(inPage.every((hash) => mayHoldKey(opened, hash)));
  }
});
