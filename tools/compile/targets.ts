/** The platforms that executables are built for. */

export interface Target {
  /** Name used in the output file name. */
  name: string;
  /** Rust target triple, as passed to `deno compile`. */
  triple: string;
}

export const TARGETS: readonly Target[] = [
  { name: "linux-x64", triple: "x86_64-unknown-linux-gnu" },
  { name: "linux-arm64", triple: "aarch64-unknown-linux-gnu" },
  { name: "macos-x64", triple: "x86_64-apple-darwin" },
  { name: "macos-arm64", triple: "aarch64-apple-darwin" },
];

/**
 * Returns all targets for `all`, or the one with the given name or triple.
 * @throws {Error} if the target is unknown.
 */
export function targetsNamed(name: string): readonly Target[] {
  if (name === "all") return TARGETS;
  const found = TARGETS.filter((target) => target.name === name || target.triple === name);
  if (found.length > 0) return found;
  throw new Error(
    `unknown target ${JSON.stringify(name)}; use all, ` +
      TARGETS.map((target) => `${target.name} (${target.triple})`).join(", "),
  );
}
