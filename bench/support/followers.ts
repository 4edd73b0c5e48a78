/** A crowd of followers: they are opened together, and the failure of one is that of all. */
import { FollowerClient, type OnEvents } from "./follower_client.ts";

/** Followers are opened so many at a time: a socket's queue of unaccepted connections is short. */
const OPENING_MAX = 64;

export interface FollowersOptions {
  socketPath: string;
  count: number;
  /** Followed from this event on; null for the beginning. */
  after: string | null;
  /** Makes what one follower tells of its events. */
  receiver: () => OnEvents;
}

export class Followers {
  readonly #options: FollowersOptions;
  readonly #clients: FollowerClient[] = [];
  readonly #failure = Promise.withResolvers<never>();

  private constructor(options: FollowersOptions) {
    this.#options = options;
    // Who measures awaits it, but only once all are open: until then it must not go unhandled.
    this.#failure.promise.catch(() => {});
  }

  /**
   * Opens followers; resolves when all have caught up.
   * @throws {Error} One could not be opened, or its response ended. None is left open then.
   */
  static async open(options: FollowersOptions): Promise<Followers> {
    const followers = new Followers(options);
    try {
      while (followers.#clients.length < options.count) await followers.#openMore();
    } catch (error) {
      followers.close();
      throw error;
    }
    return followers;
  }

  /** Rejects when a response ends. */
  get failed(): Promise<never> {
    return this.#failure.promise;
  }

  /** Reads no more of any response, so that the server finds no room to write to. */
  pause(): void {
    for (const client of this.#clients) client.pause();
  }

  close(): void {
    for (const client of this.#clients) client.close();
  }

  /** Waits for all that it has begun to open, so that each is known when they are closed. */
  async #openMore(): Promise<void> {
    const { socketPath, count, after, receiver } = this.#options;
    const openings = Array.from(
      { length: Math.min(OPENING_MAX, count - this.#clients.length) },
      () => FollowerClient.open(socketPath, after, receiver(), this.#failure.reject),
    );
    const results = await Promise.allSettled(openings);
    for (const result of results) {
      if (result.status === "fulfilled") this.#clients.push(result.value);
    }
    const failed = results.find((result) => result.status === "rejected");
    if (failed !== undefined) throw failed.reason;
  }
}
