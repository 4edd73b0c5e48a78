/** Deliberate bugs, each with the tests that must detect it (see `mutate.ts`). */

import { BACKGROUND_MUTATIONS } from "./background_mutations.ts";
import { CLIENT_MUTATIONS } from "./client_mutations.ts";
import { OWNERSHIP_MUTATIONS } from "./ownership_mutations.ts";
import { SERVICE_MUTATIONS } from "./service_mutations.ts";
import { edit, type Mutation } from "./support/mutation.ts";

const CRASHES = "tests/faults/crash_sequences_test.ts";
const FAULTS = "tests/faults/fault_points_test.ts";
const HISTORIES = "tests/faults/histories_test.ts";
const BACKLOG = "tests/contract/backlog_test.ts";
const STREAM_COUNTS = "tests/log/read/stream_counts_test.ts";
const SEALING = "tests/log/sealing/background_sealing_test.ts";
const SEALING_CRASHES = "tests/log/sealing/background_sealing_crash_test.ts";
const SEALING_SERVICE = "tests/service/sealing_test.ts";
const HANDOVER = "tests/log/handover_test.ts";

const SYNC_TAIL = "await this.#tail.file.sync(mode)";
const UNLESS_NO_ROOM =
  '      if (!isNoRoom(error)) throw this.poisonBy("a write to the tail failed", error);\n';
const ADD_COMMIT = "      this.#tail.add(commit, bytes, growth);\n";

export const MUTATIONS: readonly Mutation[] = [
  ...OWNERSHIP_MUTATIONS,
  {
    name: "a backup claims a commit that is being synced",
    edits: [
      edit("log/log_copy.ts", "lastEventId <= through ? next.endBytes", "true ? next.endBytes"),
    ],
    tests: ["tests/log/log_copy_test.ts"],
  },
  {
    name: "a backup links a damaged segment",
    edits: [edit("log/log_copy.ts", "await this.#isIntact(entry)", "entry !== null")],
    tests: ["tests/commands/backup_test.ts"],
  },
  {
    name: "a segment's name is not synced",
    edits: [
      edit("log/sealing/sealer.ts", "    await this.#storage.syncFolder(SEGMENTS_FOLDER);\n"),
    ],
    tests: [CRASHES],
  },
  {
    name: "the manifest's name is not synced",
    edits: [edit(
      "log/storage/storage.ts",
      '  await storage.rename(temporaryPath, path);\n  await storage.syncFolder(".");\n',
      "  await storage.rename(temporaryPath, path);\n",
    )],
    tests: [CRASHES],
  },
  {
    name: "the manifest is renamed before its bytes are synced",
    edits: [edit(
      "log/storage/storage.ts",
      "    await file.write(bytes, 0);\n    await file.sync();\n",
      "    await file.write(bytes, 0);\n",
    )],
    tests: [CRASHES],
  },
  {
    name: "the names of a new tail and a pending file are not synced",
    edits: [
      edit(
        "log/wal/rotation.ts",
        '  await storage.syncFolder(PENDING_FOLDER);\n  await storage.syncFolder(".");\n',
      ),
    ],
    tests: [CRASHES],
  },
  {
    name: "the tail is not synced",
    edits: [edit("log/wal/tail_writer.ts", SYNC_TAIL, "await Promise.resolve()")],
    tests: [CRASHES],
  },
  {
    name: "a receipt is sent before the sync",
    edits: [edit(
      "log/wal/tail_writer.ts",
      "    await this.#sync(mode);\n    const isQuick",
      "    void this.#sync(mode);\n    const isQuick",
    )],
    tests: [CRASHES],
  },
  {
    name: "the last slice of a large batch is not stamped",
    edits: [edit(
      "log/wal/commit_builder.ts",
      "      stampEvents(",
      "      if (end - first < SLICE_EVENTS || first === 0) stampEvents(",
    )],
    tests: ["tests/service/large_batches_test.ts"],
  },
  {
    name: "an id is reused when the counter restarts in a new millisecond",
    edits: [edit("event/event_id.ts", "if (nowMs > this.#timestampMs)", "if (true)")],
    tests: ["tests/event/event_id_test.ts"],
  },
  {
    name: "a group commit is truncated and acknowledged",
    edits: [edit(
      "log/wal/tail_writer.ts",
      "write(written, offset, mode)",
      "write(written.subarray(0, 1 - commit.batches.length || undefined), offset)",
    )],
    tests: [CRASHES],
  },
  {
    name: "a rotation keeps the reserved space",
    edits: [edit("log/log.ts", "    await this.#writer.trim();\n    const")],
    tests: ["tests/log/wal/reserved_space_test.ts"],
  },
  {
    name: "a failed write is treated as successful",
    edits: [
      edit("log/wal/tail_writer.ts", UNLESS_NO_ROOM, "      if (!isNoRoom(error)) return;\n"),
    ],
    tests: [FAULTS, HISTORIES],
  },
  {
    name: "a short write(2) is treated as complete",
    edits: [edit(
      "log/storage/file_storage.ts",
      "at += count;",
      "at = sizeBytes;",
    )],
    tests: ["tests/log/wal/short_write_test.ts"],
  },
  {
    name: "a commit that ran out of space is not undone, and the next one follows it",
    edits: [edit("log/wal/tail_writer.ts", "      await this.#undo(offset);\n")],
    tests: [FAULTS, HISTORIES],
  },
  {
    name: "the undo of a commit that ran out of space is not synced",
    edits: [edit(
      "log/wal/tail_writer.ts",
      'could not be truncated", error);\n    });\n    await this.#sync();\n',
      'could not be truncated", error);\n    });\n',
    )],
    tests: [FAULTS, HISTORIES],
  },
  {
    name: "the writer continues after a failed fsync",
    edits: [edit(
      "log/wal/tail_writer.ts",
      '      throw this.poisonBy("an fsync of the tail failed", error);\n',
      '      throw new StorageFullError("an fsync of the tail failed", { cause: error });\n',
    )],
    tests: [FAULTS, HISTORIES],
  },
  {
    name: "a stopped writer accepts batches",
    edits: [
      edit("log/wal/tail_writer.ts", "    if (this.#poison !== null) throw this.#poison;\n"),
      edit("service/writer_queue.ts", "if (this.#stopped) return", "if (false) return"),
    ],
    tests: [FAULTS],
  },
  {
    name: "recovery truncates too little",
    edits: [edit("log/recovery.ts", "truncate(endBytes)", "truncate(endBytes + 1)")],
    tests: [CRASHES],
  },
  {
    name: "recovery truncates too much",
    edits: [edit("log/recovery.ts", "truncate(endBytes)", "truncate(lastCommitOffset)")],
    tests: [CRASHES],
  },
  {
    name: "recovery does not sync recovered commits",
    edits: [
      edit(
        "log/recovery.ts",
        "  await file.truncate(endBytes);\n  await file.sync();\n",
        "  await file.truncate(endBytes);\n",
      ),
    ],
    tests: [CRASHES],
  },
  {
    name: "recovery does not rewrite what a failed fsync may have lost",
    edits: [edit("log/recovery.ts", "    await file.write(wanted, offset);\n")],
    tests: [FAULTS, HISTORIES],
  },
  {
    name: "recovery does not truncate again what a failed fsync may have kept",
    edits: [edit("log/recovery.ts", "  await file.truncate(endBytes);\n")],
    tests: ["tests/log/recovery_durability_test.ts"],
  },
  {
    name: "recovery treats damage before another commit as a remnant",
    edits: [
      edit(
        "log/recovery.ts",
        "  if (corruption !== null) throw corruptAt(tail, `${fault}; ${corruption}`);\n",
      ),
    ],
    tests: ["tests/log/recovery_test.ts"],
  },
  {
    name: "recovery accepts a commit with a wrong hash",
    edits: [edit(
      "log/wal/commit_reader.ts",
      " || hashFrame(frame, headerBytes - 1) !== sha256",
      " || hashFrame(frame, headerBytes - 1) === null",
    )],
    tests: [CRASHES],
  },
  {
    name: "the chain restarts after a segment",
    edits: [edit("log/recovery.ts", "manifest.segments.at(-1)?.head ?? GENESIS", "GENESIS")],
    tests: [CRASHES, HISTORIES],
  },
  {
    name: "ids start over after the service restarts",
    edits: [edit("log/log.ts", "randomBytes, this.snapshot.frontier)", "randomBytes, null)")],
    tests: [CRASHES, HISTORIES],
  },
  {
    name: "the identities of recovered batches are forgotten",
    edits: [
      edit(
        "log/wal/commit_file.ts",
        "    for (const entry of commit.batches) this.batches.add(entry);\n",
        "    for (const entry of Array.isArray(growth) ? commit.batches : []) {\n" +
          "      this.batches.add(entry);\n    }\n",
      ),
    ],
    tests: [CRASHES],
  },
  {
    name: "the manifest is replaced in place",
    edits: [
      edit(
        "log/storage/storage.ts",
        '  const file = await storage.open(temporaryPath, "create");\n',
        '  const isThere = (await storage.list("."))?.includes(path);\n' +
          '  const file = await storage.open(path, isThere ? "write" : "create");\n' +
          "  void temporaryPath;\n",
      ),
      edit("log/storage/storage.ts", "  await storage.rename(temporaryPath, path);\n"),
    ],
    tests: [CRASHES],
  },
  {
    name: "a pending file is removed before a manifest covers it",
    edits: [
      edit(
        "log/sealing/sealer.ts",
        "      await writeManifest(this.#storage, manifest);\n",
        "      await this.#storage.remove(file.path);\n" +
          "      await writeManifest(this.#storage, manifest);\n",
      ),
      edit(
        "log/sealing/sealer.ts",
        "    await this.#storage.remove(path);\n" +
          "    await this.#storage.syncFolder(PENDING_FOLDER);\n",
      ),
    ],
    tests: [CRASHES],
  },
  {
    name: "the manifest lists a segment before the others from its pending file are written",
    edits: [
      edit(
        "log/sealing/sealer.ts",
        "      startBytes = endBytes;\n",
        "      startBytes = endBytes;\n" +
          "      await writeManifest(this.#storage, withSegments(this.#manifest, segments));\n",
      ),
    ],
    tests: [CRASHES],
  },
  {
    name: "a reader sees unsynced events",
    edits: [
      edit("log/wal/tail_writer.ts", "    await this.#sync(mode);\n    const", "    const"),
      edit("log/wal/tail_writer.ts", ADD_COMMIT, `${ADD_COMMIT}    await this.#sync(mode);\n`),
      edit(
        "log/wal/commit_file_view.ts",
        "{ end: endBytes, lastEventId }, wanted",
        "{ end: target.endBytes, lastEventId }, wanted",
      ),
    ],
    tests: [FAULTS, HISTORIES],
  },
  {
    name: "the lock is not taken",
    edits: [edit(
      "runtime/file_lock.ts",
      '  return "Deno" in globalThis ? await lockFileOnDeno(path) : lockFileOnNode(path);\n',
      "  void [lockFileOnDeno, lockFileOnNode];\n  return await Promise.resolve(() => {});\n",
    )],
    tests: ["tests/runtime/file_lock_test.ts"],
  },
  {
    name: "verify does not check the hash of a segment",
    edits: [
      edit(
        "log/segment/segment_reader.ts",
        '"SHA-256 of the file", sha256, await hashFile(file, sizeBytes)',
        '"SHA-256 of the file", sha256, await hashFile(file, sizeBytes).then(() => sha256)',
      ),
    ],
    tests: ["tests/log/verify/verify_failure_test.ts"],
  },
  {
    name: "the CRC-32 of a column chunk is not compared",
    edits: [edit("log/parquet/chunk_check.ts", "if (crc !== bounds.crc)", "if (crc < 0)")],
    tests: ["tests/log/parquet/column_reader_test.ts"],
  },
  {
    name: "verify does not check the hash of an event",
    edits: [
      edit(
        "log/wal/history_check.ts",
        'throw this.failure("envelope hash"',
        'void this.failure("envelope hash"',
      ),
    ],
    tests: ["tests/log/verify/verify_failure_test.ts"],
  },
  {
    name: "a commit is acknowledged before the names of a rotation are durable",
    edits: [edit("log/wal/rotation.ts", "    await syncNames(storage);\n")],
    tests: [SEALING_CRASHES],
  },
  {
    name: "batches are accepted regardless of the number of pending files",
    edits: [edit("log/sealing/sealer.ts", "pending / PENDING_FILES_MAX", "0")],
    tests: [BACKLOG],
  },
  {
    name: "batches are accepted regardless of the size of the backlog",
    edits: [
      edit(
        "log/sealing/sealer.ts",
        "this.#files.backlogBytes / backlogWaitBytes",
        "0 * backlogWaitBytes",
      ),
    ],
    tests: [BACKLOG],
  },
  {
    name: "a retry of a committed batch waits for sealing",
    edits: [
      edit("service/event_log.ts", "return known === null ? null", "return known !== null ? null"),
    ],
    tests: [BACKLOG],
  },
  {
    name: "a tail that cannot be rotated grows without end",
    edits: [edit("log/log.ts", "      if (isTooLarge) {", "      if (endBytes < 0) {")],
    tests: [SEALING],
  },
  {
    name: "a listing shows later changes to a stream",
    edits: [edit("log/read/key_table.ts", "if (this.#shared.delete(bytes))", "if (number < 0)")],
    tests: [STREAM_COUNTS],
  },
  {
    name: "a half-finished rotation is taken for one that has not begun",
    edits: [edit("log/wal/rotation.ts", "    onMoved();\n")],
    tests: [SEALING_CRASHES],
  },
  {
    name: "a reader of a sealed file rereads its segments from the start",
    edits: [
      edit(
        "log/wal/commit_file_view.ts",
        "lastEventIdOf(lines) ?? lastRead",
        "lastRead",
      ),
    ],
    tests: [HANDOVER],
  },
  {
    name: "a reader of a sealed file reads beyond its snapshot",
    edits: [edit(
      "log/wal/commit_file_view.ts",
      "yield lines.subarray(0, end);\n",
      "yield lines;\n",
    )],
    tests: [HANDOVER],
  },
  {
    name: "a sealed file is closed while it is being read",
    edits: [edit("log/storage/file_storage.ts", "    await this.#reading;\n")],
    tests: ["tests/log/storage/file_storage_test.ts"],
  },
  {
    name: "a pending file is dropped from memory before its segments are known",
    edits: [
      edit(
        "log/sealing/sealer.ts",
        "    this.#files.replaceOldest(segments);\n",
        "    this.#files.unsealed = this.#files.unsealed.slice(1);\n" +
          '    await this.#storage.list(".");\n' +
          "    this.#files.unsealed = [file, ...this.#files.unsealed];\n" +
          "    this.#files.replaceOldest(segments);\n",
      ),
    ],
    tests: [SEALING_SERVICE],
  },
  ...BACKGROUND_MUTATIONS,
  ...CLIENT_MUTATIONS,
  ...SERVICE_MUTATIONS,
];
