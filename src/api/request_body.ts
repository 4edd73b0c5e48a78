/**
 * Reads request bodies within their limit and within the byte budget. A body holds no more room
 * than it has sent so far, and one step ahead.
 */
import { Buffer } from "node:buffer";
import { ApiError } from "../event/api_error.ts";
import { freeOwnMemory } from "../free_memory.ts";
import type { Admission, Reservation } from "../service/admission.ts";
import { ConnectionLostError, type HttpRequest, MalformedRequestError } from "../http/message.ts";
import { StallError, type StallWatch } from "../http/stall_watch.ts";

/**
 * A body is admitted with this much room and gets more as its bytes arrive, so that a slow sender
 * holds what it has sent and not what it has announced.
 */
export const BODY_ROOM_STEP_BYTES: number = 256 * 1024;

/** A body that does not arrive at once is collected in chunks of this size. */
export const BODY_CHUNK_BYTES: number = 64 * 1024;

export interface BodyLimits {
  /** The largest body accepted. */
  limitBytes: number;
  admission: Admission;
  stallWatch: StallWatch;
}

/**
 * Calls `use` with the whole body of a request, whose room is held until `use` has its answer.
 * @throws {ApiError} `body_too_large`; `invalid_request` when its framing is broken; `overloaded`
 *   when there is no room for it or it does not arrive.
 */
export async function withBody<T>(
  request: HttpRequest,
  limits: BodyLimits,
  use: (body: Uint8Array) => Promise<T>,
): Promise<T> {
  const declaredBytes = declaredLength(request);
  if (declaredBytes !== null && declaredBytes > limits.limitBytes) {
    throw tooLarge(limits.limitBytes);
  }
  const firstBytes = Math.min(declaredBytes ?? BODY_ROOM_STEP_BYTES, BODY_ROOM_STEP_BYTES);
  const reservation = await limits.admission.admit(firstBytes);
  try {
    return await use(await readBody(request, declaredBytes, reservation, limits));
  } finally {
    limits.admission.release(reservation);
  }
}

/** Null for a chunked body. A request that announces none has none (RFC 9112 section 6.3). */
function declaredLength(request: HttpRequest): number | null {
  if (request.header("transfer-encoding") !== null) return null;
  return Number(request.header("content-length") ?? "0");
}

async function readBody(
  request: HttpRequest,
  declaredBytes: number | null,
  reservation: Reservation,
  limits: BodyLimits,
): Promise<Uint8Array> {
  try {
    const hasRoom = declaredBytes !== null && declaredBytes <= reservation.bytes;
    return hasRoom
      ? await limits.stallWatch.guard(request.bytes())
      : await readPieces(request, declaredBytes, reservation, limits);
  } catch (error) {
    if (error instanceof MalformedRequestError) {
      throw new ApiError("invalid_request", error.message);
    }
    throw isNotArrived(error) ? notArrived(error) : error;
  }
}

async function readPieces(
  request: HttpRequest,
  declaredBytes: number | null,
  reservation: Reservation,
  limits: BodyLimits,
): Promise<Buffer> {
  const { limitBytes, admission, stallWatch } = limits;
  const bodyBytesMax = declaredBytes ?? limitBytes;
  const chunks = new Chunks();
  const pieces = request.body()[Symbol.asyncIterator]();
  for (;;) {
    const piece = await stallWatch.guard(pieces.next());
    if (piece.done) return chunks.concat();
    const sizeBytes = chunks.sizeBytes + piece.value.length;
    if (sizeBytes > bodyBytesMax) throw tooLarge(limitBytes);
    if (sizeBytes > reservation.bytes) {
      await admission.grow(reservation, Math.min(sizeBytes + BODY_ROOM_STEP_BYTES, bodyBytesMax));
    }
    chunks.append(piece.value);
    // Left to the collector, it takes a tenth of the processor time of a batch (Deno).
    freeOwnMemory(piece.value);
  }
}

/**
 * Copies of all pieces, so that no small one keeps a whole read of the socket alive, and a million
 * of them cost no more than one large one.
 */
class Chunks {
  readonly #chunks: Buffer[] = [];
  sizeBytes = 0;

  append(piece: Uint8Array): void {
    for (let start = 0; start < piece.length;) {
      const filledBytes = this.sizeBytes % BODY_CHUNK_BYTES;
      if (filledBytes === 0) this.#chunks.push(Buffer.allocUnsafeSlow(BODY_CHUNK_BYTES));
      const part = piece.subarray(start, start + BODY_CHUNK_BYTES - filledBytes);
      this.#chunks.at(-1)!.set(part, filledBytes);
      this.sizeBytes += part.length;
      start += part.length;
    }
  }

  concat(): Buffer {
    return Buffer.concat(this.#chunks, this.sizeBytes);
  }
}

function isNotArrived(error: unknown): error is Error {
  return error instanceof StallError || error instanceof ConnectionLostError;
}

/** Not the client's mistake, and worth a second try: so neither 400 nor 408. */
function notArrived(error: Error): ApiError {
  return new ApiError(
    "overloaded",
    `the request body did not arrive (${error.message}); nothing was written, send it again`,
  );
}

function tooLarge(limitBytes: number): ApiError {
  return new ApiError(
    "body_too_large",
    `request body is larger than ${limitBytes} bytes; submit it in parts`,
  );
}
