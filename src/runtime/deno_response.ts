/** Turns a response into one of `Deno.serve`. */
import type { HttpResponse } from "../http/message.ts";
import type { DenoRequest } from "./deno_request.ts";

/** What breaks a connection in the middle of a response; the handler has told why. */
export const BROKEN_STREAM = new Error("response broken off");

/** What breaks each stream under way, for a shutdown that can wait no longer. */
export type OpenStreams = Set<() => void>;

export function toResponse(
  request: DenoRequest,
  { status, headers, body }: HttpResponse,
  openStreams: OpenStreams,
): Response {
  const init = { status, headers: ownHeaders(request, headers) };
  return new Response(toBody(headers, body, openStreams), init);
}

/** Without `Connection: close` where the client asked for it: there Deno adds it. */
function ownHeaders(
  request: DenoRequest,
  headers: HttpResponse["headers"],
): HttpResponse["headers"] {
  if (!("connection" in headers) || !request.asksForClose) return headers;
  const { connection: _added, ...rest } = headers;
  return rest;
}

function toBody(
  headers: HttpResponse["headers"],
  body: HttpResponse["body"],
  openStreams: OpenStreams,
): BodyInit | null {
  if (typeof body === "string") return body;
  if (body instanceof Uint8Array) return body as Uint8Array<ArrayBuffer>;
  if (body !== null) return toStream(body, openStreams);
  // Without a stream Deno would declare that the response to a GET has no bytes.
  return "content-length" in headers ? null : new Blob([]).stream();
}

/** Asks for the next piece only when the client has taken the last one. */
function toStream(
  pieces: AsyncIterable<Uint8Array>,
  openStreams: OpenStreams,
): ReadableStream<Uint8Array> {
  const iterator = pieces[Symbol.asyncIterator]();
  let breakOff = () => {};
  return new ReadableStream<Uint8Array>({
    start(controller) {
      breakOff = () => {
        controller.error(BROKEN_STREAM);
        void iterator.return?.();
      };
      openStreams.add(breakOff);
    },
    async pull(controller) {
      try {
        const { done, value } = await iterator.next();
        if (!done) return controller.enqueue(value);
        openStreams.delete(breakOff);
        controller.close();
      } catch {
        openStreams.delete(breakOff);
        controller.error(BROKEN_STREAM);
      }
    },
    async cancel() {
      openStreams.delete(breakOff);
      await iterator.return?.();
    },
  }, { highWaterMark: 0 });
}
