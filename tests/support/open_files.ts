/** What the descriptors of a process refer to, from /proc (Linux only). */
import { existsSync, readdirSync, readlinkSync } from "node:fs";

/** Paths, and names such as `socket:[1]`; nothing without /proc. */
export function openFiles(pid: number): string[] {
  const folder = `/proc/${pid}/fd`;
  if (!existsSync(folder)) return [];
  return readdirSync(folder).flatMap((name) => {
    try {
      return readlinkSync(`${folder}/${name}`);
    } catch {
      return []; // Closed since it was listed.
    }
  });
}
