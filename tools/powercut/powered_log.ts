/**
 * The log under test, on the disk of a virtual machine that is power-cycled while clients use the
 * log. Clients connect through a Unix socket on the host, and wait while the machine is down.
 */
import { mkdtemp, realpath, rm } from "node:fs/promises";
import { connect, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { EventLogClient } from "../../src/client/event_log_client.ts";
import { unixFetch } from "../../src/client/unix_fetch.ts";
import { ANSWER_TIMEOUT_MS } from "../soak/bounds.ts";
import { Gate, gatedClient } from "../soak/gate.ts";
import { claim } from "../soak/violation.ts";
import {
  type DiskOptions,
  type FailingRequest,
  type Machine,
  resume,
  type SavedMachine,
} from "./machine.ts";

/** Printed by the guest once the service accepts requests. */
const READY_TEXT = "powercut: ready";
const RETRY_MS_MAX = 100;
/** A large batch may be interrupted by many power cuts before it gets its receipt. */
const WRITE_TIMEOUT_MS = 3_600_000;

export class PoweredLog {
  /** Shared by all clients of this log. */
  readonly client: EventLogClient;
  /** Like `client`, but never retries. */
  readonly impatient: EventLogClient;
  readonly #saved: SavedMachine;
  readonly #disk: DiskOptions;
  readonly #folder: string;
  readonly #relay: Server;
  readonly #connections = new Set<Socket>();
  #machine: Machine | null = null;
  readonly #gate = new Gate();

  static async create(saved: SavedMachine, disk: DiskOptions): Promise<PoweredLog> {
    const folder = await mkdtemp(join(await realpath(tmpdir()), "powercut-"));
    const log = new PoweredLog(saved, disk, folder);
    await new Promise((resolve) => log.#relay.listen(log.#socketPath, () => resolve(null)));
    return log;
  }

  private constructor(saved: SavedMachine, disk: DiskOptions, folder: string) {
    this.#saved = saved;
    this.#disk = disk;
    this.#folder = folder;
    this.#relay = createServer((client) => this.#connect(client));
    this.client = gatedClient(this.#socketPath, this.#gate, RETRY_MS_MAX, {
      writeTimeoutMs: WRITE_TIMEOUT_MS,
    });
    this.impatient = new EventLogClient(unixFetch(this.#socketPath), {
      attemptsMax: 1,
      writeTimeoutMs: ANSWER_TIMEOUT_MS,
    });
  }

  /** Starts the machine and waits for a response. @throws {Violation} if there is none. */
  async start(): Promise<void> {
    this.#machine = await resume(this.#saved, this.#disk);
    await this.#machine.untilPrinted(READY_TEXT);
    this.#gate.open();
  }

  /** Cuts the power. @throws {Violation} if the machine or the service has already exited. */
  async cutPower(): Promise<void> {
    const machine = this.#machine!;
    this.#gate.close();
    claim(machine.isRunning, `the machine exited unexpectedly: ${machine.console}`);
    await machine.cutPower();
    for (const connection of this.#connections) connection.destroy();
  }

  /** Console output since the start. */
  get console(): string {
    return this.#machine?.console ?? "";
  }

  /** Makes all further disk requests of one kind fail with EIO. */
  async failDisk(kind: FailingRequest): Promise<void> {
    await this.#machine!.failDisk(kind);
  }

  /** Drops the guest's page cache. */
  async dropCaches(): Promise<void> {
    this.#machine!.enter("drop");
    await this.#machine!.untilPrinted("powercut: dropped");
  }

  /** Runs `verify --chain` in the machine while the service runs. @returns its output. */
  async verify(): Promise<string> {
    const socket = connect(this.#machine!.verifyPort, "127.0.0.1");
    socket.setTimeout(ANSWER_TIMEOUT_MS, () => socket.destroy(new Error("verify timed out")));
    let text = "";
    for await (const chunk of socket.setEncoding("utf8")) text += chunk;
    return text;
  }

  async dispose(): Promise<void> {
    await this.#machine?.cutPower();
    this.#relay.close();
    for (const connection of this.#connections) connection.destroy();
    await rm(this.#folder, { recursive: true, force: true });
  }

  get #socketPath(): string {
    return join(this.#folder, "ground.sock");
  }

  /** Relays a connection to the machine; closes it if the service is down. */
  #connect(client: Socket): void {
    if (!this.#gate.isOpen) return void client.destroy();
    const service = connect(this.#machine!.servicePort, "127.0.0.1");
    client.pipe(service).pipe(client);
    for (const [socket, other] of [[client, service], [service, client]] as const) {
      this.#connections.add(socket);
      // When either side closes, close the other; clients see a lost connection and retry.
      socket.on("error", () => other.destroy());
      socket.on("close", () => {
        this.#connections.delete(socket);
        other.destroy();
      });
    }
  }
}
