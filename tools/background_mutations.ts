/** Deliberate bugs in retries of sealing, in indexes and their merging; see `mutations.ts`. */
import { edit, type Mutation } from "./support/mutation.ts";

const SEALING = "tests/log/sealing/background_sealing_test.ts";
const INDEX = "tests/log/index/index_test.ts";
const MERGED_HISTORY = "tests/log/segment/merged_history_test.ts";
const MERGED_SERVICE = "tests/service/merged_test.ts";

export const BACKGROUND_MUTATIONS: readonly Mutation[] = [
  {
    name: "a failed seal leaves its partial segment",
    edits: [
      edit(
        "log/sealing/sealer.ts",
        "    await removeIfThere(this.#storage, SEGMENT_TEMPORARY_FILE);\n",
      ),
    ],
    tests: [SEALING],
  },
  {
    name: "a failed seal is retried without backoff",
    edits: [
      edit("log/sealing/background_jobs.ts", "Math.min(2 * pauseMs, RETRY_MS_MAX)", "0"),
    ],
    tests: [SEALING],
  },
  {
    name: "the index of a run is used before its name is synced",
    edits: [edit("log/sealing/index_merging.ts", "  await storage.syncFolder(INDEX_FOLDER);\n")],
    tests: [MERGED_SERVICE],
  },
  {
    name: "a lookup skips the segments of an index that can't be read",
    edits: [edit(
      "log/segment/sealed_history.ts",
      "yield* this.#ask(this.#lose(part, cause), hash, ask);",
      "this.#lose(part, cause);",
    )],
    tests: [MERGED_HISTORY],
  },
  {
    name: "a lookup ends when a merge removes its index",
    edits: [edit(
      "log/segment/sealed_history.ts",
      "      yield* mergedStreams(this.#sourcesOf(",
      "      if (next === null) yield* mergedStreams(this.#sourcesOf(",
    )],
    tests: [MERGED_HISTORY],
  },
  {
    name: "a merge leaves out the last of its inputs",
    edits: [edit(
      "log/index/index_merge.ts",
      "    for (const input of inputs) {",
      "    for (const input of inputs.slice(0, -1)) {",
    )],
    tests: [INDEX, MERGED_SERVICE],
  },
  {
    name: "a page of an index is not checked",
    edits: [edit(
      "log/index/index_reader.ts",
      "if (crc32(bytes.subarray(0, PAGE_CRC_START)) !== bytes.readUInt32LE(PAGE_CRC_START)) {",
      "if (bytes.length === 0) {",
    )],
    tests: [INDEX],
  },
  {
    name: "the index of other segments is used",
    edits: [edit("log/index/index_reader.ts", "coverage !== this.coverage", "coverage === null")],
    tests: [INDEX],
  },
];
