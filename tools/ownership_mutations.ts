/** Deliberate bugs in what tells lost or replaced files, and lost bytes, from a crash. */
import { edit, type Mutation } from "./support/mutation.ts";

export const OWNERSHIP_MUTATIONS: readonly Mutation[] = [
  {
    name: "the name of a new tail's temporary file is not synced before the tail is renamed",
    edits: [edit(
      "log/wal/rotation.ts",
      '    await storage.syncFolder(".");\n    // A pending file',
      "    // A pending file",
    )],
    tests: ["tests/log/recovery_missing_files_test.ts", "tests/faults/crash_sequences_test.ts"],
  },
  {
    name: "a rotation opens the directories after its first rename",
    edits: [edit("log/storage/file_storage.ts", "      folders.set(path, fd);\n")],
    tests: ["tests/log/wal/rotation_test.ts"],
  },
  {
    name: "a lost tail is taken for an interrupted rotation",
    edits: [edit("log/verify/inventory.ts", "pending.length > 0 && orphans", "orphans")],
    tests: ["tests/log/recovery_missing_files_test.ts"],
  },
  {
    name: "a file need not continue the chain",
    edits: [edit(
      "log/wal/commit_file.ts",
      "if (target.head === null && headAfter(",
      "if (target.head !== null && headAfter(",
    )],
    tests: ["tests/log/recovery_missing_files_test.ts"],
  },
  {
    name: "an older manifest is accepted",
    edits: [edit("log/recovery.ts", "  if (unlisted !== null) throw unlisted;\n")],
    tests: ["tests/log/recovery_missing_files_test.ts"],
  },
  {
    name: "verify accepts an older manifest",
    edits: [edit("log/verify/verify.ts", "if (failure === null) return;", "if (true) return;")],
    tests: ["tests/log/verify/verify_failure_test.ts"],
  },
  {
    name: "a backup copies an older manifest",
    edits: [edit("log/log_copy.ts", "    if (failure !== null) throw failure;\n")],
    tests: ["tests/log/log_copy_test.ts"],
  },
  {
    name: "zeros are taken for reserved space",
    edits: [edit(
      "log/wal/reserved_space.ts",
      "byte !== pattern[at]",
      "byte !== pattern[at] && byte !== 0",
    )],
    tests: ["tests/log/wal/reserved_space_test.ts"],
  },
  {
    name: "reserved space is the same in every block",
    edits: [edit("log/wal/reserved_space.ts", "digits | 0x80808080", "0x80808080 | 0")],
    tests: ["tests/log/wal/reserved_space_test.ts"],
  },
  {
    name: "reserved space is the same in every tail",
    edits: [edit("log/wal/reserved_space.ts", "  await file.read(start, 0);\n")],
    tests: ["tests/log/wal/reserved_space_test.ts"],
  },
  {
    name: "a receipt after a rest does not look at the files",
    edits: [
      edit("service/writer_queue.ts", "if (!storage.isDue) return null;", "if (true) return null;"),
    ],
    tests: ["tests/log/storage/owned_storage_test.ts"],
  },
  {
    name: "a commit is acknowledged after the files were found to be gone",
    edits: [edit(
      "log/log.ts",
      "      if (this.storage.loss !== null) throw new WriterPoisonedError(this.storage.loss);\n",
    )],
    tests: ["tests/log/storage/owned_storage_test.ts"],
  },
  {
    name: "a replica acknowledges after a rest without looking at its files",
    edits: [edit(
      "log/log.ts",
      "    if (this.storage.isDue) await this.storage.assertOwned();\n",
    )],
    tests: ["tests/log/storage/owned_storage_test.ts"],
  },
  {
    name: "a service without requests does not look at its files",
    edits: [edit("commands/serve.ts", "void findLoss().catch(() => {}), OWN", "{}, OWN")],
    tests: ["tests/faults/swapped_folder_test.ts"],
  },
  {
    name: "a tail that was overwritten in place is still the log's",
    edits: [edit("log/wal/commit_file.ts", "    return byte[0] !== LF;", "    return false;")],
    tests: ["tests/log/storage/owned_storage_test.ts"],
  },
  {
    name: "names are changed in a directory that replaced the log's",
    edits: [edit(
      "log/storage/owned_storage.ts",
      "    if (loss !== null) throw new WriterPoisonedError(loss);\n",
    )],
    tests: ["tests/log/storage/owned_storage_test.ts"],
  },
  {
    name: "a service whose files are gone puts a socket into their place",
    edits: [edit("http/server.ts", "    await options.mayReopen?.();\n")],
    tests: ["tests/faults/swapped_folder_test.ts"],
  },
];
