/** A group of followers that are opened together and fail together. */
import { FollowerClient, type OnEvents } from "./follower_client.ts";

/** Maximum number of concurrent opens, because a socket's backlog is short. */
const OPENING_MAX = 64;

export interface FollowersOptions {
  socketPath: string;
  count: number;
  /** The event after which to start; null for the beginning. */
  after: string | null;
  /** Query parameters of a follower, each preceded by `&`; none by default. */
  filter?: (place: number) => string;
  /** Creates the receiver of one follower's events. */
  receiver: () => OnEvents;
}

export class Followers {
  readonly #options: FollowersOptions;
  readonly #clients: FollowerClient[] = [];
  readonly #failure = Promise.withResolvers<never>();

  private constructor(options: FollowersOptions) {
    this.#options = options;
    // Callers await this only after all are open; an earlier rejection must not go unhandled.
    this.#failure.promise.catch(() => {});
  }

  /**
   * Opens followers; resolves when all have caught up.
   * @throws {Error} if a follower could not be opened or its response ended. All are then closed.
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

  /** Stops reading all responses, so that the server's writes block. */
  pause(): void {
    for (const client of this.#clients) client.pause();
  }

  close(): void {
    for (const client of this.#clients) client.close();
  }

  /** Waits for all pending opens, so that each one can be closed. */
  async #openMore(): Promise<void> {
    const { socketPath, count, after, receiver, filter = () => "" } = this.#options;
    const opened = this.#clients.length;
    const openings = Array.from(
      { length: Math.min(OPENING_MAX, count - opened) },
      (_, place) =>
        FollowerClient.open(
          socketPath,
          after,
          receiver(),
          this.#failure.reject,
          filter(opened + place),
        ),
    );
    const results = await Promise.allSettled(openings);
    for (const result of results) {
      if (result.status === "fulfilled") this.#clients.push(result.value);
    }
    const failed = results.find((result) => result.status === "rejected");
    if (failed !== undefined) throw failed.reason;
  }
}
