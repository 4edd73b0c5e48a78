import assert from "node:assert/strict";
import { test } from "node:test";
import { UUID_BYTES, uuidText } from "../../../src/log/line/line_bytes.ts";
import { BLOCK_ENTRIES, KeyTable, writeHex } from "../../../src/log/read/key_table.ts";
import { SEED, SeededRandom } from "../../../tools/support/random.ts";
import { idAt } from "../../support/event_ids.ts";

test(`KeyTable agrees with a Map (seed ${SEED})`, () => {
  const random = new SeededRandom();
  const table = new KeyTable(UUID_BYTES);
  const plain = new Map<string, string>();
  const parts = ["", "a", "b", "é", "🦄", "aé", "x".repeat(300), "é".repeat(200)];
  const numbers = 5 * BLOCK_ENTRIES;
  for (let added = 0; added < 2 * numbers; added++) {
    const first = `s${random.pick(["", "1", "22"])}`;
    const second = `${random.pick(parts)}${random.below(numbers)}${random.pick(parts)}`;
    const key = `${first} ${second}`;
    const number = table.find(first, second);
    if (number >= 0) {
      const { bytes, at } = table.recordOf(number);
      assert.equal(uuidText(bytes, at), plain.get(key));
    } else {
      assert.ok(!plain.has(key));
      const { bytes, at } = table.recordOf(table.add(first, second));
      writeHex(bytes, at, idAt(added));
      plain.set(key, idAt(added));
    }
  }
  assert.equal(table.count, plain.size);
  [...plain].forEach(([key, value], number) => {
    assert.equal(table.keyOf(number), key);
    const { bytes, at } = table.recordOf(number);
    assert.equal(uuidText(bytes, at), value);
  });
});
