/** The soak finds what a service has lost. The tests in `tests/faults/` soak a correct one. */
import assert from "node:assert/strict";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import type { Scene } from "../../tools/soak/disturbances.ts";
import { SoakError } from "../../tools/soak/run.ts";
import { withFolder } from "../../tools/support/program.ts";
import { soakThrough } from "../faults/support/soaked.ts";
import { loseTail } from "../support/lost_tail.ts";
import { until } from "../support/scenes.ts";
import { SEED } from "../../tools/support/random.ts";

/** Messages for the violation. The audit, a writer, a reader or a follower may detect it first. */
const LOSSES = new RegExp([
  ...["is lost", "was (committed|retired) twice", "has two receipts"],
  ...["_conflict", "source_(retired|not_found)", "was reported as", "does not advance"],
  ...["was found \\d", "saw \\d", "listed ", "is no event in the log"],
].join("|"));

/** Size to which the tail is truncated: smaller than any commit, so that only a remnant is left. */
const KEPT_BYTES = 100;

test(`runSoak() detects lost acknowledged batches (SEED=${SEED})`, () =>
  withFolder(async (dir) => {
    const lose = async (scene: Scene) => {
      const { tally } = scene;
      await until(
        scene,
        () => ["batches", "pages", "followed"].every((name) => tally.of(name) > 0),
      );
      await loseTail(scene, KEPT_BYTES);
    };
    const error = await soakThrough([lose], { dir, loadMsMax: 500 }).then(() => null, (e) => e);
    assert.ok(error instanceof SoakError, `the soak found a violation: ${error}`);
    assert.match(error.message, LOSSES);
    assert.ok((await stat(join(error.dir, "service.toml"))).isFile(), "the log is preserved");
  }));
