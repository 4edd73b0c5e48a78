import assert from "node:assert/strict";
import { test } from "node:test";
import {
  batchIdFault,
  kindFault,
  nameFault,
  recordKeyFault,
  sourceFault,
} from "../../src/event/names.ts";

test("nameFault() accepts [a-z0-9_][a-z0-9_.-]* up to 128 bytes", () => {
  for (const name of ["a", "0", "_", "a.b-c_9", "service.source_lineage", "a".repeat(128)]) {
    assert.equal(nameFault(name), null, name);
  }
  const refused = ["", ".a", "-a", "A", "aB", "a b", "a/b", "\u00e9", "a\n", "a".repeat(129)];
  for (const name of refused) assert.equal(typeof nameFault(name), "string", name);
});

test("sourceFault() reserves the system source for the service", () => {
  assert.match(sourceFault("system")!, /reserved/);
  for (const name of ["system2", "systems", "a"]) assert.equal(sourceFault(name), null, name);
  assert.equal(typeof sourceFault("System"), "string");
});

test("kindFault(), recordKeyFault() and batchIdFault() count UTF-8 bytes", () => {
  const rules: [(text: string) => string | null, limitBytes: number][] = [
    [kindFault, 128],
    [recordKeyFault, 1024],
    [batchIdFault, 256],
  ];
  for (const [fault, limitBytes] of rules) {
    assert.match(fault("")!, /empty/);
    for (const char of ["a", "\u00e9", "\u20ac", "\u{1f600}", "\u0000"]) {
      const charBytes = new TextEncoder().encode(char).length;
      const full = char.repeat(Math.floor(limitBytes / charBytes));
      const padded = full + "a".repeat(limitBytes % charBytes);
      assert.equal(fault(padded), null, `${fault.name} ${char}`);
      assert.match(fault(padded + "a")!, new RegExp(`${limitBytes + 1} bytes`), fault.name);
    }
  }
});

test("batchIdFault() reserves ids that begin with service/ for the service", () => {
  assert.match(batchIdFault("service/")!, /reserved/);
  assert.match(batchIdFault("service/retire/a/b")!, /reserved/);
  for (const id of ["service", "Service/a", "a/service/", " service/"]) {
    assert.equal(batchIdFault(id), null, id);
  }
});
