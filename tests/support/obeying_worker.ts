/** A worker that carries out the orders in its requests. */
import { type Answer, answerRequests } from "../../src/threads/thread_pool.ts";

/** An order: return `value`, throw it, crash with it, or return an uncloneable function. */
export interface Order {
  order: "echo" | "fail" | "die" | "unclonable";
  value: string | ArrayBuffer;
}

answerRequests(async ({ order, value }: Order): Promise<Answer<unknown>> => {
  await Promise.resolve();
  switch (order) {
    case "fail":
      throw new Error(String(value));
    case "die":
      return await new Promise<never>(() => {
        // Thrown outside the handler, like a bug in a callback.
        queueMicrotask(() => {
          throw new Error(String(value));
        });
      });
    case "unclonable":
      return { response: () => value };
    default:
      return { response: value, transfer: value instanceof ArrayBuffer ? [value] : [] };
  }
});
