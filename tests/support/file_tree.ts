/** The contents of a directory, to compare before and after a test. */
import { lstat, readdir, readFile } from "node:fs/promises";
import { join, relative } from "node:path";

/** All entries below a directory, with metadata that changes on a write. */
export async function treeOf(folder: string): Promise<Record<string, string>> {
  const tree: Record<string, string> = {};
  for (const name of (await readdir(folder, { recursive: true })).sort()) {
    const path = join(folder, name);
    const { mode, ino, mtimeNs } = await lstat(path, { bigint: true });
    const isFile = (await lstat(path)).isFile();
    const bytes = isFile ? (await readFile(path)).toString("base64") : "";
    tree[relative(folder, path)] = `${mode} ${ino} ${mtimeNs} ${bytes}`;
  }
  return tree;
}
