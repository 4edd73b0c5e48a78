/** Valid requests to every route, on one client's sources, for the fuzz test to mutate. */
import type { Receipt, RetirementReceipt } from "../../../src/event/types.ts";
import { NO_EVENT_ID } from "../../contract/support/api.ts";
import { RandomMutations } from "../../support/random_mutations.ts";
import { type SeededRandom, seededRandom } from "../../../tools/support/random.ts";
import { type FuzzRequest, get, post } from "./fuzz_request.ts";

const READS = 0.4;

export class FuzzSeeds {
  readonly #random: SeededRandom;
  readonly #mutations: RandomMutations;
  /** The last event named in a receipt. */
  #lastEventId = NO_EVENT_ID;

  /** @param name a unique prefix for the names of the client's sources. */
  constructor(random: SeededRandom, name: string) {
    this.#random = random;
    this.#mutations = new RandomMutations(seededRandom(random.uint32()), [name]);
  }

  /** Records what a receipt reveals. */
  learn(receipt: Receipt | RetirementReceipt): void {
    if ("last_event_id" in receipt) {
      this.#lastEventId = receipt.last_event_id;
    } else {
      const stream = "service.source_lifecycle";
      const events = [{ event_id: receipt.retirement_event_id, stream, payload: receipt }];
      this.#mutations.learn({ source: "system", events });
    }
  }

  next(): FuzzRequest {
    const random = this.#random;
    if (random.chance(READS)) return random.pick(this.#reads(random.pick(this.#mutations.sources)));
    const mutation = this.#mutations.next();
    return mutation.kind === "append"
      ? post("/v1/events", mutation.batch)
      : post("/v1/sources/retire", { v: 1, source: mutation.source });
  }

  #reads(source: string): FuzzRequest[] {
    return [
      get(`/v1/events?limit=10000&source=${source}&after=${this.#lastEventId}`),
      get(`/v1/events?source=${source}&limit=${1 + this.#random.below(5)}`),
      get(`/v1/streams?source=${source}`),
      get(`/v1/events?follow=true&source=${source}&after=${this.#lastEventId}`),
      get(this.#random.pick(["/v1/events?limit=1", "/v1/streams?limit=1"]), "HEAD"),
      post("/v1/sources/retire", { source: `${source}-none` }),
    ];
  }
}
