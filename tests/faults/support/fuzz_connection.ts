/**
 * One connection of the fuzz test: every wait on it ends, with what is waited for, with the end of
 * the connection, or with the failure of the test.
 */
import type { Buffer } from "node:buffer";
import { connect, type Socket } from "node:net";
import { type Answer, AnswerReader } from "./fuzz_answer.ts";

/** A request that is neither answered nor refused within this time hangs. */
const WATCHDOG_MS = 30_000;

/** Tells apart what the server did not do from what it did wrong. */
export class HungError extends Error {
  override name = "HungError";
}

export class FuzzConnection {
  readonly #socket: Socket;
  readonly reader: AnswerReader = new AnswerReader();
  /** Last event of the batch that was acknowledged last; empty before one was. */
  lastCommittedId = "";
  /** Why the answers are no answers. */
  #fault: Error | null = null;
  #isClosed = false;
  #hasFailed = false;
  readonly #waiting = new Set<() => void>();
  /** Answers that `takeAnswer()` has given. */
  #taken = 0;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("data", (bytes: Buffer) => this.#take(() => this.reader.push(bytes)));
    socket.on("error", () => this.#hasFailed = true);
    socket.on("close", () => {
      this.#isClosed = true;
      // What a reset has cut off is lost, and no fault.
      if (!this.#hasFailed) this.#take(() => this.reader.end());
      this.#wake();
    });
  }

  static open(socketPath: string): Promise<FuzzConnection> {
    return new Promise((resolve, reject) => {
      const socket = connect(socketPath);
      socket.once("error", reject);
      socket.once("connect", () => {
        socket.off("error", reject);
        resolve(new FuzzConnection(socket));
      });
    });
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Whether it ended by an error, such as a reset. */
  get hasFailed(): boolean {
    return this.#hasFailed;
  }

  /** Writes; resolves when the system has taken the bytes or the connection is gone. */
  async write(bytes: Buffer): Promise<void> {
    let isTaken = false;
    this.#socket.write(bytes, () => {
      isTaken = true;
      this.#wake();
    });
    await this.until(() => isTaken, "the request was not read");
  }

  /** Ends this side: the server reads the end after what was written. */
  halfClose(): void {
    this.#socket.end();
  }

  destroy(): void {
    this.#socket.destroy();
  }

  /**
   * Resolves once the condition holds, which is looked at whenever something comes, or is closed.
   */
  async until(holds: () => boolean, otherwise: string): Promise<void> {
    while (!this.#isClosed && !holds()) {
      this.#assertNoFault();
      await this.#change(otherwise);
    }
    this.#assertNoFault();
  }

  /** The next answer; undefined when the connection ends before. */
  async nextAnswer({ isHead }: { isHead: boolean }): Promise<Answer | undefined> {
    const { answers } = this.reader;
    await this.until(
      () => answers.length > this.#taken || (isHead && this.reader.open !== null),
      "no answer came",
    );
    if (answers.length === this.#taken && this.reader.open !== null) this.reader.endBodyless();
    return answers[this.#taken++];
  }

  async closed(): Promise<void> {
    await this.until(() => false, "the connection was not closed");
  }

  #change(otherwise: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new HungError(otherwise)), WATCHDOG_MS);
      this.#waiting.add(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  }

  #wake(): void {
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
  }

  #take(read: () => void): void {
    try {
      read();
    } catch (error) {
      this.#fault ??= error as Error;
    }
    this.#wake();
  }

  #assertNoFault(): void {
    if (this.#fault !== null) throw this.#fault;
  }
}
