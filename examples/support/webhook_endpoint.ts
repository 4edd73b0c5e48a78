/** Sends one webhook, and decides from the response whether the endpoint has accepted it. */

/** An endpoint may ask for a pause of at most an hour. */
const RETRY_AFTER_MS_MAX = 3_600_000;
/** Response bytes to read. The status alone decides, but a cut-off response is not trusted. */
const RESPONSE_BYTES_MAX = 64 * 1024;

/** Anything but `delivered` is a failure. After `gone`, the endpoint wants no more webhooks. */
export type Outcome =
  | { type: "delivered" }
  | { type: "gone" }
  | { type: "failed"; reason: string; retryAfterMs: number };

/**
 * Makes one attempt. Redirects are not followed, because they would send the event elsewhere.
 * @param timeoutMs limit for the whole exchange. @throws the reason of `stop` if it is aborted.
 */
export async function postWebhook(
  url: string,
  headers: Record<string, string>,
  body: string,
  { timeoutMs, stop }: { timeoutMs: number; stop: AbortSignal },
): Promise<Outcome> {
  try {
    const response = await fetch(url, {
      method: "POST",
      headers: { "Content-Type": "application/json", ...headers },
      body,
      redirect: "manual",
      signal: AbortSignal.any([stop, AbortSignal.timeout(timeoutMs)]),
    });
    await readBody(response);
    return outcomeOf(response);
  } catch (error) {
    stop.throwIfAborted();
    return { type: "failed", reason: reasonOf(error, timeoutMs), retryAfterMs: 0 };
  }
}

/** Reads the response to its end, or to the limit, so that its connection can be used again. */
async function readBody({ body }: Response): Promise<void> {
  if (body === null) return;
  let bytes = 0;
  // Leaving the loop cancels the response.
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > RESPONSE_BYTES_MAX) return;
  }
}

function outcomeOf({ ok, status, headers }: Response): Outcome {
  if (ok) return { type: "delivered" };
  if (status === 410) return { type: "gone" };
  const retryAfterMs = parseRetryAfter(headers.get("Retry-After"), Date.now());
  return { type: "failed", reason: `status ${status}`, retryAfterMs };
}

/** Parses a number of seconds or an HTTP date. Anything else is no pause. */
function parseRetryAfter(text: string | null, nowMs: number): number {
  if (text === null) return 0;
  const ms = /^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - nowMs;
  return Number.isNaN(ms) ? 0 : Math.min(Math.max(ms, 0), RETRY_AFTER_MS_MAX);
}

function reasonOf(error: unknown, timeoutMs: number): string {
  if (!(error instanceof Error)) throw error;
  if (error.name === "TimeoutError") return `no complete response within ${timeoutMs / 1000} s`;
  const { cause } = error;
  return cause instanceof Error ? `${error.message}: ${cause.message}` : error.message;
}
