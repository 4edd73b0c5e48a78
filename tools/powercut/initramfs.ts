/**
 * Builds what the virtual machine boots: an initramfs with drivers, busybox, Node, the service and
 * the shared libraries that they need.
 */
import { execFile } from "node:child_process";
import { chmod, cp, mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { promisify } from "node:util";
import { PROGRAMS } from "../build/programs.ts";
import { stage } from "../compile/stage.ts";
import { findProgram } from "../support/find_program.ts";
import { OWN_CHECKOUT } from "../support/program.ts";
import type { Packages } from "./packages.ts";

const run = promisify(execFile);

const GUEST = "tools/powercut/guest";
/** Kernel modules in dependency order; ext4 is built into Debian's kernel. */
const MODULES = [
  ...["virtio_ring", "virtio", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci"],
  ...["virtio_blk", "failover", "net_failover", "virtio_net"],
  ...["libcrc32c", "xfs", "raid6_pq", "xor", "zstd_compress", "btrfs"],
];

/** @param node path of a Node executable. @returns the path of the initramfs. */
export async function buildInitramfs(
  folder: string,
  packages: Packages,
  node: string,
): Promise<string> {
  const tree = await mkdtemp(join(folder, "initramfs-"));
  const archive = join(folder, "initramfs.cpio");
  try {
    for (const name of ["proc", "dev", "tmp", "disk", "usr/bin"]) {
      await mkdir(join(tree, name), { recursive: true });
    }
    await copyFile(join(OWN_CHECKOUT, GUEST, "init"), join(tree, "init"));
    await chmod(join(tree, "init"), 0o755);
    await copyModules(packages.modules, join(tree, "modules"));
    await copyPrograms(tree, packages, node);
    // As JavaScript, since stripping types is slow under emulation.
    const program = { ...PROGRAMS.service, sources: ["src", GUEST] };
    stage(OWN_CHECKOUT, join(tree, "product"), program, { revision: "", isTestBuild: false });
    const command = `find . | busybox cpio -o -H newc > '${archive}'`;
    await run("sh", ["-c", command], { cwd: tree });
    return archive;
  } finally {
    await rm(tree, { recursive: true });
  }
}

async function copyModules(from: string, to: string): Promise<void> {
  const paths = await readdir(from, { recursive: true });
  for (const module of MODULES) {
    const path = paths.find((path) => basename(path) === `${module}.ko`);
    if (path === undefined) throw new Error(`the kernel package does not contain module ${module}`);
    await copyFile(join(from, path), join(to, `${module}.ko`));
  }
  await writeFile(join(to, "order"), MODULES.join("\n"));
}

async function copyPrograms(tree: string, packages: Packages, node: string): Promise<void> {
  const programs = new Map([["bin/node", node], ["lib/eatmydata.so", packages.libeatmydata]]);
  for (const name of ["busybox", "flock"]) {
    const path = findProgram(name);
    if (path === null) throw new Error(`${name} not found`);
    programs.set(`bin/${name}`, path);
  }
  for (const [name, path] of programs) {
    await copyFile(path, join(tree, name));
    for (const library of await librariesOf(path)) await copyFile(library, join(tree, library));
  }
}

async function copyFile(from: string, to: string): Promise<void> {
  await mkdir(dirname(to), { recursive: true });
  await cp(from, to, { dereference: true });
}

/** Lists the shared libraries of a program with ldd; none if it is statically linked. */
async function librariesOf(program: string): Promise<string[]> {
  try {
    const { stdout } = await run("ldd", [program]);
    return [...stdout.matchAll(/(\/\S+) \(0x/g)].map(([, path]) => path!);
  } catch (error) {
    if (String((error as { stderr?: string }).stderr).includes("not a dynamic")) return [];
    throw error;
  }
}
