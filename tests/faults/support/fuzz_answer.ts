/**
 * Reads the answers off a connection as they come. Whether an answer has the body it announces is
 * not known where the request is spoiled: it has none if another answer, or the end, follows its
 * head at once, as with HEAD.
 */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";

export interface Answer {
  status: number;
  /** By lowercase name; the names of an answer must differ. */
  headers: Map<string, string>;
  body: Buffer;
  /** Whether all of the body came. */
  isComplete: boolean;
}

const HEAD_END = Buffer.from("\r\n\r\n");
const STATUS_LINE = /^HTTP\/1\.1 ([1-5][0-9]{2}) [A-Za-z ]+$/;
const HEADER_LINE = /^([a-z-]+): ([\x20-\x7e]+)$/i;
const NEXT_ANSWER = Buffer.from("HTTP/1.1 ");
const CHUNK_LINE = /^[0-9a-f]{1,8}$/;
const NOTHING = Buffer.alloc(0);

export class AnswerReader {
  /** Answers that have all come. */
  readonly answers: Answer[] = [];
  #input: Buffer = NOTHING;
  /** The answer whose body is read. */
  #open: Answer | null = null;
  #pieces: Buffer[] = [];
  #framing: "length" | "chunks" | "close" = "length";
  /** What is missing of a body of known length. */
  #leftBytes = 0;

  /** The answer that has begun and is not whole. */
  get open(): Answer | null {
    return this.#open;
  }

  /** Takes what has come. @throws {AssertionError} when it is no answer. */
  push(bytes: Buffer): void {
    this.#input = this.#input.length === 0 ? bytes : Buffer.concat([this.#input, bytes]);
    while (this.#step());
  }

  /** Takes note that nothing more comes. */
  end(): void {
    const answer = this.#open;
    if (answer === null) return assert.equal(this.#input.toString("latin1"), "", "a whole head");
    const isBodyless = this.#framing !== "close" && this.#pieces.length + this.#input.length === 0;
    this.#finish(this.#framing === "close" || isBodyless);
  }

  /** What has come of the open answer's body. */
  get openBody(): Buffer {
    return Buffer.concat(this.#pieces);
  }

  /** Takes note that the open answer has no body, as one to HEAD. */
  endBodyless(): void {
    assert.equal(this.#pieces.length, 0, "no body");
    this.#finish();
  }

  /** Takes the next part; false when it is not all there. */
  #step(): boolean {
    if (this.#open === null) return this.#takeHead();
    if (this.#pieces.length === 0 && this.#startsAnswer()) return this.#finish();
    if (this.#framing === "chunks") return this.#takeChunk();
    const takenBytes = Math.min(this.#leftBytes, this.#input.length);
    this.#take(takenBytes);
    this.#leftBytes -= takenBytes;
    return this.#leftBytes === 0 ? this.#finish() : false;
  }

  #startsAnswer(): boolean {
    return this.#input.subarray(0, NEXT_ANSWER.length).equals(NEXT_ANSWER);
  }

  #takeHead(): boolean {
    const end = this.#input.indexOf(HEAD_END);
    if (end < 0) return false;
    const [statusLine, ...lines] = this.#input.toString("latin1", 0, end).split("\r\n");
    const status = STATUS_LINE.exec(statusLine!)?.[1];
    assert.ok(status !== undefined, `a status line: ${statusLine}`);
    this.#input = this.#input.subarray(end + HEAD_END.length);
    if (status === "100") return true;
    const headers = new Map<string, string>();
    for (const line of lines) {
      const [, name, value] = HEADER_LINE.exec(line) ?? [];
      assert.ok(name !== undefined && !headers.has(name.toLowerCase()), `one header: ${line}`);
      headers.set(name.toLowerCase(), value!);
    }
    this.#begin({ status: Number(status), headers, body: NOTHING, isComplete: false });
    return true;
  }

  #begin(answer: Answer): void {
    this.#open = answer;
    const length = answer.headers.get("content-length");
    const coding = answer.headers.get("transfer-encoding");
    assert.ok(coding === undefined || coding === "chunked" && length === undefined, "one framing");
    if (coding === "chunked") this.#framing = "chunks";
    else this.#framing = length === undefined ? "close" : "length";
    this.#leftBytes = length === undefined ? Infinity : Number(length);
    const isEndless = this.#framing === "close" && answer.headers.get("connection") !== "close";
    if (isEndless) this.endBodyless();
  }

  #takeChunk(): boolean {
    const lineEnd = this.#input.indexOf("\r\n");
    if (lineEnd < 0) return false;
    const line = this.#input.toString("latin1", 0, lineEnd);
    assert.match(line, CHUNK_LINE);
    const sizeBytes = parseInt(line, 16);
    const start = lineEnd + 2;
    const end = start + sizeBytes;
    if (this.#input.length < end + 2) return false;
    assert.equal(this.#input.toString("latin1", end, end + 2), "\r\n", "the end of a chunk");
    this.#input = this.#input.subarray(start);
    this.#take(sizeBytes);
    this.#input = this.#input.subarray(2);
    return sizeBytes === 0 ? this.#finish() : true;
  }

  #take(bytes: number): void {
    if (bytes > 0) this.#pieces.push(this.#input.subarray(0, bytes));
    this.#input = this.#input.subarray(bytes);
  }

  #finish(isComplete = true): true {
    const answer = this.#open!;
    this.answers.push({ ...answer, body: Buffer.concat(this.#pieces), isComplete });
    this.#pieces = [];
    this.#open = null;
    return true;
  }
}
