/** Runs a new executable, because compilation succeeds even if the wrong runtime was embedded. */
import { spawnSync } from "node:child_process";
import process from "node:process";

const TRIAL_TIMEOUT_MS = 60_000;

/** @throws {Error} if `--version` does not print `version`. The message gives the reason. */
export function requireVersion(path: string, version: string): void {
  const { status, signal, error, stdout, stderr } = spawnSync(path, ["--version"], {
    encoding: "utf8",
    env: { ...process.env, NO_COLOR: "1" },
    timeout: TRIAL_TIMEOUT_MS,
  });
  const expected = `${version}\n`;
  if (status === 0 && stdout === expected) return;
  const [reason] = stderr?.trim().split("\n") ?? [];
  const ended = error?.message ?? `exit status ${status ?? signal}`;
  const printed = status === 0 ? `it printed ${JSON.stringify(stdout)}` : reason || ended;
  throw new Error(`${path} --version does not print ${version}: ${printed}`);
}
