/** The servers that are measured: whose HTTP, and what they do with a body. */

/**
 * `store` parses too, and answers when the body is durable; `forward` then sends it to those who
 * follow. `page` has a page of replay in memory.
 */
export type FloorWork = "answer" | "parse" | "store" | "forward" | "page";

export interface Floor {
  /** Our HTTP layer, or that of `node:http`. */
  isOurs: boolean;
  work: FloorWork;
}

export const FLOORS: Record<string, Floor> = {
  "answer": { isOurs: true, work: "answer" },
  "parse": { isOurs: true, work: "parse" },
  "store": { isOurs: true, work: "store" },
  "forward": { isOurs: true, work: "forward" },
  "page": { isOurs: true, work: "page" },
  "node-http": { isOurs: false, work: "answer" },
  "node-http-store": { isOurs: false, work: "store" },
};
