/** Generates random values that match a JSON schema of `docs/openapi.yaml`. */
import { type Random, randomInteger, randomItem } from "../../../tools/support/random.ts";
import type { Node, OpenApiDocument } from "./openapi.ts";

const TEXT_CHARS = [...'aZ09 _./\\"\u0000\n\u007f'];
/** Characters of two to four bytes. Limits are in bytes, which a schema cannot express. */
const WIDE_CHARS = [..."é€\u2028\ufeff\u{1f600}"];
const WIDE_BYTES_MAX = 4;
/** Repetitions that a pattern does not limit. */
const REPEATS_MAX = 3;
const ITEMS_MAX = 5;
const DEPTH_MAX = 4;

export class SchemaValues {
  readonly #document: OpenApiDocument;
  readonly #random: Random;

  constructor(document: OpenApiDocument, random: Random) {
    this.#document = document;
    this.#random = random;
  }

  /** Returns a value that matches the schema of this name. */
  next(name: string): unknown {
    return this.#value({ $ref: `#/components/schemas/${name}` } as unknown as Node);
  }

  #value(node: Node): unknown {
    const schema = this.#document.resolve(node) as Record<string, unknown>;
    if (schema.const !== undefined) return schema.const;
    const oneOf = schema.oneOf as Node[] | undefined;
    if (oneOf !== undefined) return this.#value(randomItem(this.#random, oneOf));
    switch (schema.type) {
      case "null":
        return null;
      case "string":
        return this.#text(schema);
      case "array": {
        const { minItems = 0, maxItems = ITEMS_MAX } = schema as Record<string, number>;
        const count = this.#integer(minItems, Math.min(maxItems, ITEMS_MAX));
        return Array.from({ length: count }, () => this.#value(schema.items as Node));
      }
      case "object": {
        const required = schema.required as string[];
        const members = Object.entries(schema.properties as Record<string, Node>)
          .filter(([name]) => required.includes(name) || this.#integer(0, 1) === 1);
        return Object.fromEntries(members.map(([name, member]) => [name, this.#value(member)]));
      }
      default:
        return this.#json(0);
    }
  }

  #text(schema: Record<string, unknown>): string {
    const { pattern } = schema as { pattern?: string };
    const { minLength = 0, maxLength = 64 } = schema as Record<string, number>;
    if (pattern !== undefined && !pattern.startsWith("^(?!service/)")) {
      const matching = new PatternText(pattern, this.#random).text.slice(0, maxLength);
      return new RegExp(pattern, "u").test(matching) ? matching : this.#text(schema);
    }
    const isWide = this.#integer(0, 3) === 0;
    const chars = isWide ? [...TEXT_CHARS, ...WIDE_CHARS] : TEXT_CHARS;
    const lengthMax = isWide ? Math.floor(maxLength / WIDE_BYTES_MAX) : maxLength;
    const length = this.#integer(0, 3) === 0 ? lengthMax : this.#integer(minLength, lengthMax);
    return Array.from({ length }, () => randomItem(this.#random, chars)).join("");
  }

  /** Any JSON value. */
  #json(depth: number): unknown {
    const kind = this.#integer(0, depth < DEPTH_MAX ? 6 : 4);
    if (kind === 0) return null;
    if (kind === 1) return this.#integer(0, 1) === 1;
    if (kind === 2) return this.#integer(-1e15, 1e15);
    if (kind === 3) return (this.#random() - 0.5) * 10 ** this.#integer(-300, 14);
    if (kind === 4) return this.#text({});
    const values = Array.from({ length: this.#integer(0, 4) }, () => this.#json(depth + 1));
    if (kind === 5) return values;
    return Object.fromEntries(values.map((value) => [this.#text({}), value]));
  }

  #integer(min: number, max: number): number {
    return randomInteger(this.#random, min, max);
  }
}

/** A text that matches a pattern of literals, classes, groups, alternatives and repetitions. */
class PatternText {
  readonly text: string;
  readonly #pattern: string;
  readonly #random: Random;
  #at = 0;

  constructor(pattern: string, random: Random) {
    this.#pattern = pattern;
    this.#random = random;
    this.text = this.#alternatives()();
  }

  /** Parses up to the end of the group. @returns a function that makes a text. */
  #alternatives(): () => string {
    const options = [this.#sequence()];
    while (this.#skip("|")) options.push(this.#sequence());
    this.#skip(")");
    return () => randomItem(this.#random, options)();
  }

  #sequence(): () => string {
    const parts: (() => string)[] = [];
    while (this.#at < this.#pattern.length && !/[|)]/.test(this.#pattern[this.#at]!)) {
      const part = this.#atom();
      const [min, max] = this.#repetition();
      const count = () => randomInteger(this.#random, min, max);
      parts.push(() => Array.from({ length: count() }, part).join(""));
    }
    return () => parts.map((part) => part()).join("");
  }

  #atom(): () => string {
    if (this.#skip("(?!")) return this.#alternatives() && (() => "");
    if (this.#skip("(?:") || this.#skip("(")) return this.#alternatives();
    if (this.#skip("[")) return this.#charClass();
    if (this.#skip("\\d")) return () => String(randomInteger(this.#random, 0, 9));
    this.#skip("\\");
    const char = this.#pattern[this.#at++]!;
    return () => /[$^]/.test(char) ? "" : char;
  }

  #charClass(): () => string {
    const end = this.#pattern.indexOf("]", this.#at);
    const text = this.#pattern.slice(this.#at, end);
    this.#at = end + 1;
    const chars = [...text.matchAll(/(.)-(.)|./gs)].flatMap(([char, first, last]) => {
      if (first === undefined) return [char];
      const from = first.charCodeAt(0);
      const count = last!.charCodeAt(0) - from + 1;
      return Array.from({ length: count }, (_, n) => String.fromCharCode(from + n));
    });
    return () => randomItem(this.#random, chars);
  }

  #repetition(): [min: number, max: number] {
    if (this.#skip("*")) return [0, REPEATS_MAX];
    if (this.#skip("+")) return [1, REPEATS_MAX];
    if (this.#skip("?")) return [0, 1];
    const braces = /^\{(\d+)(?:,(\d+))?\}/.exec(this.#pattern.slice(this.#at));
    if (braces === null) return [1, 1];
    this.#at += braces[0].length;
    return [Number(braces[1]), Number(braces[2] ?? braces[1])];
  }

  #skip(token: string): boolean {
    const isNext = this.#pattern.startsWith(token, this.#at);
    if (isNext) this.#at += token.length;
    return isNext;
  }
}
