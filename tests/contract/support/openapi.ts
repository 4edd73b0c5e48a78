/** The operations in `docs/openapi.yaml`, and checks of responses against them. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import { parse } from "yaml";
import type { HttpReply } from "../../support/http_client.ts";

/** A node in the document. */
export type Node = { [name: string]: Node } & { [name: number]: Node };

const DOCUMENT_URL = new URL("../../../docs/openapi.yaml", import.meta.url);
/** Responses to requests outside the document's operations. */
const OUTSIDE_OPERATIONS: Record<number, string> = {
  401: "Unauthorized",
  404: "NotFound",
  405: "MethodNotAllowed",
};
const METHODS = ["get", "head", "post", "put", "patch", "delete", "options", "trace"];

export class OpenApiDocument {
  readonly root: Node;
  readonly #ajv: Ajv2020;
  readonly #validators = new Map<string, ValidateFunction>();

  /**
   * Reads the document. Its schemas allow unknown members, which later versions may add. Here, they
   * are rejected, so that the service sends nothing undocumented.
   */
  constructor() {
    this.root = parse(readFileSync(DOCUMENT_URL, "utf8"));
    const closed = structuredClone(this.root);
    for (const schema of Object.values(closed.components!.schemas!)) {
      if (isEqual(schema.type, "object")) Object.assign(schema, { additionalProperties: false });
    }
    this.#ajv = new Ajv2020({ strict: true, allErrors: true });
    this.#ajv.addVocabulary(Object.keys(closed));
    this.#ajv.addSchema(closed, "openapi");
  }

  get paths(): string[] {
    return Object.keys(this.root.paths!);
  }

  /** The methods of a path, in uppercase. */
  methodsOf(path: string): string[] {
    return Object.keys(this.root.paths![path]!).filter((name) => METHODS.includes(name))
      .map((name) => name.toUpperCase());
  }

  /** Resolves `node` if it is a reference within the document. */
  resolve(node: Node): Node {
    const reference = node.$ref as unknown as string | undefined;
    if (reference === undefined) return node;
    return this.resolve(this.#at(reference));
  }

  /** Asserts that a value matches the schema at a pointer such as `#/components/schemas/Batch`. */
  assertValid(pointer: string, value: unknown): void {
    assert.deepEqual(this.#faultsOf(pointer, value), [], `${pointer}: ${JSON.stringify(value)}`);
  }

  /** Whether a value matches the schema at a pointer. */
  isValid(pointer: string, value: unknown): boolean {
    return this.#faultsOf(pointer, value).length === 0;
  }

  #faultsOf(pointer: string, value: unknown): unknown[] {
    const validate = this.#validators.get(pointer) ??
      this.#ajv.compile({ $ref: `openapi${pointer}` });
    this.#validators.set(pointer, validate);
    return validate(value) ? [] : validate.errors ?? [];
  }

  /** A pointer to the description of a response, for any path and method. */
  responsePointer(method: string, path: string, status: number): string {
    const isOperation = this.paths.includes(path) && this.methodsOf(path).includes(method);
    if (!isOperation) return `#/components/responses/${OUTSIDE_OPERATIONS[status]}`;
    const pointer = `#/paths/${escapeStep(path)}/${method.toLowerCase()}/responses/${status}`;
    return (this.#at(pointer).$ref as unknown as string | undefined) ?? pointer;
  }

  /** Asserts that a reply matches the documented operation. */
  assertReply(method: string, path: string, reply: HttpReply): void {
    const pointer = this.responsePointer(method, path, reply.status);
    this.#assertHeaders(pointer, reply);
    if (method === "HEAD") return assert.equal(reply.body.length, 0);
    assert.equal(reply.headers["content-type"], "application/json");
    this.assertValid(`${pointer}/content/${escapeStep("application/json")}/schema`, reply.json());
  }

  #assertHeaders(pointer: string, reply: HttpReply): void {
    for (const [name, node] of Object.entries(this.#at(pointer).headers ?? {})) {
      const header = this.resolve(node);
      const value = reply.headers[name.toLowerCase()];
      if (value === undefined) {
        assert.ok((header.required as unknown) !== true, `${pointer} has the header ${name}`);
        continue;
      }
      const parsed = isEqual(header.schema!.type, "integer") ? Number(value) : value;
      const owner = (node.$ref as unknown as string) ?? `${pointer}/headers/${name}`;
      this.assertValid(`${owner}/schema`, parsed);
    }
  }

  #at(pointer: string): Node {
    const node = stepsOf(pointer).reduce<Node | undefined>((at, step) => at?.[step], this.root);
    assert.ok(node !== undefined, `${pointer} exists`);
    return node;
  }
}

/** The components of a JSON pointer in a URI fragment (RFC 6901). */
function stepsOf(pointer: string): string[] {
  return pointer.split("/").slice(1).map((step) =>
    decodeURIComponent(step).replaceAll("~1", "/").replaceAll("~0", "~")
  );
}

function escapeStep(name: string): string {
  return name.replaceAll("~", "~0").replaceAll("/", "~1");
}

function isEqual(node: unknown, value: unknown): boolean {
  return node === value;
}
