/**
 * A virtual machine, from its start to a power cut. Booting under emulation takes ten seconds, so
 * it boots once, and is saved when all programs are loaded and waiting for the disk under test.
 * Every start resumes from that state, which contains no data from the disk.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { rm } from "node:fs/promises";
import { constants } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import { ANSWER_TIMEOUT_MS } from "../soak/bounds.ts";
import { claim } from "../soak/violation.ts";
import { freePort } from "../support/free_port.ts";
import { DISK_BYTES, type FileSystem } from "./disks.ts";
import { withMonitor } from "./monitor.ts";

/** Kinds of disk requests that can be made to fail with EIO. */
export type FailingRequest = "write" | "flush" | "read";

/** Maximum length of the console output kept. Older output is dropped. */
const CONSOLE_CHARS_MAX = 1024 * 1024;
/** Includes about 150 MiB of programs in the initramfs. */
const MEMORY_MIB = 768;
const POLL_MS = 20;
const { EIO } = constants.errno;
/** Printed by the guest once it is waiting for the disk. */
const WAITING_TEXT = "powercut: waiting";

/** A machine that is booted once and saved when it is waiting for its disk. */
export interface SavedMachine {
  /** Paths of the boot images. */
  kernel: string;
  initramfs: string;
  fileSystem: FileSystem;
  /** Tail size that triggers rotation and sealing. */
  rotateBytes: number;
  /** Path of an LD_PRELOAD library for `serve`, inside the virtual machine. */
  preload?: string | undefined;
  /** Paths of the saved memory, and of the saved CPU and device state. */
  memory: string;
  state: string;
}

/** The disk under test: an image, and how the machine accesses it. */
export interface DiskOptions {
  disk: string;
  /** Path of an empty file that records every disk write (see `write_log.ts`). */
  record?: string | undefined;
}

/** Boots a machine and saves it once it is waiting for its disk. */
export async function bootAndSave(saved: SavedMachine): Promise<void> {
  await rm(saved.memory, { force: true });
  const machine = new Machine(saved, null, await freePort());
  try {
    await machine.untilPrinted(WAITING_TEXT);
    await machine.migrate("migrate", `exec:cat > ${saved.state}`);
  } finally {
    await machine.cutPower();
  }
}

/** Resumes a saved machine, which then mounts the disk and starts the service. */
export async function resume(saved: SavedMachine, disk: DiskOptions): Promise<Machine> {
  const machine = new Machine(saved, disk, await freePort());
  try {
    await machine.migrate("migrate-incoming", `exec:cat ${saved.state}`);
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
  /** Output from the kernel and the service. */
  console = "";
  readonly #ended: Promise<void>;

  /** Starts a machine that waits for its saved state, or boots it if it has no disk yet. */
  constructor(
    { memory, state, kernel, initramfs, fileSystem, rotateBytes, preload = "" }: SavedMachine,
    disk: DiskOptions | null,
    servicePort: number,
  ) {
    this.servicePort = servicePort;
    this.#monitorPath = `${state}-monitor-${servicePort}`;
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
      ...diskArguments(disk),
      ...["-netdev", `user,id=net,restrict=on,${forward}`],
      ...["-device", "virtio-net-pci,netdev=net,romfile="],
    ], { stdio: "pipe" });
    for (const output of [this.#child.stdout!, this.#child.stderr!]) {
      output.setEncoding("utf8").on("data", (text: string) => {
        this.console = (this.console + text).slice(-CONSOLE_CHARS_MAX);
      });
    }
    this.#ended = new Promise((resolve, reject) => {
      this.#child.on("error", reject);
      this.#child.on("close", () => resolve());
    });
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
    while (!this.console.includes(text)) {
      claim(this.isRunning, `the machine exited unexpectedly: ${this.console}`);
      claim(performance.now() < deadline, `no "${text}" on the console in time: ${this.console}`);
      await delay(POLL_MS);
    }
  }

  /** Makes all further disk requests of one kind fail with EIO. */
  async failDisk(iotype: FailingRequest): Promise<void> {
    const rule = { event: "none", iotype, errno: EIO, once: false };
    const faulty = { driver: "blkdebug", "node-name": "faulty", image: "image" };
    const options = [{ driver: "raw", "node-name": "disk", file: "faulty" }];
    await withMonitor(this.#monitorPath, () => this.isRunning, async (run) => {
      await run("blockdev-add", { ...faulty, "inject-error": [rule] });
      await run("blockdev-reopen", { options });
    });
  }

  /** Saves the CPU and device state and stops the machine, or continues from a saved state. */
  async migrate(command: "migrate" | "migrate-incoming", uri: string): Promise<void> {
    // Memory is already in a file.
    const capabilities = [{ capability: "x-ignore-shared", state: true }];
    await withMonitor(this.#monitorPath, () => this.isRunning, async (run) => {
      await run("migrate-set-capabilities", { capabilities });
      await run(command, { uri });
      for (;;) {
        const { status } = await run("query-migrate") as { status?: string };
        if (status === "completed") return;
        claim(status !== "failed", `${command} failed: ${this.console}`);
        await delay(POLL_MS);
      }
    });
  }

  /** Kills the machine like a power failure. Data that its kernel has not written is lost. */
  async cutPower(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#ended;
    await rm(this.#monitorPath, { force: true });
  }
}

/** Returns the disk's arguments. The disk is write-back: only guest flushes make data durable. */
function diskArguments(options: DiskOptions | null): string[] {
  const device = ["-device", "virtio-blk-pci,drive=disk,write-cache=on"];
  if (options === null) {
    return ["-blockdev", `driver=null-co,size=${DISK_BYTES},node-name=disk`, ...device];
  }
  const { disk, record } = options;
  const image = ["-blockdev", `driver=file,filename=${disk},node-name=image`];
  if (record === undefined) {
    return [...image, "-blockdev", "driver=raw,file=image,node-name=disk", ...device];
  }
  return [
    ...image,
    ...["-blockdev", `driver=file,filename=${record},node-name=record`],
    ...["-blockdev", "driver=blklogwrites,node-name=disk,file=image,log=record"],
    ...device,
  ];
}
