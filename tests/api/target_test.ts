import assert from "node:assert/strict";
import { test } from "node:test";
import { splitTarget } from "../../src/api/target.ts";

const CASES: Array<[target: string, path: string, query: string]> = [
  ["/v1/events", "/v1/events", ""],
  ["/v1/events?", "/v1/events", ""],
  ["/v1/events?a=b?c", "/v1/events", "a=b?c"],
  ["//v1/events", "//v1/events", ""],
  ["/v1/%65vents", "/v1/%65vents", ""],
  ["/v1/../v1/events", "/v1/../v1/events", ""],
  ["/v1/events#part", "/v1/events#part", ""],
  ["http://host/v1/events?a=b", "/v1/events", "a=b"],
  ["HTTPS://user@host:80/v1/events", "/v1/events", ""],
  ["http://host", "/", ""],
  ["http://host?a=b", "/", "a=b"],
  ["ftp://host/v1/events", "ftp://host/v1/events", ""],
  ["*", "*", ""],
];

for (const [target, path, query] of CASES) {
  test(`splitTarget() takes ${target} for the path ${path}`, () => {
    assert.deepEqual(splitTarget(target), { path, query });
  });
}
