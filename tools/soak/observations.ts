/**
 * What readers and followers saw, until the audit has read so far that it can be checked. Whoever
 * brings more than there is room for waits for the next check.
 */
import { OBSERVATIONS_MAX } from "./bounds.ts";
import type { History, Listing, Observation } from "./history.ts";

export class Observations {
  #replays: Observation[] = [];
  #listings: Listing[] = [];
  #room = Promise.withResolvers<void>();

  /** @throws the reason of the signal, when that is aborted before there is room. */
  async add(observation: Observation, signal: AbortSignal): Promise<void> {
    await this.#untilRoom(signal);
    this.#replays.push(observation);
  }

  /** As `add()`. */
  async addListing(listing: Listing, signal: AbortSignal): Promise<void> {
    await this.#untilRoom(signal);
    this.#listings.push(listing);
  }

  /**
   * Checks what a history covers, and keeps the rest. @returns how many were checked.
   * @throws {Violation} one of them is not what the log says.
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

  /** How many wait. */
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
