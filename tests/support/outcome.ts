/** Outcomes as an HTTP client sees them: status, and body without the message. */
import { ApiError, ERROR_STATUS } from "../../src/event/api_error.ts";

export interface Outcome {
  status: number;
  body: Record<string, unknown>;
}

/** The outcome of a call to the service. @throws errors that are not API errors. */
export async function outcomeOf(answer: Promise<object>): Promise<Outcome> {
  try {
    return { status: 200, body: { ...await answer } };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return { status: ERROR_STATUS[error.code], body: { error: error.code, ...error.context } };
  }
}

/** The `status` of a receipt, or the code of an error. */
export function statusOf({ body }: Outcome): unknown {
  return body.status ?? body.error;
}
