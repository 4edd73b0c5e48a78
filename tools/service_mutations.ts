/** Deliberate bugs in the writer's queue, its checks and the followers (see `mutate.ts`). */
import { edit, type Mutation } from "./support/mutation.ts";

const CRASHES = "tests/faults/crash_sequences_test.ts";
const FAULTS = "tests/faults/fault_points_test.ts";
const HISTORIES = "tests/faults/histories_test.ts";
const FOLLOW_RANDOM = "tests/service/follow_random_test.ts";
const FOLLOW = "tests/service/follow_test.ts";

const MATCH_SKIPPED = "this.#matchAfter = this.#hub.changes.frontier;";

export const SERVICE_MUTATIONS: readonly Mutation[] = [
  {
    name: "the identities of sealed batches are not looked up",
    edits: [
      edit(
        "service/log_state.ts",
        "this.#files.sealed.findBatch(source, batchId);",
        "null;",
      ),
    ],
    tests: [CRASHES],
  },
  {
    name: "a retirement in a segment is not found",
    edits: [edit(
      "service/log_state.ts",
      "(entry) => entry && {",
      "(entry) => entry && null && {",
    )],
    tests: [CRASHES],
  },
  {
    name: "a conflict is detected by batch id alone, not by source",
    edits: [edit(
      "service/mutation.ts",
      "batch.batchDigest === known.batch_digest",
      "batch.batchId === known.batch_id",
    )],
    tests: [CRASHES],
  },
  {
    name: "a batch does not wait for another one with the same identity",
    edits: [
      edit("service/mutation.ts", "reads = [FACT.batch(source, batchId), ", "reads = ["),
    ],
    tests: [HISTORIES],
  },
  {
    name: "a precondition does not wait for a batch in its stream",
    edits: [edit("service/mutation.ts", "if (precondition) reads", "if (false) reads")],
    tests: [HISTORIES],
  },
  {
    name: "a precondition waits only for the first stream of a batch",
    edits: [
      edit("service/mutation.ts", "...events.streams.map(", "...events.streams.slice(0, 1).map("),
    ],
    tests: [HISTORIES],
  },
  {
    name: "a batch does not wait for the retirement of its source",
    edits: [edit("service/mutation.ts", "batchId), FACT.lifecycle(source)];", "batchId)];")],
    tests: [HISTORIES, "tests/service/lifecycle_test.ts"],
  },
  {
    name: "a retirement does not wait for the batches of its source",
    edits: [edit("service/mutation.ts", "reads: [FACT.source(source), ", "reads: [")],
    tests: [HISTORIES, "tests/service/lifecycle_test.ts"],
  },
  {
    name: "a lineage marker does not wait for the retirement of its predecessor",
    edits: [
      edit("service/mutation.ts", ", FACT.lifecycle(lineage.predecessorSource));", ");"),
    ],
    tests: ["tests/service/lineage_test.ts"],
  },
  {
    name: "a lineage marker does not wait for the batches of its source",
    edits: [edit("service/mutation.ts", "reads.push(FACT.source(source), ", "reads.push(")],
    tests: ["tests/service/lineage_test.ts"],
  },
  {
    name: "a batch overtakes one on which it depends and that waits",
    edits: [edit(
      "service/writer_queue.ts",
      "        waiting.push(queued);\n        unlisted.push(queued);\n",
      "        waiting.push(queued);\n",
    )],
    tests: ["tests/service/lifecycle_test.ts", "tests/service/precondition_test.ts"],
  },
  {
    name: "what waits is rejected with the commit that fails",
    edits: [edit(
      "service/writer_queue.ts",
      "      for (const { queued } of committing) queued.reject(failure);\n",
      "      for (const { queued } of committing) queued.reject(failure);\n" +
        "      for (const { reject } of this.#queue.splice(0)) reject(failure);\n",
    )],
    tests: ["tests/service/precondition_test.ts"],
  },
  {
    name: "a follower misses commits during its snapshot",
    edits: [edit(
      "service/follow.ts",
      '    this.#phase = "live";\n',
      '    this.#phase = "live";\n    this.#after = this.#hub.snapshot().frontier;\n',
    )],
    tests: [FOLLOW_RANDOM, FOLLOW],
  },
  {
    name: "followers are not notified that the writer stopped",
    edits: [edit(
      "service/writer_queue.ts",
      "    this.#changes.fire();\n    return",
      "    return",
    )],
    tests: [FAULTS, "tests/contract/follow_end_test.ts"],
  },
  {
    name: "a commit that matches during a read is missed",
    edits: [edit(
      "service/follow.ts",
      "    if (!page.exhausted) this.#matchAfter = null;\n",
      "    this.#matchAfter = page.exhausted ? undefined : null;\n",
    )],
    tests: [FOLLOW_RANDOM, FOLLOW],
  },
  {
    name: "a follower skips the commit that matches",
    edits: [edit("service/follow.ts", "this.#matchAfter = before;", MATCH_SKIPPED)],
    tests: [FOLLOW_RANDOM, FOLLOW],
  },
  {
    name: "a follower skips what is left of a full page",
    edits: [
      edit("service/follow.ts", "    if (!page.exhausted) this.#matchAfter = null;\n", ""),
    ],
    tests: [FOLLOW_RANDOM, FOLLOW],
  },
  {
    name: "only the first event of a batch wakes followers of its key",
    edits: [
      edit("service/change_signal.ts", "index < events.count", "index < 1"),
    ],
    tests: ["tests/service/change_signal_test.ts", FOLLOW_RANDOM],
  },
  {
    name: "a scan that takes long ends before the file whose end it reports",
    edits: [edit(
      "log/read/snapshot.ts",
      "    yield* file.lines(wanted);\n    if (await endsAfter(file)) return;\n",
      "    if (await endsAfter(file)) return;\n    yield* file.lines(wanted);\n",
    )],
    tests: [FOLLOW],
  },
];
