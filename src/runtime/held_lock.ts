/** What a held lock is, whatever runtime holds it. */

/** A lock that is held until it is released or the process ends. */
export interface FileLock {
  /** Gives the lock up. Repeated calls do nothing. */
  release(): void;
}
