/** Answers as a client of the HTTP API sees them: the status and the body, but for its message. */
import { ApiError } from "../../src/event/api_error.ts";

export interface Outcome {
  status: number;
  body: Record<string, unknown>;
}

/** What became of a call of the service. @throws what is no answer for a client. */
export async function outcomeOf(answer: Promise<object>): Promise<Outcome> {
  try {
    return { status: 200, body: { ...await answer } };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return { status: error.status, body: { error: error.code, ...error.context } };
  }
}

/** What became of it in one word: the status of a receipt, or the code of an error. */
export function statusOf({ body }: Outcome): unknown {
  return body.status ?? body.error;
}
