/** The servers that are measured: whose HTTP, and what they do with a body. */

/** `store` parses too, and answers when the body is durable. */
export type FloorWork = "answer" | "parse" | "store";

export interface Floor {
  /** Our HTTP layer, or that of `node:http`. */
  isOurs: boolean;
  work: FloorWork;
}

export const FLOORS: Record<string, Floor> = {
  "answer": { isOurs: true, work: "answer" },
  "parse": { isOurs: true, work: "parse" },
  "store": { isOurs: true, work: "store" },
  "node-http": { isOurs: false, work: "answer" },
  "node-http-store": { isOurs: false, work: "store" },
};
