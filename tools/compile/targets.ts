/** The machines that an executable is made for, by name. */

export interface Target {
  /** What an output file is called by. */
  name: string;
  /** What the compiler calls it. */
  triple: string;
}

export const TARGETS: readonly Target[] = [
  { name: "linux-x64", triple: "x86_64-unknown-linux-gnu" },
  { name: "linux-arm64", triple: "aarch64-unknown-linux-gnu" },
  { name: "macos-x64", triple: "x86_64-apple-darwin" },
  { name: "macos-arm64", triple: "aarch64-apple-darwin" },
];

/**
 * The targets of this name: `all`, or one by its name or its triple.
 * @throws {Error} when there is none.
 */
export function targetsNamed(name: string): readonly Target[] {
  if (name === "all") return TARGETS;
  const found = TARGETS.filter((target) => target.name === name || target.triple === name);
  if (found.length > 0) return found;
  throw new Error(
    `no target ${JSON.stringify(name)}; there are all, ` +
      TARGETS.map((target) => `${target.name} (${target.triple})`).join(", "),
  );
}
