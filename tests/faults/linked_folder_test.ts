/**
 * The bug: `serve` and `seal` followed a symlink in the place of `segments/`, `pending/` or the log
 * folder and wrote where it led, and `verify` took a dangling `pending/` for an empty one. `init`
 * refused all of these from the start.
 */
import assert from "node:assert/strict";
import { basename, join } from "node:path";
import { test } from "node:test";
import { withFolder } from "../../tools/support/program.ts";
import { makeWhole, runOn, withHostile } from "./support/hostile_deployment.ts";
import { HOSTILE_ENTRIES } from "./support/hostile_entry.ts";

for (const place of ["data/log/segments", "data/log/pending", "data/log"]) {
  test(`seal and verify refuse a symlink at ${place}, wherever it leads`, () =>
    withFolder(async (folder) => {
      const whole = await makeWhole(join(folder, "whole"));
      for (const entry of HOSTILE_ENTRIES.filter(({ title }) => title.includes("symlink"))) {
        const { isOutsideUntouched } = await withHostile(whole, place, entry, async (dir) => {
          for (const command of ["seal", "verify"]) {
            const { status, stderr } = await runOn(dir, [command]);
            // A segment that cannot be reached may be told as one that is missing.
            assert.ok(status === 1 || command === "verify" && status === 3, stderr);
            assert.ok(stderr.includes(basename(place)), stderr);
          }
        });
        assert.ok(isOutsideUntouched, entry.title);
      }
    }));
}
