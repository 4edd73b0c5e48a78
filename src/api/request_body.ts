/**
 * Reads request bodies within their size limit and within the byte budget. A body holds room for
 * the bytes received and one step ahead.
 */
import { Buffer } from "node:buffer";
import { ApiError } from "../event/api_error.ts";
import { freeOwnMemory } from "../free_memory.ts";
import type { Admission, Reservation } from "../service/admission.ts";
import { ConnectionLostError, type HttpRequest, MalformedRequestError } from "../http/message.ts";
import { StallError, type StallWatch } from "../http/stall_watch.ts";

/** Room at admission, and of each step ahead: a slow sender can't hold all it has announced. */
export const BODY_ROOM_STEP_BYTES: number = 256 * 1024;

/** Bodies larger than a step are collected in chunks of this size. */
export const BODY_CHUNK_BYTES: number = 64 * 1024;

export interface BodyLimits {
  /** The largest body accepted. */
  limitBytes: number;
  admission: Admission;
  stallWatch: StallWatch;
}

/**
 * Calls `use` with the whole body of a request, whose room is held until `use` settles.
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

/** Null for a chunked body. A request without framing has no body (RFC 9112 section 6.3). */
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
    if (!(error instanceof StallError || error instanceof ConnectionLostError)) throw error;
    // Not the client's mistake and worth a retry: so neither 400 nor 408.
    throw new ApiError(
      "overloaded",
      `the request body did not arrive (${error.message}); nothing was written, send it again`,
    );
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
    // The garbage collector would take a tenth of the processor time of a batch (Deno).
    freeOwnMemory(piece.value);
  }
}

/** Copies of all pieces: a small piece keeps no socket buffer alive, and a million cost no more. */
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

function tooLarge(limitBytes: number): ApiError {
  return new ApiError(
    "body_too_large",
    `request body is larger than ${limitBytes} bytes; submit it in parts`,
  );
}
