/** The contents of a directory, to compare before and after a test. */
import { lstat, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";

/** All entries below a directory, with metadata that changes on a write. */
export async function treeOf(folder: string): Promise<Record<string, string>> {
  const tree: Record<string, string> = {};
  for (const name of (await readdir(folder, { recursive: true })).sort()) {
    const path = join(folder, name);
    const stat = await lstat(path, { bigint: true });
    const bytes = stat.isFile() ? await readFile(path, "base64") : "";
    tree[name] = `${stat.mode} ${stat.ino} ${stat.mtimeNs} ${bytes}`;
  }
  return tree;
}
