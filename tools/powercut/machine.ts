/**
 * A virtual machine, from its start to a power cut. Booting under emulation takes ten seconds, so
 * it boots once, and is saved when all programs are loaded and waiting for the disk under test.
 * Every start resumes from that state, which contains no data from the disk.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { rm } from "node:fs/promises";
import { constants } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { ANSWER_TIMEOUT_MS } from "../soak/bounds.ts";
import { claim } from "../soak/violation.ts";
import { freePort } from "../support/free_port.ts";
import { DISK_BYTES, type FileSystem } from "./disks.ts";
import type { Images } from "./images.ts";
import { Monitor } from "./monitor.ts";

/** Kinds of disk requests that can be made to fail with EIO. */
export type FailingRequest = "write" | "flush" | "read";

/** Maximum length of the console output kept. Older output is dropped. */
const CONSOLE_CHARS_MAX = 1024 * 1024;
const MEMORY_MIB = 640;
const POLL_MS = 20;
const { EIO } = constants.errno;
/** Printed by the guest once it is waiting for the disk. */
const WAITING_TEXT = "powercut: waiting";

export interface MachineOptions {
  images: Images;
  fileSystem: FileSystem;
  /** Tail size that triggers rotation and sealing. */
  rotateBytes: number;
  /** Path of an LD_PRELOAD library for `serve`, inside the virtual machine. */
  preload?: string | undefined;
  /** Directory for the saved state. */
  folder: string;
}

/** A booted machine that is waiting for its disk. */
export interface SavedMachine extends MachineOptions {
  memory: string;
  /** CPU and device state. */
  state: string;
}

/** The disk under test: an image, and how the machine accesses it. */
export interface DiskOptions {
  disk: string;
  /** Path of an empty file that records every disk write (see `write_log.ts`). */
  record?: string | undefined;
}

/** Boots a machine and saves it once it is waiting for its disk. */
export async function bootAndSave(options: MachineOptions): Promise<SavedMachine> {
  const { folder } = options;
  const saved = { ...options, memory: join(folder, "memory"), state: join(folder, "state") };
  await rm(saved.memory, { force: true });
  const machine = await Machine.start(saved, null);
  try {
    await machine.untilPrinted(WAITING_TEXT);
    await machine.save(saved.state);
  } finally {
    await machine.cutPower();
  }
  return saved;
}

/** Resumes a saved machine, which then mounts the disk and starts the service. */
export async function resume(saved: SavedMachine, disk: DiskOptions): Promise<Machine> {
  const machine = await Machine.start(saved, disk);
  try {
    await machine.load(saved.state);
  } catch (error) {
    await machine.cutPower();
    throw error;
  }
  machine.enter(`${Math.floor(Date.now() / 1000)}`);
  return machine;
}

export class Machine {
  /** Loopback port that is forwarded to the service's socket. */
  readonly servicePort: number;
  readonly #child: ChildProcess;
  readonly #monitorPath: string;
  #console = "";
  readonly ended: Promise<void>;

  /** Starts the machine from the saved state, or boots it if it has no disk yet. */
  static async start(saved: SavedMachine, disk: DiskOptions | null): Promise<Machine> {
    return new Machine(saved, disk, await freePort());
  }

  private constructor(
    { folder, memory, images, fileSystem, rotateBytes, preload = "" }: SavedMachine,
    disk: DiskOptions | null,
    servicePort: number,
  ) {
    this.servicePort = servicePort;
    this.#monitorPath = join(folder, `monitor-${servicePort}`);
    const { kernel, initramfs, programDisk } = images;
    const forward = `hostfwd=tcp:127.0.0.1:${servicePort}-10.0.2.15:7000`;
    const parameters = [
      ...["console=ttyS0", "quiet", "panic=-1", "random.trust_cpu=on", "mitigations=off"],
      `fs_type=${fileSystem.type} fs_options=${fileSystem.options}`,
      `rotate_bytes=${rotateBytes} serve_preload=${preload}`,
    ];
    // A resumed machine maps the saved memory copy-on-write instead of loading it.
    const memoryBackend = `memory-backend-file,id=memory,size=${MEMORY_MIB}M,mem-path=${memory}`;
    this.#child = spawn("qemu-system-x86_64", [
      ...["-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "1"],
      ...["-machine", "pc,memory-backend=memory", "-m", `${MEMORY_MIB}M`],
      ...["-object", `${memoryBackend},share=${disk === null ? "on" : "off"}`],
      ...(disk === null ? [] : ["-incoming", "defer"]),
      ...["-nodefaults", "-display", "none", "-serial", "stdio", "-no-reboot"],
      ...["-qmp", `unix:${this.#monitorPath},server=on,wait=off`],
      ...["-kernel", kernel, "-initrd", initramfs, "-append", parameters.join(" ")],
      ...["-blockdev", `driver=file,filename=${programDisk},node-name=program,read-only=on`],
      ...["-device", "virtio-blk-pci,drive=program"],
      ...diskArguments(disk),
      ...["-netdev", `user,id=net,restrict=on,${forward}`],
      ...["-device", "virtio-net-pci,netdev=net,romfile="],
    ], { stdio: "pipe" });
    for (const output of [this.#child.stdout!, this.#child.stderr!]) {
      output.setEncoding("utf8").on("data", (text: string) => {
        this.#console = (this.#console + text).slice(-CONSOLE_CHARS_MAX);
      });
    }
    this.ended = new Promise((resolve, reject) => {
      this.#child.on("error", reject);
      this.#child.on("close", () => resolve());
    });
  }

  /** Output from the kernel and the service. */
  get console(): string {
    return this.#console;
  }

  get isRunning(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Types a line on the console. */
  enter(line: string): void {
    this.#child.stdin!.write(`${line}\n`);
  }

  /** @throws {Violation} if the console does not show the text in time. */
  async untilPrinted(text: string): Promise<void> {
    const deadline = performance.now() + ANSWER_TIMEOUT_MS;
    while (!this.#console.includes(text)) {
      claim(this.isRunning, `the machine exited unexpectedly: ${this.#console}`);
      claim(performance.now() < deadline, `no "${text}" on the console in time: ${this.#console}`);
      await delay(POLL_MS);
    }
  }

  /** Saves the CPU and device state to a file, and stops the machine. */
  async save(path: string): Promise<void> {
    await this.#migrate("migrate", `exec:cat > ${path}`);
  }

  /** Continues from the state that `save()` wrote. */
  async load(path: string): Promise<void> {
    await this.#migrate("migrate-incoming", `exec:cat ${path}`);
  }

  /** Makes all further disk requests of one kind fail with EIO. */
  async failDisk(iotype: FailingRequest): Promise<void> {
    const monitor = await this.#monitor();
    const rule = { event: "none", iotype, errno: EIO, once: false };
    const faulty = { driver: "blkdebug", "node-name": "faulty", image: "image" };
    await monitor.run("blockdev-add", { ...faulty, "inject-error": [rule] });
    const options = [{ driver: "raw", "node-name": "disk", file: "faulty" }];
    await monitor.run("blockdev-reopen", { options });
    monitor.close();
  }

  async #monitor(): Promise<Monitor> {
    return await Monitor.connect(this.#monitorPath, () => this.isRunning);
  }

  async #migrate(command: string, uri: string): Promise<void> {
    const monitor = await this.#monitor();
    // Memory is already in a file.
    const capabilities = [{ capability: "x-ignore-shared", state: true }];
    await monitor.run("migrate-set-capabilities", { capabilities });
    await monitor.run(command, { uri });
    for (;;) {
      const { status } = await monitor.run("query-migrate") as { status?: string };
      if (status === "completed") break;
      claim(status !== "failed", `${command} failed: ${this.#console}`);
      await delay(POLL_MS);
    }
    monitor.close();
  }

  /** Kills the machine like a power failure. Data that its kernel has not written is lost. */
  async cutPower(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.ended;
    await rm(this.#monitorPath, { force: true });
  }
}

/** Returns the disk's arguments. The disk is write-back: only guest flushes make data durable. */
function diskArguments(options: DiskOptions | null): string[] {
  const device = "virtio-blk-pci,drive=disk,write-cache=on";
  return [...blockNodes(options).flatMap((node) => ["-blockdev", node]), "-device", device];
}

/** Returns the block nodes for the disk. The last one is named `disk`. */
function blockNodes(options: DiskOptions | null): string[] {
  if (options === null) return [`driver=null-co,size=${DISK_BYTES},node-name=disk`];
  const { disk, record } = options;
  const image = `driver=file,filename=${disk},node-name=image`;
  if (record === undefined) return [image, "driver=raw,file=image,node-name=disk"];
  return [
    image,
    `driver=file,filename=${record},node-name=record`,
    "driver=blklogwrites,node-name=disk,file=image,log=record",
  ];
}
