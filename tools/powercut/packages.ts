/**
 * What the virtual machine is made of, from Debian's packages: the kernel is downloaded and
 * unpacked, the other programs must be installed.
 */
import { execFile } from "node:child_process";
import { mkdir, readdir, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import process from "node:process";
import { promisify } from "node:util";
import { findProgram } from "../support/find_program.ts";

const run = promisify(execFile);

/** A program that has to be installed, by the Debian package that has it. */
const PROGRAMS: readonly (readonly [program: string, debianPackage: string])[] = [
  ["qemu-system-x86_64", "qemu-system-x86"],
  ["qemu-img", "qemu-utils"],
  ["busybox", "busybox-static"],
  ["socat", "socat"],
  ["mkfs.ext4", "e2fsprogs"],
  ["mkfs.xfs", "xfsprogs"],
  ["mkfs.btrfs", "btrfs-progs"],
  ["dpkg-deb", "dpkg"],
];
const KERNEL_PACKAGE = "linux-image-cloud-amd64";
const LIBEATMYDATA_PACKAGE = "libeatmydata1";

/** What is missing on this machine, with the command that installs it; null if nothing is. */
export function missingPrograms(): string | null {
  if (process.platform !== "linux" || process.arch !== "x64") return "needs Linux on x86_64";
  const missing = PROGRAMS.filter(([program]) => findProgram(program) === null);
  if (missing.length === 0) return null;
  const programs = missing.map(([program]) => program).join(", ");
  const packages = missing.map(([, debianPackage]) => debianPackage).join(" ");
  return `${programs} not found: apt-get install --no-install-recommends ${packages}`;
}

export interface Packages {
  /** Path of the kernel. */
  kernel: string;
  /** Folder with the modules of that kernel. */
  modules: string;
  /** Library that makes every fsync a no-op, for the run that must fail. */
  libeatmydata: string;
}

/** Downloads and unpacks the packages into a folder, unless they are there. */
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

/** The kernel that a package without content stands for. */
async function dependencyOf(name: string): Promise<string> {
  const { stdout } = await run("apt-cache", ["depends", "--important", name]);
  const found = /Depends: (linux-image-\S+)/.exec(stdout)?.[1];
  if (found === undefined) throw new Error(`apt-cache depends ${name} names no kernel: ${stdout}`);
  return found;
}

async function onlyIn(folder: string, prefix: string): Promise<string> {
  const names = (await readdir(folder)).filter((name) => name.startsWith(prefix));
  if (names.length !== 1) throw new Error(`${folder} has ${names.length} entries ${prefix}*`);
  return join(folder, names[0]!);
}
