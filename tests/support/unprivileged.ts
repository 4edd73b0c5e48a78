/** Runs the program without root's capability to bypass file permissions. */
import { spawnSync } from "node:child_process";
import process from "node:process";
import { runCli } from "../../tools/support/program.ts";

/** Drops root's capability to bypass file permissions; empty for other users. */
export const UNPRIVILEGED = process.getuid?.() === 0
  ? ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
  : [];

/** Returns the reason why commands cannot run without root's capability; null if they can. */
export async function whyPrivileged(): Promise<string | null> {
  if (UNPRIVILEGED.length === 0) return null;
  const { error } = spawnSync(UNPRIVILEGED[0]!, ["--version"]);
  if (error !== undefined) {
    return `cannot run setpriv to drop root's capabilities: ${error.message}`;
  }
  const { code, stderr } = await runCli(["--version"], { wrapper: UNPRIVILEGED });
  return code === 0 ? null : `root's capabilities cannot be dropped here: ${stderr.trim()}`;
}
