import assert from "node:assert/strict";
import { test } from "node:test";
import { chooseRuns, mergeable, RUN_SEGMENTS, runOf } from "../../../src/log/index/run_plan.ts";

interface Part {
  level: number;
  first: number;
}

/** Merges, as segments are added one at a time, whatever can be merged. */
function partsOf(segments: number): Part[] {
  const parts: Part[] = [];
  for (let first = 0; first < segments; first++) {
    parts.push({ level: 0, first });
    for (;;) {
      const [group] = mergeable(parts);
      if (group === undefined) break;
      const merged = { level: group[0]!.level + 1, first: group[0]!.first };
      parts.splice(parts.indexOf(group[0]!), group.length, merged);
    }
  }
  return parts;
}

test("runs grow eightfold up to 512 segments, and double from there", () => {
  const cases: [number, number[]][] = [
    [7, [1, 1, 1, 1, 1, 1, 1]],
    [8, [8]],
    [74, [64, 8, 1, 1]],
    [1023, [512, ...Array(7).fill(64), ...Array(7).fill(8), ...Array(7).fill(1)]],
    [1024, [1024]],
    [1136, [1024, 64, 8, 8, 8, 8, 8, 8]],
    [7000, [4096, 2048, 512, 64, 64, 64, 64, 64, 8, 8, 8]],
  ];
  for (const [segments, sizes] of cases) {
    const parts = partsOf(segments);
    assert.deepEqual(parts.map(({ level }) => RUN_SEGMENTS[level]), sizes, `${segments} segments`);
  }
});

test("the largest indexes that exist are chosen, and cover each segment at most once", () => {
  const segments = Array.from({ length: 1100 }, (_, number) => ({
    sha256: `${number}`,
    first_event_id: `f${number}`,
    last_event_id: `l${number}`,
  }));
  const runs = [[1, 0], [3, 0], [3, 512], [4, 0], [2, 1024], [1, 1088], [1, 1080]] as const;
  const paths = new Set(runs.map(([level, first]) => runOf(segments, level, first).path));
  const chosen = chooseRuns(segments, paths).map(({ level, first }) => [level, first]);
  assert.deepEqual(chosen, [[4, 0], [2, 1024], [1, 1088]]);
  const others = chooseRuns(segments.toSpliced(3, 1, { ...segments[3]!, sha256: "x" }), paths);
  assert.deepEqual(others.map(({ first }) => first), [512, 1024, 1088]);
});
