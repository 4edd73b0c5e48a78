/**
 * `segments`: copies each sealed segment to a store once, then the manifest. Segments are
 * immutable, so the service may keep running.
 */
import { join } from "node:path";
import { loadConfig } from "../../src/commands/config.ts";
import { CONFIG_FILE } from "../../src/commands/deployment.ts";
import { operationalError } from "../../src/commands/exit.ts";
import { encodeManifest, readManifest } from "../../src/log/segment/manifest.ts";
import { fileStorage } from "../../src/log/storage/file_storage.ts";
import { MANIFEST_FILE } from "../../src/log/storage/file_names.ts";
import { openStore, readStoredManifest } from "./store.ts";
import { sumOf } from "../../src/sum.ts";

/**
 * Copies the segments that are not in the store yet. After an interruption, the next run resumes.
 * @param dir The deployment's directory.
 * @throws {CommandError} if the store holds a different log or a segment is damaged.
 */
export async function uploadSegments(
  dir: string,
  url: string,
  report: (line: string) => void,
): Promise<void> {
  const { dataDir } = await loadConfig(join(dir, CONFIG_FILE));
  const logDir = join(dataDir, "log");
  const manifest = await readManifest(fileStorage(logDir), "read");
  if (manifest === null) throw operationalError(`${logDir} has no ${MANIFEST_FILE}`);
  const store = openStore(url);
  const stored = (await readStoredManifest(store, url))?.segments ?? [];
  stored.forEach(({ path }, index) => {
    if (manifest.segments[index]?.path === path) return;
    throw operationalError(
      `${url} holds a different log: ${path} is not segment ${index} of ${logDir}`,
    );
  });
  for (const segment of manifest.segments.slice(stored.length)) {
    // Comparing sizes suffices, since names contain the hash and stores hold no partial files.
    if (await store.size(segment.path) === segment.bytes) continue;
    await store.put(segment.path, { ...segment, path: join(logDir, segment.path) });
    report(`stored ${segment.path}`);
  }
  await store.putSmall(MANIFEST_FILE, encodeManifest(manifest));
  const events = sumOf(manifest.segments, ({ events }) => events);
  report(`${url} holds ${manifest.segments.length} segments, ${events} events`);
}
