import assert from "node:assert/strict";
import { test } from "node:test";
import { startProgress } from "../../src/commands/progress.ts";
import { PROGRESS_INTERVAL_MS } from "../../src/limits.ts";

test("startProgress() shows no more than one text at a time, and ends with none", (context) => {
  context.mock.method(performance, "now", () => nowMs);
  let nowMs = 1000;
  const shown: string[] = [];
  const terminal = { showProgress: (text: string) => void shown.push(text) };
  const progress = startProgress(terminal, (done) => `${done} done`);
  progress.update(1);
  nowMs += PROGRESS_INTERVAL_MS;
  progress.update(2);
  progress.update(3);
  nowMs += PROGRESS_INTERVAL_MS - 1;
  progress.update(4);
  nowMs += 1;
  progress.update(5);
  progress.end();
  assert.deepEqual(shown, ["2 done", "5 done", ""]);
});
