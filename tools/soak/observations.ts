/**
 * Observations by readers and followers that the audit has not reached yet. When there are too
 * many, observers wait for the next check before they submit more.
 */
import { OBSERVATIONS_MAX } from "./bounds.ts";
import type { History, Listing, Observation } from "./history.ts";

export class Observations {
  #replays: Observation[] = [];
  #listings: Listing[] = [];
  #room = Promise.withResolvers<void>();

  /** @throws the signal's abort reason if it is aborted while the call waits for space. */
  async add(observation: Observation, signal: AbortSignal): Promise<void> {
    await this.#untilRoom(signal);
    this.#replays.push(observation);
  }

  /** Like `add()`, but for a listing. */
  async addListing(listing: Listing, signal: AbortSignal): Promise<void> {
    await this.#untilRoom(signal);
    this.#listings.push(listing);
  }

  /**
   * Checks the observations that `history` covers; keeps the rest. @returns how many it checked.
   * @throws {Violation} if an observation contradicts the log.
   */
  check(history: History): number {
    const before = this.#replays.length + this.#listings.length;
    this.#replays = this.#replays.filter((observation) => {
      if (!history.covers(observation)) return true;
      history.check(observation);
      return false;
    });
    this.#listings = this.#listings.filter((listing) => {
      if (!history.covers(listing)) return true;
      history.checkListing(listing);
      return false;
    });
    this.#room.resolve();
    this.#room = Promise.withResolvers();
    return before - this.#replays.length - this.#listings.length;
  }

  /** Number of unchecked observations. */
  get length(): number {
    return this.#replays.length + this.#listings.length;
  }

  async #untilRoom(signal: AbortSignal): Promise<void> {
    if (this.length < OBSERVATIONS_MAX) return;
    const aborted = new Promise<void>((resolve) => {
      signal.addEventListener("abort", () => resolve(), { once: true });
    });
    while (this.length >= OBSERVATIONS_MAX) {
      await Promise.race([this.#room.promise, aborted]);
      signal.throwIfAborted();
    }
  }
}
