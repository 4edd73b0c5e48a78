/** Deliberate bugs, each with the tests that must detect it (see `mutate.ts`). */
import { SERVICE_BUGS } from "./service_mutations.ts";
import { type Bugs, type Mutation, mutationsOf } from "./support/mutation.ts";

const BACKLOG = "contract/backlog";
const CRASH_SEQUENCES = "faults/crash_sequences";
const FAULT_POINTS = "faults/fault_points";
const HISTORIES = "faults/histories";
const HANDOVER = "log/handover";
const INDEX = "log/index/index";
const LOG_COPY = "log/log_copy";
const RECOVERY_MISSING_FILES = "log/recovery_missing_files";
const BACKGROUND_SEALING_CRASH = "log/sealing/background_sealing_crash";
const BACKGROUND_SEALING = "log/sealing/background_sealing";
const MERGED_HISTORY = "log/segment/merged_history";
const OWNED_STORAGE = "log/storage/owned_storage";
const VERIFY_FAILURE = "log/verify/verify_failure";
const RESERVED_SPACE = "log/wal/reserved_space";
const FOLLOW = "service/follow";
const SEALING = "service/sealing";

/** Bugs in `src/log/`. */
const LOG_BUGS: Bugs = {
  "log/index/index_merge.ts": {
    "a merge leaves out the last of its inputs": [
      [INDEX, SEALING],
      "    for (const input of inputs) {",
      "    for (const input of inputs.slice(0, -1)) {",
    ],
  },
  "log/index/index_reader.ts": {
    "a page of an index is not checked": [
      INDEX,
      "if (crc32(bytes.subarray(0, PAGE_CRC_START)) !== bytes.readUInt32LE(PAGE_CRC_START)) {",
      "if (bytes.length === 0) {",
    ],
    "a coarse filter is read as a fine one": [
      MERGED_HISTORY,
      "new KeyFilter(filter, batches + streams)",
      "new KeyFilter(filter)",
    ],
    "the index of other segments is used": [
      INDEX,
      "coverage !== this.coverage",
      "coverage === null",
    ],
  },
  "log/log.ts": {
    "a commit is acknowledged after the files were found to be gone": [
      OWNED_STORAGE,
      "      if (this.storage.loss !== null) throw new WriterPoisonedError(this.storage.loss);\n",
    ],
    "a replica acknowledges after a rest without looking at its files": [
      OWNED_STORAGE,
      "    if (this.storage.isDue) await this.storage.assertOwned();\n",
    ],
    "a rotation keeps the reserved space": [
      RESERVED_SPACE,
      "    await this.#writer.trim();\n    const",
    ],
    "ids start over after the service restarts": [
      [CRASH_SEQUENCES, HISTORIES],
      "randomBytes, this.snapshot.frontier)",
      "randomBytes, null)",
    ],
    "a tail that cannot be rotated grows without end": [
      BACKGROUND_SEALING,
      "      if (isTooLarge) {",
      "      if (endBytes < 0) {",
    ],
  },
  "log/log_copy.ts": {
    "a backup copies an older manifest": [LOG_COPY, "    if (failure !== null) throw failure;\n"],
    "a backup claims a commit that is being synced": [
      LOG_COPY,
      "lastEventId <= through ? next.endBytes",
      "true ? next.endBytes",
    ],
    "a backup links a damaged segment": [
      "commands/backup",
      "await this.#isIntact(entry)",
      "entry !== null",
    ],
  },
  "log/parquet/chunk_check.ts": {
    "the CRC-32 of a column chunk is not compared": [
      "log/segment/row_group_decoder",
      "if (crc !== bounds.crc)",
      "if (crc < 0)",
    ],
  },
  "log/read/key_table.ts": {
    "a listing shows later changes to a stream": [
      "log/read/stream_counts",
      "if (this.#shared.delete(bytes))",
      "if (number < 0)",
    ],
  },
  "log/read/snapshot.ts": {
    "a scan that takes long ends before the file whose end it reports": [
      FOLLOW,
      "    yield* file.lines(wanted);\n    if (await endsAfter(file)) return;\n",
      "    if (await endsAfter(file)) return;\n    yield* file.lines(wanted);\n",
    ],
  },
  "log/recovery.ts": {
    "an older manifest is accepted": [
      RECOVERY_MISSING_FILES,
      "  if (unlisted !== null) throw unlisted;\n",
    ],
    "recovery truncates too little": [
      CRASH_SEQUENCES,
      "truncate(endBytes)",
      "truncate(endBytes + 1)",
    ],
    "recovery truncates too much": [
      CRASH_SEQUENCES,
      "truncate(endBytes)",
      "truncate(lastCommitOffset)",
    ],
    "recovery does not sync recovered commits": [
      CRASH_SEQUENCES,
      "  await file.truncate(endBytes);\n  await file.sync();\n",
      "  await file.truncate(endBytes);\n",
    ],
    "recovery does not rewrite what a failed fsync may have lost": [
      [FAULT_POINTS, HISTORIES],
      "    await file.write(wanted, offset);\n",
    ],
    "recovery does not truncate again what a failed fsync may have kept": [
      "log/recovery_durability",
      "  await file.truncate(endBytes);\n",
    ],
    "recovery treats damage before another commit as a remnant": [
      "log/recovery",
      "  if (corruption !== null) throw corruptAt(tail, `${fault}; ${corruption}`);\n",
    ],
    "the chain restarts after a segment": [
      [CRASH_SEQUENCES, HISTORIES],
      "manifest.segments.at(-1)?.head ?? GENESIS",
      "GENESIS",
    ],
  },
  "log/sealing/background_jobs.ts": {
    "a failed seal is retried without backoff": [
      BACKGROUND_SEALING,
      "Math.min(2 * pauseMs, RETRY_MS_MAX)",
      "0",
    ],
  },
  "log/sealing/index_merging.ts": {
    "the index of a run is used before its name is synced": [
      SEALING,
      "  await storage.syncFolder(INDEX_FOLDER);\n",
    ],
  },
  "log/sealing/sealer.ts": {
    "a segment's name is not synced": [
      CRASH_SEQUENCES,
      "    await this.#storage.syncFolder(SEGMENTS_FOLDER);\n",
    ],
    "a pending file is removed before a manifest covers it": [
      CRASH_SEQUENCES,
      "      await writeManifest(this.#storage, manifest);\n",
      "      await this.#storage.remove(file.path);\n" +
      "      await writeManifest(this.#storage, manifest);\n",
      {
        file: "log/sealing/sealer.ts",
        find: "    await this.#storage.remove(path);\n" +
          "    await this.#storage.syncFolder(PENDING_FOLDER);\n",
        replace: "",
      },
    ],
    "the manifest lists a segment before the others from its pending file are written": [
      CRASH_SEQUENCES,
      "      startBytes = endBytes;\n",
      "      startBytes = endBytes;\n" +
      "      await writeManifest(this.#storage, withSegments(this.#manifest, " + "segments));\n",
    ],
    "batches are accepted regardless of the number of pending files": [
      BACKLOG,
      "pending / PENDING_FILES_MAX",
      "0",
    ],
    "batches are accepted regardless of the size of the backlog": [
      BACKLOG,
      "this.#files.backlogBytes / backlogWaitBytes",
      "0 * backlogWaitBytes",
    ],
    "a pending file is dropped from memory before its segments are known": [
      SEALING,
      "    this.#files.replaceOldest(segments);\n",
      "    this.#files.unsealed = this.#files.unsealed.slice(1);\n" +
      '    await this.#storage.list(".");\n' +
      "    this.#files.unsealed = [seal.file, ...this.#files.unsealed];\n" +
      "    this.#files.replaceOldest(segments);\n",
    ],
    "a failed seal leaves its partial segment": [
      BACKGROUND_SEALING,
      "    await removeIfThere(this.#storage, into);\n",
    ],
    "a failed seal keeps the segment that was begun of the next file": [
      BACKGROUND_SEALING,
      "      await this.#dropBegun();\n      throw error;",
      "      throw error;",
    ],
  },
  "log/segment/sealed_history.ts": {
    "a lookup skips the segments of an index that can't be read": [
      MERGED_HISTORY,
      "yield* this.#ask(this.#lose(part, cause), hash, ask);",
      "this.#lose(part, cause);",
    ],
    "a lookup ends when a merge removes its index": [
      MERGED_HISTORY,
      "      yield* mergedStreams(this.#sourcesOf(",
      "      if (next === null) yield* mergedStreams(this.#sourcesOf(",
    ],
  },
  "log/segment/segment_reader.ts": {
    "verify does not check the hash of a segment": [
      VERIFY_FAILURE,
      '"SHA-256 of the file", sha256, await hashFile(file, sizeBytes)',
      '"SHA-256 of the file", sha256, await hashFile(file, sizeBytes).then(() => sha256)',
    ],
  },
  "log/storage/file_storage.ts": {
    "a rotation opens the directories after its first rename": [
      "log/wal/rotation",
      "      folders.set(path, fd);\n",
    ],
    "a short write(2) is treated as complete": [
      "log/wal/short_write",
      "at += count;",
      "at = sizeBytes;",
    ],
    "a sealed file is closed while it is being read": [
      "log/storage/file_storage",
      "    await this.#reading;\n",
    ],
  },
  "log/storage/owned_storage.ts": {
    "names are changed in a directory that replaced the log's": [
      OWNED_STORAGE,
      "    if (loss !== null) throw new WriterPoisonedError(loss);\n",
    ],
  },
  "log/storage/storage.ts": {
    "the manifest's name is not synced": [
      CRASH_SEQUENCES,
      '  await storage.rename(temporaryPath, path);\n  await storage.syncFolder(".");\n',
      "  await storage.rename(temporaryPath, path);\n",
    ],
    "the manifest is renamed before its bytes are synced": [
      CRASH_SEQUENCES,
      "    await file.write(bytes, 0);\n    await file.sync();\n",
      "    await file.write(bytes, 0);\n",
    ],
    "the manifest is replaced in place": [
      CRASH_SEQUENCES,
      '  const file = await storage.open(temporaryPath, "create");\n',
      '  const isThere = (await storage.list("."))?.includes(path);\n' +
      '  const file = await storage.open(path, isThere ? "write" : "create");\n' +
      "  void temporaryPath;\n",
      {
        file: "log/storage/storage.ts",
        find: "  await storage.rename(temporaryPath, path);\n",
        replace: "",
      },
    ],
  },
  "log/verify/inventory.ts": {
    "a lost tail is taken for an interrupted rotation": [
      RECOVERY_MISSING_FILES,
      "pending.length > 0 && orphans",
      "orphans",
    ],
  },
  "log/verify/verify.ts": {
    "verify accepts an older manifest": [
      VERIFY_FAILURE,
      "if (failure === null) return;",
      "if (true) return;",
    ],
  },
  "log/wal/commit_builder.ts": {
    "the last slice of a large batch is not stamped": [
      "service/writer_queue",
      "      stampEvents(",
      "      if (end - first < SLICE_EVENTS || first === 0) stampEvents(",
    ],
  },
  "log/wal/commit_file.ts": {
    "a file need not continue the chain": [
      RECOVERY_MISSING_FILES,
      "if (target.head === null && headAfter(",
      "if (target.head !== null && headAfter(",
    ],
    "a tail that was overwritten in place is still the log's": [
      OWNED_STORAGE,
      "    return byte[0] !== LF;",
      "    return false;",
    ],
    "the identities of recovered batches are forgotten": [
      CRASH_SEQUENCES,
      "    for (const entry of commit.batches) this.batches.add(entry);\n",
      "    for (const entry of Array.isArray(growth) ? commit.batches : []) {\n" +
      "      this.batches.add(entry);\n" + "    }\n",
    ],
  },
  "log/wal/commit_file_view.ts": {
    "a reader of a sealed file rereads its segments from the start": [
      HANDOVER,
      "last.lastEventId || lastRead",
      "lastRead",
    ],
    "a reader of a sealed file reads beyond its snapshot": [
      HANDOVER,
      "yield lines.subarray(0, end);\n",
      "yield lines;\n",
    ],
  },
  "log/wal/commit_reader.ts": {
    "recovery accepts a commit with a wrong hash": [
      CRASH_SEQUENCES,
      " || hashFrame(frame, headerBytes - 1) !== sha256",
      " || hashFrame(frame, headerBytes - 1) === null",
    ],
  },
  "log/wal/history_check.ts": {
    "verify does not check the hash of an event": [
      VERIFY_FAILURE,
      'throw this.failure("envelope hash"',
      'void this.failure("envelope hash"',
    ],
  },
  "log/wal/reserved_space.ts": {
    "zeros are taken for reserved space": [
      RESERVED_SPACE,
      "byte !== pattern[at]",
      "byte !== pattern[at] && byte !== 0",
    ],
    "reserved space is the same in every block": [
      RESERVED_SPACE,
      "digits | 0x80808080",
      "0x80808080 | 0",
    ],
    "reserved space is the same in every tail": [RESERVED_SPACE, "  await file.read(start, 0);\n"],
  },
  "log/wal/rotation.ts": {
    "the name of a new tail's temporary file is not synced before the tail is renamed": [
      CRASH_SEQUENCES,
      '    await storage.syncFolder(".");\n    // A pending file',
      "    // A pending file",
    ],
    "the names of a new tail and a pending file are not synced": [
      CRASH_SEQUENCES,
      '  await storage.syncFolder(PENDING_FOLDER);\n  await storage.syncFolder(".");\n',
    ],
    "a commit is acknowledged before the names of a rotation are durable": [
      BACKGROUND_SEALING_CRASH,
      "    await syncNames(storage);\n",
    ],
    "a half-finished rotation is taken for one that has not begun": [
      BACKGROUND_SEALING_CRASH,
      "    onMoved();\n",
    ],
  },
  "log/wal/tail_writer.ts": {
    "the tail is not synced": [
      CRASH_SEQUENCES,
      "await this.#tail.file.sync(mode)",
      "await Promise.resolve()",
    ],
    "a receipt is sent before the sync": [
      CRASH_SEQUENCES,
      "    await this.#sync(mode);\n    const isQuick",
      "    void this.#sync(mode);\n    const isQuick",
    ],
    "a group commit is truncated and acknowledged": [
      CRASH_SEQUENCES,
      "write(written, offset, mode)",
      "write(written.subarray(0, 1 - commit.batches.length || undefined), offset)",
    ],
    "a failed write is treated as successful": [
      [FAULT_POINTS, HISTORIES],
      '      if (!isNoRoom(error)) throw this.poisonBy("a write to the tail failed", error);\n',
      "      if (!isNoRoom(error)) return;\n",
    ],
    "a commit that ran out of space is not undone, and the next one follows it": [[
      FAULT_POINTS,
      HISTORIES,
    ], "      await this.#undo(offset);\n"],
    "the undo of a commit that ran out of space is not synced": [
      ["service/writer_queue", FAULT_POINTS],
      'could not be truncated", error);\n    });\n    await this.#sync();\n',
      'could not be truncated", error);\n    });\n',
    ],
    "the writer continues after a failed fsync": [
      [FAULT_POINTS, HISTORIES],
      '      throw this.poisonBy("an fsync of the tail failed", error);\n',
      '      throw new StorageFullError("an fsync of the tail failed", { cause: error });\n',
    ],
    "a stopped writer accepts batches": [
      FAULT_POINTS,
      "    if (this.#poison !== null) throw this.#poison;\n",
      "",
      {
        file: "service/writer_queue.ts",
        find: "if (this.#stopped) return",
        replace: "if (false) return",
      },
    ],
    "a reader sees unsynced events": [
      [FAULT_POINTS, HISTORIES],
      "    await this.#sync(mode);\n    const",
      "    const",
      {
        file: "log/wal/tail_writer.ts",
        find: "      this.#tail.add(commit, bytes, growth);\n",
        replace: "      this.#tail.add(commit, bytes, growth);\n    await this.#sync(mode);\n",
      },
      {
        file: "log/wal/commit_file_view.ts",
        find: "{ end: endBytes, lastEventId }, wanted",
        replace: "{ end: target.endBytes, lastEventId }, wanted",
      },
    ],
  },
};

export const MUTATIONS: readonly Mutation[] = mutationsOf({ ...LOG_BUGS, ...SERVICE_BUGS });
