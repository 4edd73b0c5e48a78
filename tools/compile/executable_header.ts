/**
 * Reads an executable's header: its target and, for ELF, the file size before the program was
 * appended. ELF: `man 5 elf`; Mach-O: `mach-o/loader.h`.
 */
import type { Buffer } from "node:buffer";

/** Number of bytes read from the start of the file: the size of a 64-bit ELF header. */
export const HEADER_BYTES = 64;

export interface ExecutableHeader {
  /** Target name; null if the platform is not supported. */
  target: string | null;
  /** Size of the runtime alone; null if unknown. */
  runtimeBytes: number | null;
}

const ELF_MAGIC = 0x7f454c46;
const ELF_MACHINES: Record<number, string> = { 0x3e: "linux-x64", 0xb7: "linux-arm64" };
const MACH_MAGIC = 0xfeedfacf;
const MACH_CPUS: Record<number, string> = { 0x01000007: "macos-x64", 0x0100000c: "macos-arm64" };

/** @param header the first {@linkcode HEADER_BYTES} of the file, or all of it if shorter. */
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
