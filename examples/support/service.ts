/**
 * The two calls a connector and a consumer need, over the service's socket.
 *
 * Appending is safe to repeat: the same bytes under the same batch id are committed once. So a lost
 * connection, where nobody knows what the service still did, is answered by sending them again.
 */
import { setTimeout as delay } from "node:timers/promises";
import { type CommittedEvent, type Fetch, type Receipt, unixFetch } from "../../mod.ts";

/** The first pause between attempts; each further one doubles, up to the longest. */
const PAUSE_MS = 100;
const PAUSE_MS_MAX = 3000;

export interface ReplayPage {
  events: CommittedEvent[];
  next_after: string | null;
  snapshot_through_event_id: string | null;
}

/** The service refused: an error document. */
export class ServiceError extends Error {
  override name = "ServiceError";
  readonly status: number;
  /** Stable code; tell errors apart by it, never by the message. */
  readonly code: string;

  constructor(status: number, code: string, message: string) {
    super(`${code}: ${message}`);
    this.status = status;
    this.code = code;
  }
}

/** A deployment, reached over its socket. */
export class Service {
  readonly #fetch: Fetch;
  readonly #headers: Record<string, string>;
  readonly #attemptsMax: number;

  /**
   * @param token Bearer token; undefined for a deployment without one.
   * @param attemptsMax How often a request is sent before its failure counts.
   */
  constructor(socketPath: string, token: string | undefined, attemptsMax: number) {
    this.#fetch = unixFetch(socketPath);
    this.#headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
    this.#attemptsMax = attemptsMax;
  }

  /**
   * Appends a batch; resolves once it is durable.
   * @param batch The request body, the same for every attempt.
   * @throws {ServiceError} When the service refuses it.
   * @throws {TypeError} When the service could not be reached in any attempt.
   */
  async append(batch: Uint8Array<ArrayBuffer>): Promise<Receipt> {
    const headers = { ...this.#headers, "content-type": "application/json" };
    return await this.#exchange("/v1/events", { method: "POST", headers, body: batch });
  }

  /**
   * One page of history. `parameters` are those of `GET /v1/events`; undefined ones are left out.
   * @throws {ServiceError} When the service refuses.
   * @throws {TypeError} When the service could not be reached in any attempt.
   */
  async replay(parameters: Record<string, string | undefined>): Promise<ReplayPage> {
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(parameters)) {
      if (value !== undefined) query.set(name, value);
    }
    return await this.#exchange(`/v1/events?${query}`, { headers: this.#headers });
  }

  async #exchange<T>(target: string, init: RequestInit): Promise<T> {
    for (let attempt = 1;; attempt++) {
      try {
        return await readJson(await this.#fetch(target, init));
      } catch (error) {
        if (attempt === this.#attemptsMax || !mayTryAgain(error)) throw error;
      }
      await delay(Math.min(PAUSE_MS * 2 ** (attempt - 1), PAUSE_MS_MAX));
    }
  }
}

/** All pages from `after` to the end of the log as it is when that is reached. */
export async function* replayPages(
  service: Service,
  parameters: Record<string, string | undefined>,
): AsyncGenerator<ReplayPage> {
  let after = parameters.after;
  while (true) {
    const page = await service.replay({ ...parameters, after });
    yield page;
    // Not the number of events tells: a page of a filtered replay may be empty and not the last.
    const { next_after, snapshot_through_event_id: frontier } = page;
    if (next_after === null || frontier === null || next_after >= frontier) {
      return;
    }
    after = next_after;
  }
}

/** Whether the service could not be reached or was lost on the way: `fetch` gives these a cause. */
export function isConnectionError(error: unknown): error is TypeError {
  return error instanceof TypeError && error.cause !== undefined;
}

/** A lost connection, or a service too busy: nothing speaks against a repeat. */
function mayTryAgain(error: unknown): boolean {
  return isConnectionError(error) || error instanceof ServiceError && error.status === 429;
}

async function readJson<T>(response: Response): Promise<T> {
  const text = await response.text();
  if (response.ok) return JSON.parse(text) as T;
  throw toServiceError(response.status, text);
}

function toServiceError(status: number, text: string): ServiceError {
  try {
    const { error, message } = JSON.parse(text);
    return new ServiceError(status, String(error), String(message));
  } catch {
    return new ServiceError(
      status,
      "unknown",
      `status ${status} without an error document`,
    );
  }
}
