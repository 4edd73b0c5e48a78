/** What a commit is in the log: the event that stands for it. Depends on nothing but the commit. */
import type { Commit } from "./git_commits.ts";

export const COMMIT_SOURCE = "git";
export const COMMIT_STREAM = "commits";

/** A submitted event, as `POST /v1/events` takes it. */
export interface CommitEvent {
  stream: typeof COMMIT_STREAM;
  /** The commit's hash. */
  record_key: string;
  kind: "upserted";
  /** When it was written, as its author's clock said; absent when that is no date. */
  occurred_at?: string;
  payload: {
    subject: string;
    body?: string;
    author: { name: string; mail?: string };
    parents: string[];
    committed_at?: string;
    /** Present when a text of the commit was too long to be taken whole. */
    is_cut?: true;
  };
}

/** The event of a commit. The same commit gives the same event, byte for byte, at any time. */
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

/** First second of the year 0 and last one of 9999: all that four digits of a year can say. */
const SECONDS_MIN = Date.UTC(-1, 12) / 1000;
const SECONDS_MAX = Date.UTC(9999, 11, 31, 23, 59, 59) / 1000;

/** Seconds since 1970, in decimal, as `YYYY-MM-DDTHH:MM:SSZ`; null for what is no such date. */
export function utcTimestamp(secondsText: string): string | null {
  if (!/^-?[0-9]{1,15}$/.test(secondsText)) return null;
  const seconds = Number(secondsText);
  if (seconds < SECONDS_MIN || seconds > SECONDS_MAX) return null;
  return new Date(seconds * 1000).toISOString().replace(".000Z", "Z");
}
