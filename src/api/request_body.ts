/** Reads request bodies (uncompressed JSON in UTF-8) within their limit and the memory budget. */
import { ApiError } from "../event/api_error.ts";
import { ByteWriter } from "../event/byte_writer.ts";
import { BODY_BYTES_PER_SECOND_MIN, BODY_TIMEOUT_MS } from "../limits.ts";
import { freeOwnMemory } from "../free_memory.ts";
import type { Admission, Reservation } from "../service/admission.ts";
import { type HttpRequest, MalformedRequestError, StallError } from "../http/message.ts";

/** Reservations grow in steps of this size, so that a slow sender does not reserve a full body. */
export const BODY_ROOM_STEP_BYTES: number = 256 * 1024;

/** A body that arrives in pieces is collected in a buffer that has at most this size at first. */
const BODY_BUFFER_BYTES = 1024 * 1024;

/** `[ \t]*` is the optional whitespace of RFC 9110 section 5.6.3. */
const JSON_IN_UTF8 =
  /^application\/json[ \t]*(?:;[ \t]*)*(?:;[ \t]*charset=(?:utf-8|"utf-8")[ \t]*(?:;[ \t]*)*)?$/i;

/**
 * Calls `use` with the whole request body. The body's reservation is held until `use` settles.
 * @throws {ApiError} if the body cannot be read.
 */
export async function withBody<T>(
  request: HttpRequest,
  limitBytes: number,
  admission: Admission,
  use: (body: Uint8Array) => Promise<T>,
): Promise<T> {
  checkMediaType(request);
  const bodyBytesMax = request.bodyBytes ?? limitBytes;
  if (bodyBytesMax > limitBytes) throw tooLarge(limitBytes);
  const isWhole = bodyBytesMax <= BODY_ROOM_STEP_BYTES;
  const firstBytes = Math.min(bodyBytesMax, BODY_ROOM_STEP_BYTES);
  // The body is not read in the turn in which the head arrived: some runtimes lose data then.
  const reservation = await admission.admit(firstBytes, isWhole);
  try {
    return await use(await readBody(request, limitBytes, admission, reservation));
  } catch (error) {
    if (error instanceof MalformedRequestError) {
      throw new ApiError("invalid_request", error.message);
    }
    if (!(error instanceof StallError)) throw error;
    // Neither 400 nor 408 fits, since the client may not be at fault and a retry may succeed.
    const message =
      `the request body did not arrive (${error.message}), so nothing was written; retry`;
    throw new ApiError("overloaded", message);
  } finally {
    admission.release(reservation);
  }
}

function checkMediaType(request: HttpRequest): void {
  const contentType = request.header("content-type");
  if (contentType !== null && !JSON_IN_UTF8.test(contentType)) {
    throw new ApiError(
      "unsupported_media_type",
      "content type must be application/json; its only allowed parameter is charset=utf-8",
    );
  }
  if (request.header("content-encoding") !== null) {
    throw new ApiError("unsupported_media_type", "content encoding is not supported");
  }
}

async function readBody(
  request: HttpRequest,
  limitBytes: number,
  admission: Admission,
  reservation: Reservation,
): Promise<Uint8Array> {
  const bodyBytesMax = request.bodyBytes ?? limitBytes;
  let body: ByteWriter | null = null;
  const startMs = performance.now();
  for (;;) {
    const read = request.read();
    const piece = read instanceof Promise ? await read : read;
    if (piece === null) return body?.bytes.subarray(0, body.size) ?? new Uint8Array();
    if (piece.length === request.bodyBytes) return piece;
    body ??= new ByteWriter(Math.min(bodyBytesMax, BODY_BUFFER_BYTES));
    const sizeBytes = body.size + piece.length;
    if (sizeBytes > bodyBytesMax) throw tooLarge(limitBytes);
    const timeoutMs = BODY_TIMEOUT_MS + sizeBytes / BODY_BYTES_PER_SECOND_MIN * 1000;
    if (performance.now() - startMs > timeoutMs) throw new StallError("it came too slowly");
    if (sizeBytes > reservation.bytes) {
      await admission.grow(reservation, Math.min(sizeBytes + BODY_ROOM_STEP_BYTES, bodyBytesMax));
    }
    // A piece may be a small part of a socket buffer, which it would retain.
    body.append(piece);
    // On Deno, garbage-collecting the pieces would take a tenth of a batch's CPU time.
    freeOwnMemory(piece);
  }
}

function tooLarge(limitBytes: number): ApiError {
  return new ApiError(
    "body_too_large",
    `request body is larger than ${limitBytes} bytes; split it`,
  );
}
