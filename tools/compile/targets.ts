/** The platforms that executables are built for, and how their headers tell them apart. */
import { Buffer } from "node:buffer";
import { closeSync, openSync, readSync } from "node:fs";

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
  const names = TARGETS.map((target) => target.name).join(", ");
  throw new Error(`unknown target ${JSON.stringify(name)}; use all, ${names} or a triple of these`);
}

const ELF_MAGIC = 0x7f454c46;
const ELF_MACHINES: Record<number, string> = { 0x3e: "linux-x64", 0xb7: "linux-arm64" };
const MACH_MAGIC = 0xfeedfacf;
const MACH_CPUS: Record<number, string> = { 0x01000007: "macos-x64", 0x0100000c: "macos-arm64" };
const HEADER_BYTES = 64;

/** Returns the target of an executable; undefined if it is not supported. */
export function targetOf(path: string): string | undefined {
  const file = openSync(path, "r");
  const header = Buffer.alloc(HEADER_BYTES);
  readSync(file, header);
  closeSync(file);
  if (header.readUInt32BE(0) === ELF_MAGIC) return ELF_MACHINES[header.readUInt16LE(0x12)];
  if (header.readUInt32LE(0) === MACH_MAGIC) return MACH_CPUS[header.readUInt32LE(4)];
  return undefined;
}
