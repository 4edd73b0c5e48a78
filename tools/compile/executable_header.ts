/**
 * What the header of an executable tells: the target it runs on and, of ELF, where the file ended
 * before a program was appended to it. ELF: `man 5 elf`; Mach-O: `mach-o/loader.h`.
 */
import type { Buffer } from "node:buffer";

/** Of a 64-bit header, the part read here. */
export const HEADER_BYTES = 64;

export interface ExecutableHeader {
  /** Name of a target; null for a machine that is none of them. */
  target: string | null;
  /** Size of the runtime alone; null where the header does not tell. */
  runtimeBytes: number | null;
}

const ELF_MAGIC = 0x7f454c46;
const ELF_MACHINES: Record<number, string> = { 0x3e: "linux-x64", 0xb7: "linux-arm64" };
const MACH_MAGIC = 0xfeedfacf;
const MACH_CPUS: Record<number, string> = { 0x01000007: "macos-x64", 0x0100000c: "macos-arm64" };

/** @param header The first {@linkcode HEADER_BYTES}, or all of a shorter file. */
export function readExecutableHeader(header: Buffer): ExecutableHeader {
  if (header.length < HEADER_BYTES) return { target: null, runtimeBytes: null };
  if (header.readUInt32BE(0) === ELF_MAGIC) {
    const sectionTableOffset = Number(header.readBigUInt64LE(0x28));
    const sectionTableBytes = header.readUInt16LE(0x3a) * header.readUInt16LE(0x3c);
    return {
      target: ELF_MACHINES[header.readUInt16LE(0x12)] ?? null,
      runtimeBytes: sectionTableOffset + sectionTableBytes,
    };
  }
  const isMach = header.readUInt32LE(0) === MACH_MAGIC;
  const target = isMach ? MACH_CPUS[header.readUInt32LE(4)] ?? null : null;
  return { target, runtimeBytes: null };
}
