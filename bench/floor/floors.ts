/** The measured servers, each with its HTTP layer and its work per body. */

/**
 * `store` also parses the body, and responds when the body is durable. `hash-store` also computes
 * the hashes of an append. `forward` sends the body to followers. `page` serves a replay page from
 * memory.
 */
export type FloorWork = "answer" | "parse" | "store" | "hash-store" | "forward" | "page";

export interface Floor {
  /** The service's HTTP layer, or `node:http`. */
  isOurs: boolean;
  work: FloorWork;
}

export const FLOORS: Record<string, Floor> = {
  "answer": { isOurs: true, work: "answer" },
  "parse": { isOurs: true, work: "parse" },
  "store": { isOurs: true, work: "store" },
  "hash-store": { isOurs: true, work: "hash-store" },
  "forward": { isOurs: true, work: "forward" },
  "page": { isOurs: true, work: "page" },
  "node-http": { isOurs: false, work: "answer" },
  "node-http-store": { isOurs: false, work: "store" },
};
