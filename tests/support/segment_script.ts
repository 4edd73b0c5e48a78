/**
 * Runs under a runtime chosen by a test. `write FOLDER` seals the pending file in a directory;
 * `read FOLDER` prints a hash of the lines in its segments, and whether the segments verify.
 */
import { createHash } from "node:crypto";
import process from "node:process";
import { fileStorage } from "../../src/log/storage/file_storage.ts";
import { HistoryCheck } from "../../src/log/wal/history_check.ts";
import { openSegment } from "../../src/log/segment/segment_reader.ts";
import { verifySegment } from "../../src/log/verify/segment_verifier.ts";
import { readRowGroup, sealPending } from "./test_segment.ts";

const BOUNDS = { events: 6000, bytes: 1e9 };

const [mode, folder] = process.argv.slice(2);
const storage = fileStorage(folder!);
if (mode === "write") {
  process.stdout.write(JSON.stringify(await sealPending(storage, BOUNDS)));
} else {
  const history = new HistoryCheck({ chain: true });
  const hash = createHash("sha256");
  for (const entry of JSON.parse(process.argv[4]!)) {
    await verifySegment(storage, entry, history);
    const segment = await openSegment(storage, entry.path);
    const rowGroups = await segment.rowGroups();
    for (const n of rowGroups.keys()) hash.update(await readRowGroup(segment, n));
    await segment.close();
  }
  process.stdout.write(JSON.stringify([hash.digest("hex"), history.eventsChecked]));
}
