/**
 * Builds the boot images for the virtual machine: an initramfs with busybox and drivers, and a
 * read-only disk with Node, the service and the shared libraries they need.
 */
import { execFile } from "node:child_process";
import { chmod, cp, mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { promisify } from "node:util";
import { writeJavaScript } from "../build/javascript.ts";
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
/** Modules that the guest needs, as JavaScript, since stripping types is slow under emulation. */
const PRODUCT = ["src", GUEST];
const DEPENDENCIES = ["hyparquet", "hyparquet-writer", "smol-toml"];
const PROGRAM_DISK_MIB = 512;

/** Paths of the boot images. */
export interface Images {
  kernel: string;
  initramfs: string;
  programDisk: string;
}

/** Builds both images in a directory. @param node path of a Node executable. */
export async function buildImages(
  folder: string,
  packages: Packages,
  node: string,
): Promise<Images> {
  const scratch = await mkdtemp(join(folder, "images-"));
  try {
    const initramfs = join(folder, "initramfs.cpio");
    await makeInitramfs(join(scratch, "initramfs"), packages.modules, initramfs);
    const programDisk = join(folder, "program.img");
    const tree = join(scratch, "program");
    await makeProgramTree(tree, packages, node);
    await rm(programDisk, { force: true });
    const mkfs = findProgram("mkfs.ext4")!;
    await run(mkfs, ["-q", "-F", "-d", tree, programDisk, `${PROGRAM_DISK_MIB}M`]);
    return { kernel: packages.kernel, initramfs, programDisk };
  } finally {
    await rm(scratch, { recursive: true });
  }
}

/** Builds a cpio(5) archive with what the guest needs until it has mounted the program disk. */
async function makeInitramfs(tree: string, modulesFolder: string, archive: string): Promise<void> {
  for (const name of ["bin", "dev", "proc", "root", "modules"]) {
    await mkdir(join(tree, name), { recursive: true });
  }
  await copyFile(join(OWN_CHECKOUT, GUEST, "init"), join(tree, "init"));
  await chmod(join(tree, "init"), 0o755);
  await copyFile(findProgram("busybox")!, join(tree, "bin/busybox"));
  await writeFile(join(tree, "modules/order"), MODULES.join("\n"));
  const paths = await readdir(modulesFolder, { recursive: true });
  for (const module of MODULES) {
    const path = paths.find((path) => basename(path) === `${module}.ko`);
    if (path === undefined) throw new Error(`the kernel package does not contain module ${module}`);
    await copyFile(join(modulesFolder, path), join(tree, `modules/${module}.ko`));
  }
  const command = `find . | busybox cpio -o -H newc > '${archive}'`;
  await run("sh", ["-c", command], { cwd: tree });
}

async function makeProgramTree(tree: string, packages: Packages, node: string): Promise<void> {
  for (const name of ["proc", "dev", "tmp", "disk", "bin", "usr/bin"]) {
    await mkdir(join(tree, name), { recursive: true });
  }
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
  await copyFile(join(tree, "bin/busybox"), join(tree, "bin/sh"));
  const product = join(tree, "product");
  writeJavaScript(OWN_CHECKOUT, product, PRODUCT);
  for (const name of ["package.json", `${GUEST}/run.sh`]) {
    await copyFile(join(OWN_CHECKOUT, name), join(product, name));
  }
  for (const name of DEPENDENCIES) {
    const from = join(OWN_CHECKOUT, "node_modules", name);
    await cp(from, join(product, "node_modules", name), { recursive: true, dereference: true });
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
