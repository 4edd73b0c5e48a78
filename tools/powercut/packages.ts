/**
 * The Debian packages that the virtual machine needs. The kernel is downloaded and unpacked; all
 * other programs must be installed.
 */
import { execFile } from "node:child_process";
import { mkdir, readdir, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import process from "node:process";
import { promisify } from "node:util";
import { findProgram } from "../support/find_program.ts";
import type { FileSystem } from "./disks.ts";

const run = promisify(execFile);

const KERNEL_PACKAGE = "linux-image-cloud-amd64";
const LIBEATMYDATA_PACKAGE = "libeatmydata1";

/** Returns what is missing; null if nothing is. */
export function missingPrograms({ make: [mkfs] }: FileSystem): string | null {
  if (process.platform !== "linux" || process.arch !== "x64") return "requires Linux on x86_64";
  if (process.getuid?.() !== 0) return "requires root, to mount disk images";
  const programs = ["qemu-system-x86_64", "busybox", "dpkg-deb", mkfs];
  const missing = programs.filter((program) => findProgram(program) === null);
  return missing.length === 0 ? null : `${missing.join(", ")} not found`;
}

export interface Packages {
  /** Path of the kernel. */
  kernel: string;
  /** Directory with that kernel's modules. */
  modules: string;
  /** Library that turns every fsync into a no-op, for `--no-fsync`. */
  libeatmydata: string;
}

/** Downloads the packages and unpacks them into a directory, unless that has already been done. */
export async function fetchPackages(folder: string): Promise<Packages> {
  const unpacked = join(folder, "packages");
  if (await stat(unpacked).catch(() => null) === null) {
    const candidate = `${unpacked}.candidate`;
    await rm(candidate, { recursive: true, force: true });
    await mkdir(candidate, { recursive: true });
    const kernel = await dependencyOf(KERNEL_PACKAGE);
    await run("apt-get", ["download", "-q", kernel, LIBEATMYDATA_PACKAGE], { cwd: candidate });
    for (const name of await readdir(candidate)) {
      await run("dpkg-deb", ["-x", join(candidate, name), candidate]);
    }
    await rename(candidate, unpacked);
  }
  return {
    kernel: await onlyIn(join(unpacked, "boot"), "vmlinuz-"),
    modules: await onlyIn(join(unpacked, "lib", "modules"), ""),
    libeatmydata: join(unpacked, "usr/lib/x86_64-linux-gnu/libeatmydata.so"),
  };
}

/** Returns the kernel package that a metapackage depends on. */
async function dependencyOf(name: string): Promise<string> {
  const { stdout } = await run("apt-cache", ["depends", "--important", name]);
  const found = /Depends: (linux-image-\S+)/.exec(stdout)?.[1];
  if (found === undefined) {
    throw new Error(`no kernel in the output of apt-cache depends ${name}: ${stdout}`);
  }
  return found;
}

async function onlyIn(folder: string, prefix: string): Promise<string> {
  const names = (await readdir(folder)).filter((name) => name.startsWith(prefix));
  if (names.length !== 1) {
    throw new Error(`expected one ${prefix}* in ${folder}, found ${names.length}`);
  }
  return join(folder, names[0]!);
}
