/** Checks `docs/openapi.yaml` against the service. */
import assert from "node:assert/strict";
import { ERROR_STATUS } from "../../src/event/api_error.ts";
import { createRoutes, ResponseMemory } from "../../src/api/handler.ts";
import {
  BATCH_EVENTS_MAX,
  NAME_BYTES_MAX,
  RECORD_KEY_BYTES_MAX,
  STREAMS_LIMIT_DEFAULT,
  STREAMS_LIMIT_MAX,
} from "../../src/limits.ts";
import { VERSION } from "../../src/version.ts";
import { test } from "../support/tested_service.ts";
import { request } from "../support/http_client.ts";
import { TESTED_EXECUTABLE } from "../../tools/support/runtimes.ts";
import { stubLog } from "../support/stub_log.ts";
import { commit } from "./support/api.ts";
import { FollowReader } from "./support/follow_reader.ts";
import { type Node, OpenApiDocument } from "./support/openapi.ts";
import { withService } from "./support/served.ts";
import { withServedLog } from "./support/served_log.ts";
import { makeTour } from "./support/tour.ts";
import { TOUR, TOUR_BODIES } from "./support/tour_stops.ts";

const DOCUMENT = new OpenApiDocument();
const EXAMPLES: Record<string, Node> = DOCUMENT.root.components!.examples!;

/** All nodes in the document that have a member `name`, each with its JSON pointer. */
function* nodesWith(
  name: string,
  node: unknown = DOCUMENT.root,
  at = "#",
): Generator<[Node, string]> {
  if (typeof node !== "object" || node === null) return;
  if (Object.hasOwn(node, name)) yield [node as Node, at];
  for (const [key, child] of Object.entries(node)) {
    if (!at.startsWith("#/components/examples/")) yield* nodesWith(name, child, `${at}/${key}`);
  }
}

test("docs/openapi.yaml: has the product's version, and all references resolve", () => {
  assert.equal(DOCUMENT.root.info!.version, VERSION);
  for (const [node] of nodesWith("$ref")) DOCUMENT.resolve(node);
});

test("docs/openapi.yaml: lists exactly the routes and methods of the service", () => {
  const replay = { defaultLimit: 1, maxLimit: 1 };
  const options = { log: stubLog({}), replay };
  const routes = createRoutes(options, new ResponseMemory(), () => assert.fail());
  assert.deepEqual(DOCUMENT.paths, [...routes.keys()]);
  for (const [path, route] of routes) {
    assert.deepEqual(DOCUMENT.methodsOf(path).sort(), [...route.keys()].sort(), path);
  }
});

test("docs/openapi.yaml: lists exactly the error codes", () => {
  const schemas: Node[] = Object.values(DOCUMENT.root.components!.schemas!);
  const codes = schemas.flatMap(({ properties }) => properties?.error?.const ?? []).map(String);
  assert.deepEqual([...new Set(codes)].sort(), Object.keys(ERROR_STATUS).sort());
});

test("docs/openapi.yaml: states the limits of the service", () => {
  const { schemas, parameters } = DOCUMENT.root.components!;
  assert.equal(schemas!.Batch!.properties!.events!.maxItems, BATCH_EVENTS_MAX);
  assert.equal(schemas!.Name!.maxLength, NAME_BYTES_MAX);
  assert.equal(schemas!.Kind!.maxLength, NAME_BYTES_MAX);
  assert.equal(schemas!.RecordKey!.maxLength, RECORD_KEY_BYTES_MAX);
  assert.equal(parameters!.StreamLimit!.schema!.maximum, STREAMS_LIMIT_MAX);
  assert.equal(parameters!.StreamLimit!.schema!.default, STREAMS_LIMIT_DEFAULT);
});

test("docs/openapi.yaml: exactly the documented parameters are accepted", () =>
  withService(async ({ socketPath }) => {
    for (const path of ["/v1/events", "/v1/streams"]) {
      const parameters = Object.values(DOCUMENT.root.paths![path]!.get!.parameters!);
      const names = parameters.map((node) => String(DOCUMENT.resolve(node).name));
      for (const name of [...names, "offset"]) {
        const reply = await request(socketPath, { path: `${path}?${name}=%21` });
        assert.equal(reply.json().error === "invalid_request", name === "offset", name);
      }
    }
  }));

/** The tour injects every kind of failure, so the service must run in this process. */
const TOUR_SKIP = TESTED_EXECUTABLE === undefined ? false : "needs a service in this process";

/** Error codes for bodies that the schema also rejects. */
const SCHEMA_ERRORS = /^(invalid_(request|batch|events|source_retirement)|body_too_large)$/;

test("docs/openapi.yaml: requests and responses match it, and examples are real responses", {
  skip: TOUR_SKIP,
}, async () => {
  const seen = new Map<string, unknown>();
  const codes = new Set<string>();
  await makeTour(TOUR, ([example, { method, path = "/v1/events", body }], reply) => {
    const usedMethod = method ?? (body === undefined ? "GET" : "POST");
    DOCUMENT.assertReply(usedMethod, path.split("?")[0]!, reply);
    if (example !== null) seen.set(example, reply.json());
    if (method === "HEAD") return;
    const code = reply.status === 200 ? "" : reply.json().error;
    if (code !== "") codes.add(code);
    const isTold = code === "" || SCHEMA_ERRORS.test(code);
    if (isTold && typeof body === "object" && !(body instanceof Uint8Array)) {
      const schema = path === "/v1/events" ? "Batch" : "Retirement";
      assert.equal(DOCUMENT.isValid(`#/components/schemas/${schema}`, body), code === "");
    }
  });
  for (const [name, answer] of seen) {
    assert.deepEqual(EXAMPLES[name]?.value, answer, `example ${name}`);
  }
  assert.deepEqual([...codes].sort(), Object.keys(ERROR_STATUS).sort());
});

const FOLLOW_LINES = ["follow_snapshot", "follow_caught_up", "follow_live", "follow_end"];

test("docs/openapi.yaml: the headers and lines of a follow match, and examples are real lines", () =>
  withServedLog(async ({ socketPath, shutDown }) => {
    await commit(socketPath, TOUR_BODIES.batch);
    const follow = await FollowReader.open(socketPath);
    const { headers, content } = DOCUMENT.root.paths!["/v1/events"]!.get!.responses!["200"]!;
    const head = await request(socketPath, { path: "/v1/events?follow=true", method: "HEAD" });
    for (const reply of [follow, head]) {
      for (const [name, header] of Object.entries(headers!)) {
        assert.equal(reply.headers[name.toLowerCase()], header.schema!.const);
      }
      assert.equal(reply.headers["content-type"], "application/x-ndjson");
    }
    assert.ok("application/x-ndjson" in content! && head.body.length === 0);
    const lines = [await follow.next(), await follow.next()];
    await commit(socketPath, TOUR_BODIES.conditional_batch);
    lines.push(await follow.next());
    await shutDown();
    lines.push(await follow.next());
    for (const [n, name] of FOLLOW_LINES.entries()) {
      DOCUMENT.assertValid("#/components/schemas/FollowRecord", lines[n]);
      assert.deepEqual(EXAMPLES[name]?.value, lines[n], `example ${name}`);
    }
  }));

test("docs/openapi.yaml: every example is referenced and is a real message", () => {
  const used = new Set([...nodesWith("$ref")].map(([node]) => String(node.$ref)));
  const answers = TOUR.flatMap(([example]) => example ?? []);
  const names = [...Object.keys(TOUR_BODIES), ...answers, ...FOLLOW_LINES].sort();
  assert.deepEqual(Object.keys(EXAMPLES).sort(), names);
  for (const name of names) assert.ok(used.has(`#/components/examples/${name}`), name);
  for (const [name, body] of Object.entries(TOUR_BODIES)) {
    assert.deepEqual(EXAMPLES[name]!.value, body);
    const schema = name === "retirement" ? "Retirement" : "Batch";
    DOCUMENT.assertValid(`#/components/schemas/${schema}`, body);
  }
});
