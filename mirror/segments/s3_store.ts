/**
 * A bucket in an S3-compatible store. The signature of a PUT covers the SHA-256 of its body, so the
 * store rejects a body that was altered in transit.
 *
 * Reads AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION and, for stores
 * other than Amazon S3, AWS_ENDPOINT_URL.
 */
import { AwsV4Signer } from "aws4fetch";
import { createReadStream } from "node:fs";
import { type IncomingMessage, request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import process from "node:process";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { usageError } from "../../src/commands/exit.ts";
import { sha256Hex } from "../../src/event/hash.ts";
import { readStart, type SegmentStore } from "./segment_store.ts";

const DEFAULT_REGION = "us-east-1";
/** A connection that transfers no data for this long is closed. */
const STALL_TIMEOUT_MS = 60_000;
const OK = 200;
const NOT_FOUND = 404;
/** Maximum size of the response body quoted in an error message. */
const ERROR_BYTES_MAX = 500;

interface Content {
  bytes: number;
  sha256: string;
  read: () => Readable;
}

/** @param url `s3://<bucket>[/<prefix>]` */
export function s3Store(url: URL): SegmentStore {
  const prefix = url.pathname.replace(/^\/+|\/+$/g, "");
  const bucket = new Bucket(url.hostname);
  const keyOf = (name: string) => prefix === "" ? name : `${prefix}/${name}`;
  return {
    async size(name) {
      const response = await bucket.send("HEAD", keyOf(name));
      response.resume();
      return response.statusCode === NOT_FOUND ? null : Number(response.headers["content-length"]);
    },
    async put(name, { path, bytes, sha256 }) {
      await bucket.put(keyOf(name), { bytes, sha256, read: () => createReadStream(path) });
    },
    async putSmall(name, bytes) {
      const sha256 = sha256Hex(bytes);
      const read = () => Readable.from([bytes]);
      await bucket.put(keyOf(name), { bytes: bytes.length, sha256, read });
    },
    async get(name) {
      const response = await bucket.send("GET", keyOf(name));
      if (response.statusCode === OK) return response;
      response.resume();
      return null;
    },
  };
}

class Bucket {
  readonly #url: string;
  readonly #region: string;

  constructor(name: string) {
    const { AWS_REGION: region = DEFAULT_REGION, AWS_ENDPOINT_URL: endpoint } = process.env;
    this.#region = region;
    this.#url = `${(endpoint ?? `https://s3.${region}.amazonaws.com`).replace(/\/$/, "")}/${name}`;
  }

  async put(key: string, content: Content): Promise<void> {
    (await this.send("PUT", key, content)).resume();
  }

  /** @throws {Error} unless the status is 200 or, for GET and HEAD, 404. */
  async send(
    method: "GET" | "HEAD" | "PUT",
    key: string,
    content?: Content,
  ): Promise<IncomingMessage> {
    const signed = await this.#sign(method, key, content);
    const response = await exchange(signed, content);
    const status = response.statusCode ?? 0;
    if (status === OK || status === NOT_FOUND && method !== "PUT") return response;
    const text = await readStart(response, ERROR_BYTES_MAX);
    throw new Error(`${method} ${signed.url.origin}${signed.url.pathname}: ${status} ${text}`);
  }

  #sign(method: string, key: string, content: Content | undefined) {
    const {
      AWS_ACCESS_KEY_ID: accessKeyId,
      AWS_SECRET_ACCESS_KEY: secretAccessKey,
      AWS_SESSION_TOKEN: sessionToken,
    } = process.env;
    if (accessKeyId === undefined || secretAccessKey === undefined) {
      throw usageError("s3: URLs require AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY");
    }
    const sha256 = content?.sha256 ?? sha256Hex("");
    return new AwsV4Signer({
      method,
      url: `${this.#url}/${key.split("/").map(encodeURIComponent).join("/")}`,
      headers: { "x-amz-content-sha256": sha256 },
      accessKeyId,
      secretAccessKey,
      ...(sessionToken && { sessionToken }),
      service: "s3",
      region: this.#region,
    }).sign();
  }
}

type Signed = Awaited<ReturnType<AwsV4Signer["sign"]>>;

/** Sends a request with `node:http`, since `fetch` cannot set the required Content-Length. */
function exchange({ method, url, headers }: Signed, content?: Content): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const send = url.protocol === "https:" ? httpsRequest : httpRequest;
    const fields = Object.fromEntries(headers);
    if (content !== undefined) fields["content-length"] = `${content.bytes}`;
    const outgoing = send(url, { method, headers: fields, timeout: STALL_TIMEOUT_MS }, resolve);
    outgoing.on("timeout", () => outgoing.destroy(new Error(`${url.host} did not respond`)));
    outgoing.on("error", reject);
    if (content === undefined) outgoing.end();
    else pipeline(content.read(), outgoing).catch(reject);
  });
}
