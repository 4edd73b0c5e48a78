/**
 * A client in the fuzz test. It sends valid and malformed requests and records the results. Each
 * request must get a response or end its connection.
 */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { ERROR_STATUS } from "../../../src/event/api_error.ts";
import type { SeededRandom } from "../../../tools/support/random.ts";
import { RawConnection } from "../../support/raw_client.ts";
import type { RawResponse } from "../../support/raw_response.ts";
import { changeBytes } from "./almost_json.ts";
import { mutateHttp } from "./fuzz_http.ts";
import { mutateJson } from "./fuzz_json.ts";
import { cutIntoPieces, get, HTTP_TOKENS, randomBytes, toBytes } from "./fuzz_request.ts";
import { FuzzSeeds } from "./fuzz_seeds.ts";
import type { SentMutations } from "./fuzz_sent.ts";

/** State shared by the clients. */
export interface FuzzRecord {
  socketPath: string;
  sent: SentMutations;
  /** Counts of each response status, and of connections that ended without a response. */
  counts: Map<string, number>;
  /** @throws {Error} if the server has reported an error. */
  assertServerCalm(): void;
}

const ERROR_STATUSES: Readonly<Record<string, number>> = ERROR_STATUS;
/** Maximum size of checked responses. Longer ones are pages, whose events the audit checks. */
const CHECKED_BODY_BYTES_MAX = 64 * 1024;
/** Maximum number of connections that a client leaves open with unfinished requests. */
const LINGERING_MAX = 4;
const EXCERPT_BYTES = 2000;

export class FuzzClient {
  readonly #record: FuzzRecord;
  readonly #random: SeededRandom;
  readonly #name: string;
  readonly #seeds: FuzzSeeds;
  readonly #lingering: RawConnection[] = [];
  #kept: RawConnection | null = null;
  /** The last event in the last batch acknowledged on a connection. */
  readonly #lastCommitted = new WeakMap<RawConnection, string>();
  /** The bytes being sent, for failure messages. */
  #sending: Buffer = Buffer.alloc(0);

  constructor(record: FuzzRecord, random: SeededRandom, name: string) {
    this.#record = record;
    this.#random = random;
    this.#name = name;
    this.#seeds = new FuzzSeeds(random, name);
  }

  /** Sends requests one after another. @throws {Error} with the request that failed. */
  async run(requests: number): Promise<void> {
    for (let number = 0; number < requests; number++) {
      try {
        await this.#exchange();
        this.#record.assertServerCalm();
      } catch (error) {
        const reason = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
        const what = `request ${number} of ${this.#name}: ${excerpt(this.#sending)}`;
        throw new Error(`${what}\n${reason}`, { cause: error });
      }
    }
  }

  close(): void {
    for (const connection of [this.#kept, ...this.#lingering]) connection?.destroy();
  }

  async #exchange(): Promise<void> {
    const random = this.#random;
    const request = this.#seeds.next();
    const choice = random.below(100);
    if (choice < 60 && request.body !== null) {
      // A third is valid, so that the others refer to what is in the log.
      const body = choice < 20 ? request.body : mutateJson(random, request.body);
      await this.#sendFramed(toBytes({ ...request, body }));
    } else if (choice < 78) await this.#sendRaw(mutateHttp(random, request));
    else if (choice < 98) await this.#sendRaw(changeBytes(random, toBytes(request), HTTP_TOKENS));
    else await this.#sendRaw(randomBytes(random, 2000));
  }

  /** Sends a correctly framed request, which must get one response. Reuses an open connection. */
  async #sendFramed(bytes: Buffer): Promise<void> {
    if (this.#kept === null || this.#kept.hasEnded) this.#kept = await this.#open();
    const connection = this.#kept;
    const writing = this.#write(connection, bytes);
    const [answer] = await Promise.all([connection.readResponse(), writing]);
    assert.ok(answer !== null, "a complete request is answered");
    this.#note(connection, answer);
    if (answer.headers.connection === "close") await connection.ended();
  }

  /** Sends arbitrary bytes, which may get a response. A half-close must end the connection. */
  async #sendRaw(bytes: Buffer): Promise<void> {
    const connection = await this.#open();
    await this.#write(connection, bytes);
    const ending = this.#random.below(100);
    if (ending < 5) return this.#leaveOpen(connection);
    if (ending < 20) {
      connection.destroy();
      return this.#count("hung up on");
    }
    // A response to a later request shows that the server has read this one.
    if (ending < 45) await this.#sendFramed(toBytes(get("/v1/streams?limit=1")));
    this.#sending = bytes;
    connection.endInput();
    await connection.ended();
    let answers = 0;
    for (let answer; (answer = await connection.readResponse(null)) !== null; answers++) {
      this.#note(connection, answer);
    }
    // A response lost to a connection reset is not an error.
    if (connection.error === null) assert.equal(connection.received.toString("latin1"), "");
    if (answers === 0) this.#count(connection.error === null ? "closed" : "reset");
  }

  #open(): Promise<RawConnection> {
    return RawConnection.open(this.#record.socketPath);
  }

  async #write(connection: RawConnection, bytes: Buffer): Promise<void> {
    this.#sending = bytes;
    this.#record.sent.add(bytes);
    const isSlow = this.#random.chance(0.2);
    for (const piece of isSlow ? cutIntoPieces(this.#random, bytes, 8) : [bytes]) {
      if (connection.hasEnded) return;
      await connection.write(piece);
      if (isSlow) await new Promise((resolve) => setImmediate(resolve));
    }
  }

  #leaveOpen(connection: RawConnection): void {
    this.#lingering.push(connection);
    if (this.#lingering.length > LINGERING_MAX) this.#lingering.shift()!.destroy();
    this.#count("left open");
  }

  #count(what: string): void {
    const { counts } = this.#record;
    counts.set(what, (counts.get(what) ?? 0) + 1);
  }

  /** Checks a single response and records what it acknowledges. */
  #note(connection: RawConnection, answer: RawResponse): void {
    const { status, headers, body, isComplete } = answer;
    this.#count(String(status));
    const contentType = headers["content-type"];
    // A follow ends when the client half-closes.
    if (contentType === "application/x-ndjson") return;
    assert.equal(contentType, "application/json");
    assert.ok(isComplete || connection.error !== null, `a response is truncated: ${excerpt(body)}`);
    if (body.length === 0 || body.length > CHECKED_BODY_BYTES_MAX || !isComplete) return;
    const document = JSON.parse(body);
    if (status !== 200) {
      assert.equal(ERROR_STATUSES[document.error], status, excerpt(body));
      assert.equal(typeof document.message, "string");
      assert.ok(status < 500, excerpt(body));
    } else if ("first_event_id" in document) {
      this.#record.sent.acknowledge(document, this.#lastCommitted.get(connection) ?? "");
      if (document.status === "committed") {
        this.#lastCommitted.set(connection, document.last_event_id);
      }
      this.#seeds.learn(document);
    } else if ("retirement_event_id" in document) {
      this.#seeds.learn(document);
    }
  }
}

function excerpt(sent: Buffer | string): string {
  const bytes = Buffer.from(sent as string);
  const text = JSON.stringify(bytes.toString("latin1", 0, EXCERPT_BYTES));
  return bytes.length > EXCERPT_BYTES ? `${text} and more, ${bytes.length} bytes` : text;
}
