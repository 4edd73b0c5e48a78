/** Converts commits to events. */
import type { Commit } from "./git_commits.ts";

export const COMMIT_SOURCE = "git";
export const COMMIT_STREAM = "commits";

/** A submitted event, as accepted by `POST /v1/events`. */
export interface CommitEvent {
  stream: typeof COMMIT_STREAM;
  /** The commit's hash. */
  record_key: string;
  kind: "upserted";
  /** The author's timestamp; absent if invalid. */
  occurred_at?: string;
  payload: {
    subject: string;
    body?: string;
    author: { name: string; mail?: string };
    parents: string[];
    committed_at?: string;
    /** Present if a string in the commit was truncated. */
    is_cut?: true;
  };
}

/** Converts a commit to an event. The result depends only on the commit. */
export function toCommitEvent(commit: Commit): CommitEvent {
  const occurredAt = utcTimestamp(commit.authorSeconds);
  const committedAt = utcTimestamp(commit.committerSeconds);
  return {
    stream: COMMIT_STREAM,
    record_key: commit.hash,
    kind: "upserted",
    ...(occurredAt === null ? {} : { occurred_at: occurredAt }),
    payload: {
      subject: commit.subject,
      ...(commit.body === "" ? {} : { body: commit.body }),
      author: {
        name: commit.authorName,
        ...(commit.authorMail === "" ? {} : { mail: commit.authorMail }),
      },
      parents: commit.parents,
      ...(committedAt === null ? {} : { committed_at: committedAt }),
      ...(commit.isCut ? { is_cut: true } : {}),
    },
  };
}

/** First second of the year 0 and last second of 9999: the range of four-digit years. */
const SECONDS_MIN = Date.UTC(-1, 12) / 1000;
const SECONDS_MAX = Date.UTC(9999, 11, 31, 23, 59, 59) / 1000;

/** Formats decimal Unix seconds as `YYYY-MM-DDTHH:MM:SSZ`; null if out of range or malformed. */
export function utcTimestamp(secondsText: string): string | null {
  if (!/^-?[0-9]{1,15}$/.test(secondsText)) return null;
  const seconds = Number(secondsText);
  if (seconds < SECONDS_MIN || seconds > SECONDS_MAX) return null;
  return new Date(seconds * 1000).toISOString().replace(".000Z", "Z");
}
