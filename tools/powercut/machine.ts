/** A virtual machine, from boot to power cut. */
import { type ChildProcess, spawn } from "node:child_process";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import type { FileSystem } from "./file_systems.ts";
import type { Images } from "./images.ts";

/** Only the end of the console output is kept. */
const CONSOLE_CHARS_MAX = 1024 * 1024;
const MEMORY_MIB = 1024;

export interface MachineOptions {
  images: Images;
  /** Path of the disk under test. */
  disk: string;
  fileSystem: FileSystem;
  /** Tail size at which the service rotates and seals. */
  rotateBytes: number;
  /** Path of an LD_PRELOAD library for `serve`, inside the virtual machine. */
  preload?: string | undefined;
  /** Path of an empty file that records every disk write (see `write_log.ts`). */
  record?: string | undefined;
}

export class Machine {
  /** Loopback port that is forwarded to the service's socket. */
  readonly servicePort: number;
  /** Loopback port: each connection runs `verify --chain` and receives its output. */
  readonly verifyPort: number;
  readonly #child: ChildProcess;
  #console = "";
  readonly ended: Promise<void>;

  /** Starts a virtual machine without waiting for it to boot. */
  static async boot(options: MachineOptions): Promise<Machine> {
    return new Machine(options, await freePort(), await freePort());
  }

  private constructor(options: MachineOptions, servicePort: number, verifyPort: number) {
    this.servicePort = servicePort;
    this.verifyPort = verifyPort;
    const { kernel, initramfs, programDisk } = options.images;
    const { fileSystem, rotateBytes, preload = "" } = options;
    const forward = [[servicePort, 7000], [verifyPort, 7001]].map(([host, guest]) =>
      `,hostfwd=tcp:127.0.0.1:${host}-10.0.2.15:${guest}`
    );
    const parameters = [
      ...["console=ttyS0", "quiet", "panic=-1", "random.trust_cpu=on", "mitigations=off"],
      `fs_type=${fileSystem.type} fs_options=${fileSystem.options}`,
      `rotate_bytes=${rotateBytes} serve_preload=${preload}`,
    ];
    this.#child = spawn("qemu-system-x86_64", [
      ...["-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m", String(MEMORY_MIB)],
      ...["-nodefaults", "-display", "none", "-serial", "stdio", "-no-reboot"],
      ...["-kernel", kernel, "-initrd", initramfs, "-append", parameters.join(" ")],
      ...["-blockdev", `driver=file,filename=${programDisk},node-name=program,read-only=on`],
      ...["-device", "virtio-blk-pci,drive=program"],
      ...diskArguments(options),
      ...["-netdev", `user,id=net,restrict=on${forward.join("")}`],
      ...["-device", "virtio-net-pci,netdev=net,romfile="],
    ], { stdio: ["ignore", "pipe", "pipe"] });
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

  /** Output of the kernel and the service. */
  get console(): string {
    return this.#console;
  }

  get isRunning(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Kills the machine, like a power failure: data that its kernel has not written is lost. */
  async cutPower(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.ended;
  }
}

/** The disk under test. It is write-back: only guest flushes make data durable. */
function diskArguments({ disk, record }: MachineOptions): string[] {
  const raw = `driver=file,filename=${disk},node-name=raw`;
  if (record === undefined) {
    return ["-blockdev", raw, "-device", "virtio-blk-pci,drive=raw,write-cache=on"];
  }
  return [
    ...["-blockdev", raw, "-blockdev", `driver=file,filename=${record},node-name=record`],
    ...["-blockdev", "driver=blklogwrites,node-name=logged,file=raw,log=record"],
    ...["-device", "virtio-blk-pci,drive=logged,write-cache=on"],
  ];
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
