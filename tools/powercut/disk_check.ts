/**
 * Checks the log on a disk image that was left by a power failure. Mounts the image on the host, so
 * that the host's kernel and then the log recover.
 */
import { join } from "node:path";
import { openLog } from "../../src/log/log.ts";
import { verifyLog } from "../../src/log/verify/verify.ts";
import { readAll, realOptions } from "../../tests/support/test_log.ts";
import type { Audit } from "../soak/audit.ts";
import type { Due } from "../soak/ledger.ts";
import { claim } from "../soak/violation.ts";
import { type FileSystem, withMounted } from "./disks.ts";

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
    const options = realOptions(join(folder, "deployment", "data", "log"));
    const log = await openLog(options);
    try {
      audit.takeAll(await readAll(log.snapshot));
      audit.settle(due);
    } finally {
      await log.close();
    }
    const { report, failure } = await verifyLog(options.storage, { chain: true });
    claim(failure === null, `verify --chain: ${failure?.message}`);
    return report.segments_checked;
  });
}
