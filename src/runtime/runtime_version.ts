/** Checks the version of the runtime. */
import process from "node:process";

/** Oldest supported versions. Deno 2.6 is known to corrupt events (docs/releasing.md). */
const OLDEST = { Deno: [2, 9], Node: [22, 18] } as const;

/** Returns which runtime is needed instead of this one; null if this one is recent enough. */
export function runtimeFault(): string | null {
  const name = process.versions.deno === undefined ? "Node" : "Deno";
  const found = process.versions.deno ?? process.versions.node;
  const [major = 0, minor = 0] = found.split(".").map(Number);
  const [oldestMajor, oldestMinor] = OLDEST[name];
  if (major > oldestMajor || major === oldestMajor && minor >= oldestMinor) return null;
  const needed = `${name} ${oldestMajor}.${oldestMinor}`;
  return `this program needs ${needed} or later; this is ${name} ${found}`;
}
