/**
 * Checks the log on a disk image that was left by a power failure. Mounts the image on the host, so
 * that the host's kernel and then the log recover.
 */
import { join } from "node:path";
import { openLog } from "../../src/log/log.ts";
import { EventScan } from "../../src/log/read/event_scan.ts";
import type { LogSnapshot } from "../../src/log/read/snapshot.ts";
import { fileStorage } from "../../src/log/storage/file_storage.ts";
import { verifyLog } from "../../src/log/verify/verify.ts";
import type { Audit } from "../soak/audit.ts";
import type { Due } from "../soak/ledger.ts";
import { claim } from "../soak/violation.ts";
import { type FileSystem, withMounted } from "./disks.ts";

const PAGE_BYTES = 1024 * 1024;

/**
 * Recovers the log on a disk image, which changes the image, and reads the whole log. @returns the
 * number of its segments.
 * @throws {Violation} if the log lacks something that it must contain, or `verify --chain` fails.
 */
export function checkDisk(
  disk: string,
  fileSystem: FileSystem,
  audit: Audit,
  due: Due,
): Promise<number> {
  return withMounted(disk, fileSystem, async (folder) => {
    const storage = fileStorage(join(folder, "deployment", "data", "log"));
    const log = await openLog({
      storage,
      clockMs: Date.now,
      randomBytes: (into) => void crypto.getRandomValues(into as Uint8Array<ArrayBuffer>),
      report: () => {},
    });
    try {
      await readInto(audit, log.snapshot);
      audit.settle(due);
    } finally {
      await log.close();
    }
    const { report, failure } = await verifyLog(storage, { chain: true });
    claim(failure === null, `verify --chain: ${failure?.message}`);
    return report.segments_checked;
  });
}

async function readInto(audit: Audit, snapshot: LogSnapshot): Promise<void> {
  let after: string | undefined;
  for (;;) {
    const limits = { limitEvents: Infinity, limitBytes: PAGE_BYTES };
    const scan = new EventScan(snapshot, { after, filter: {}, ...limits });
    const pieces: string[] = [];
    for (let piece = await scan.next(); piece !== null; piece = await scan.next()) {
      if (piece.length > 0) pieces.push(piece.toString());
    }
    if (pieces.length === 0) return;
    audit.takeAll(JSON.parse(`[${pieces.join(",")}]`));
    after = scan.nextAfter ?? undefined;
  }
}
