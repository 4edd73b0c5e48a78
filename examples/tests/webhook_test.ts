/** `webhook` against a served deployment and an endpoint on loopback that fails in many ways. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { createHmac } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { signalChild, untilPrinted } from "../../tools/support/program.ts";
import { type Deployment, withServing } from "../../tests/support/deployment.ts";
import { parseSecrets, signatureHeaders } from "../support/webhook_signature.ts";
import { runExample, startExample } from "./support/run_script.ts";
import { append, readLog } from "./support/served.ts";

const KEY = "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const HUGE_BYTES = 64 * 1024 * 1024;

/** Answers one request. */
type Answer = (response: ServerResponse, request: IncomingMessage) => void;

const status = (code: number, headers = {}): Answer => (response) =>
  void response.writeHead(code, headers).end("{}");
const accept = status(204);

/** The ways in which an attempt fails, and what the program says about it. */
const FAILURES: [name: string, answer: Answer, said: RegExp][] = [
  ["a 5xx", status(502), /status 502/],
  ["a 4xx", status(404), /status 404/],
  ["no response in time", () => {}, /no complete response within 0\.5 s/],
  ["a reset before the response", (_, request) => request.socket.resetAndDestroy(), /: /],
  ["a reset in the response", (response) => {
    response.writeHead(200, { "Content-Length": 1000 }).write("{");
    response.socket!.resetAndDestroy();
  }, /: /],
  ["a body that never ends", (response) => {
    response.writeHead(200).write("{");
  }, /no complete response within 0\.5 s/],
  ["a redirect", status(302, { Location: "/elsewhere" }), /status 302/],
  ["a 429 with Retry-After", status(429, { "Retry-After": "1" }), /429; retrying in 1000 ms/],
  ["a huge error", (response) => {
    response.writeHead(500).on("error", () => {}).end(new Uint8Array(HUGE_BYTES));
  }, /status 500/],
  ["something that is not HTTP", (_, request) => void request.socket.end("hello\r\n"), /: /],
];

interface Received {
  headers: IncomingMessage["headers"];
  body: string;
}

interface Endpoint {
  url: string;
  received: Received[];
  paths: Set<string>;
}

/** Runs `use` with an endpoint that gives these answers in order, and then accepts. */
async function withEndpoint(answers: Answer[], use: (endpoint: Endpoint) => Promise<void>) {
  const endpoint: Endpoint = { url: "", received: [], paths: new Set() };
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request.setEncoding("utf8")) body += chunk;
    endpoint.received.push({ headers: request.headers, body });
    endpoint.paths.add(request.url!);
    (answers.shift() ?? accept)(response, request);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  endpoint.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;
  try {
    await use(endpoint);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

/** Writes the secret, and returns the arguments for a run. */
async function argsFor({ folder, socketPath }: Deployment, url: string): Promise<string[]> {
  await writeFile(join(folder, "secret"), `whsec_${KEY}\n`);
  return [
    ...["--socket", socketPath, "--url", url, "--secret-file", join(folder, "secret")],
    ...["--cursor", join(folder, "cursor"), "--given-up", join(folder, "given-up")],
    ...["--pause", "0.001", "--timeout", "0.5"],
  ];
}

const EVENTS = ["1", "2", "3"].map((record_key) => ({
  stream: "orders",
  record_key,
  kind: "upserted",
  payload: { "€": [1e21, 0.1, null] },
}));

test("signatureHeaders() signs as the specification's example does, with each secret", () => {
  const keys = parseSecrets(`whsec_${KEY}\nwhsec_${KEY}`);
  const signature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
  assert.deepEqual(
    signatureHeaders(keys, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, '{"test": 2432232314}'),
    {
      "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
      "webhook-timestamp": "1614265330",
      "webhook-signature": `${signature} ${signature}`,
    },
  );
  for (const text of ["", KEY, "whsec_c2hvcnQ=", `whsec_${"A".repeat(88)}`, "whsec_é"]) {
    const isSecretQuoted = (error: Error) => !error.message.includes(text || "none");
    assert.throws(() => parseSecrets(text), isSecretQuoted, text);
  }
});

test("webhook delivers every matching event in order, signed, and resumes at its position", () =>
  withServing((served) =>
    withEndpoint([], async ({ url, received }) => {
      const args = [...await argsFor(served, url), "--stream", "orders", "--once"];
      await append(served, "1", EVENTS);
      await append(served, "2", EVENTS.map((event) => ({ ...event, stream: "other" })));
      const log = await readLog(served);
      const { code, stdout, stderr } = await runExample("webhook", args);
      assert.deepEqual([code, stderr, stdout.match(/delivered/g)?.length], [0, "", 3]);
      const bodies = received.map(({ body }) => JSON.parse(body));
      assert.deepEqual(bodies.map(({ data }) => data), log.slice(0, 3));
      assert.equal(bodies[0].type, "orders.upserted");
      for (const [index, { headers, body }] of received.entries()) {
        const id = log[index]!.event_id;
        const signed = `${id}.${headers["webhook-timestamp"]}.${body}`;
        assert.equal(headers["webhook-id"], id);
        assert.equal(headers["webhook-signature"], `v1,${macOf(signed)}`);
      }
      const cursor = await readFile(join(served.folder, "cursor"), "utf8");
      assert.equal(cursor, `${log.at(-1)!.event_id}\n`);
      assert.equal((await runExample("webhook", args)).stdout, "");
    })
  ));

function macOf(text: string): string {
  return createHmac("sha256", Buffer.from(KEY, "base64")).update(text).digest("base64");
}

test("webhook repeats an event after each kind of failure, and the next one waits", () =>
  withServing((served) =>
    withEndpoint(FAILURES.map(([, answer]) => answer), async ({ url, received, paths }) => {
      await append(served, "1", EVENTS);
      const args = [...await argsFor(served, url), "--once"];
      const { code, stdout, stderr } = await runExample("webhook", args);
      assert.equal(code, 0, stderr);
      assert.equal(stdout.match(/delivered/g)?.length, 3);
      const said = stderr.trimEnd().split("\n");
      for (const [index, [name, , pattern]] of FAILURES.entries()) {
        assert.match(said[index] ?? "", pattern, name);
      }
      const log = await readLog(served);
      const ids = received.map(({ headers }) => headers["webhook-id"]);
      const expected = [...FAILURES.map(() => log[0]!), ...log].map(({ event_id }) => event_id);
      assert.deepEqual(ids, expected);
      assert.deepEqual([...paths], ["/hook"]);
    })
  ));

test("webhook counts a huge response with a status of success as accepted", () =>
  withServing(async (served) => {
    const answer: Answer = (response) =>
      void response.on("error", () => {}).end(new Uint8Array(HUGE_BYTES));
    await withEndpoint([answer], async ({ url, received }) => {
      await append(served, "1", EVENTS);
      const args = [...await argsFor(served, url), "--once"];
      assert.equal((await runExample("webhook", args)).code, 0);
      assert.equal(received.length, 3);
    });
  }));

test("webhook waits for an endpoint that refuses connections, and stops cleanly", () =>
  withServing(async (served) => {
    await append(served, "1", EVENTS);
    let refusing = "";
    await withEndpoint([], ({ url }) => Promise.resolve(void (refusing = url)));
    const waiting = startExample("webhook", await argsFor(served, refusing));
    await untilPrinted(waiting, ({ stderr }) => (stderr.match(/retrying/g)?.length ?? 0) > 2);
    signalChild(waiting.child, "SIGTERM");
    const { code, stdout, stderr } = await waiting.exited;
    assert.deepEqual([code, stdout], [0, ""], stderr);
  }));

test("webhook keeps what it gave up, and goes on with the next event", () =>
  withServing((served) =>
    withEndpoint(Array(3).fill(status(422)), async ({ url }) => {
      await append(served, "1", EVENTS);
      const args = [...await argsFor(served, url), "--once", "--attempts", "3"];
      const { code, stdout, stderr } = await runExample("webhook", args);
      assert.equal(code, 0, stderr);
      assert.match(stdout, /^\S+ given up\n\S+ delivered\n\S+ delivered\n$/);
      const lines = (await readFile(join(served.folder, "given-up"), "utf8")).trimEnd().split("\n");
      const [{ reason, event } = assert.fail()] = lines.map((line) => JSON.parse(line));
      assert.deepEqual([lines.length, reason], [1, "status 422 (attempt 3)"]);
      assert.deepEqual(event, (await readLog(served))[0]);
    })
  ));

test("webhook stops at an endpoint that is gone, without moving past the event", () =>
  withServing((served) =>
    withEndpoint([accept, status(410)], async ({ url, received }) => {
      await append(served, "1", EVENTS);
      const args = [...await argsFor(served, url), "--once"];
      const { code, stderr } = await runExample("webhook", args);
      assert.equal(code, 1);
      assert.match(stderr, /^the endpoint is gone/);
      assert.equal((await runExample("webhook", args)).code, 0);
      const keys = received.map(({ body }) => JSON.parse(body).data.record_key);
      assert.deepEqual(keys, ["1", "2", "2", "3"]);
    })
  ));

test("webhook refuses a secret in its arguments, and one that is not a secret", () =>
  withServing(async (served) => {
    const args = await argsFor(served, "http://127.0.0.1:1/");
    const asArgument = await runExample("webhook", [...args, "--secret", `whsec_${KEY}`]);
    assert.equal(asArgument.code, 2);
    await writeFile(join(served.folder, "secret"), "not-a-secret");
    const { code, stderr } = await runExample("webhook", args);
    assert.equal(code, 1);
    assert.match(stderr, /^a secret must be whsec_/);
    const withUser = args.map((word) => word.replace("http://", "http://user:pw@"));
    assert.equal((await runExample("webhook", withUser)).code, 2);
  }));
