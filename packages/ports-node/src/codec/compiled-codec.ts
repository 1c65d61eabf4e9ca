/**
 * A codec for one type of message, as JavaScript that is made from its descriptor when the type is used first. Each field is a line of its own with its
 * name, tag and type, so that V8 sees the same shapes at the same places; protobuf-es looks every field up by name in closures that all types share.
 *
 * The bytes and the messages are those of protobuf-es (compiled-codec.test.ts compares both over all types). Whatever is out of the ordinary goes through
 * protobuf-es: unknown fields, a message field twice, numbers of more than 64 bits, malformed bytes, values of the wrong type.
 */
import { type DescField, type DescMessage, type DescOneof, type Message, ScalarType } from "@bufbuild/protobuf";
import { type EncodedParts, outOfTheOrdinary, WireReader, WireWriter } from "./wire-format.ts";

export interface CompiledCodec {
  /** Returns undefined for a message that is left to protobuf-es. */
  encode(init: object): EncodedParts | undefined;
  decode(bytes: Uint8Array): Message | undefined;
}

type Write = (writer: WireWriter, message: object) => void;
type Read = (reader: WireReader, end: number) => object;

/** Functions that compiled code of a type calls; filled when the type is compiled. */
interface Compiled {
  write: Write;
  read: Read;
}

/** Names of the methods of WireWriter and WireReader, and wire types. */
const scalars: ReadonlyMap<ScalarType, readonly [method: string, wireType: number, zero: string]> = new Map([
  [ScalarType.UINT32, ["uint32", 0, "0"]],
  [ScalarType.INT32, ["int32", 0, "0"]],
  [ScalarType.SINT32, ["sint32", 0, "0"]],
  [ScalarType.UINT64, ["uint64", 0, "0n"]],
  [ScalarType.INT64, ["int64", 0, "0n"]],
  [ScalarType.SINT64, ["sint64", 0, "0n"]],
  [ScalarType.BOOL, ["bool", 0, "false"]],
  [ScalarType.DOUBLE, ["double", 1, "0"]],
  [ScalarType.STRING, ["string", 2, '""']],
  [ScalarType.BYTES, ["bytes", 2, "none()"]],
]);

const lengthDelimited = 2;
const implicit = 2;
const quoted = (text: string): string => JSON.stringify(text);

class Unsupported extends Error {}

/** One value, alone or in a list, a map or a oneof. */
class Kind {
  readonly method: string;
  readonly wireType: number;
  readonly zero: string;
  /** Name of the child's `Compiled`; undefined if it is no message. */
  readonly child: string | undefined;

  constructor(scalar: ScalarType | undefined, child: string | undefined) {
    const known = child === undefined ? scalars.get(scalar ?? ScalarType.INT32) : (["", lengthDelimited, "undefined"] as const);
    if (known === undefined) throw new Unsupported();
    [this.method, this.wireType, this.zero] = known;
    this.child = child;
  }

  tag(number: number): number {
    return number * 8 + this.wireType;
  }

  write(value: string): string {
    if (this.child === undefined) return `w.${this.method}(${value});`;
    return `if (typeof ${value} !== "object") throw odd; { const b = w.begin(); ${this.child}.write(w, ${value}); w.end(b); }`;
  }

  get read(): string {
    return this.child === undefined ? `r.${this.method}()` : `${this.child}.read(r, r.enter())`;
  }

  /** Returns the condition under which a field without presence is written. */
  isSet(value: string): string {
    if (this.method === "bytes") return `${value} != null && ${value}.length !== 0`;
    if (this.method === "double") return `${value} != null && !Object.is(${value}, 0)`;
    return `${value} != null && ${value} !== ${this.zero}`;
  }
}

/** The text of the two functions of one type. */
class TypeText {
  readonly children: DescMessage[] = [];
  readonly #writes: [number: number, text: string][] = [];
  readonly #locals: string[] = [];
  readonly #cases: string[] = [];
  readonly #literal: string[] = [];
  readonly #optional: string[] = [];
  readonly #typeName: string;

  constructor(schema: DescMessage, without: DescField | undefined) {
    this.#typeName = schema.typeName;
    for (const member of schema.members) {
      if (member.kind === "oneof") this.#oneof(member);
      else if (member.fieldKind === "list") this.#list(member, member !== without);
      else if (member.fieldKind === "map") this.#map(member);
      else this.#singular(member, member !== without);
    }
  }

  #kind(field: { readonly message?: DescMessage | undefined; readonly scalar?: ScalarType | undefined }): Kind {
    if (field.message === undefined) return new Kind(field.scalar, undefined);
    if (field.message.file.proto.package !== "stamp.v1") throw new Unsupported();
    let at = this.children.indexOf(field.message);
    if (at < 0) at = this.children.push(field.message) - 1;
    return new Kind(undefined, `c${at}`);
  }

  #singular(field: DescField & { fieldKind: "scalar" | "enum" | "message" }, written: boolean): void {
    const name = field.localName;
    const local = `f${field.number}`;
    const kind = this.#kind(field);
    const hasPresence = field.presence !== implicit;
    const condition = hasPresence ? "v != null" : kind.isSet("v");
    if (written)
      this.#writes.push([field.number, `v = m.${name}; if (${condition}) { w.tag(${kind.tag(field.number)}); ${kind.write("v")} }`]);
    if (hasPresence) {
      this.#locals.push(`let ${local};`);
      this.#optional.push(`if (${local} !== undefined) o.${name} = ${local};`);
    } else {
      this.#locals.push(`let ${local} = ${kind.zero};`);
      this.#literal.push(`${name}: ${local}`);
    }
    // A second one would be merged into the first.
    const once = kind.child === undefined ? "" : `if (${local} !== undefined) throw odd; `;
    this.#cases.push(`case ${kind.tag(field.number)}: ${once}${local} = ${kind.read}; break;`);
  }

  #list(field: DescField & { fieldKind: "list" }, written: boolean): void {
    const name = field.localName;
    const local = `f${field.number}`;
    const kind = this.#kind(field);
    const tag = kind.tag(field.number);
    const packed = field.number * 8 + lengthDelimited;
    const each = field.packed
      ? `w.tag(${packed}); const b = w.begin(); for (let i = 0; i < v.length; i++) w.${kind.method}(v[i]); w.end(b);`
      : `for (let i = 0; i < v.length; i++) { const e = v[i]; w.tag(${tag}); ${kind.write("e")} }`;
    const text = `v = m.${name}; if (v != null) { if (!Array.isArray(v)) throw odd; if (v.length > 0) { ${each} } }`;
    if (written) this.#writes.push([field.number, text]);
    this.#locals.push(`const ${local} = [];`);
    this.#literal.push(`${name}: ${local}`);
    this.#cases.push(
      field.packed
        ? `case ${packed}: { const e = r.enter(); while (r.at < e) ${local}.push(${kind.read}); r.leave(e); break; }`
        : `case ${tag}: ${local}.push(${kind.read}); break;`,
    );
  }

  #map(field: DescField & { fieldKind: "map" }): void {
    const name = field.localName;
    const local = `f${field.number}`;
    if (field.mapKey !== ScalarType.STRING) throw new Unsupported();
    const kind = this.#kind(field);
    const tag = field.number * 8 + lengthDelimited;
    const entry = `w.tag(${tag}); const b = w.begin(); w.tag(10); w.string(k); w.tag(${kind.tag(2)}); { const e = v[k]; ${kind.write("e")} } w.end(b);`;
    this.#writes.push([
      field.number,
      `v = m.${name}; if (v != null) { if (typeof v !== "object") throw odd; for (const k of Object.keys(v)) { ${entry} } }`,
    ]);
    this.#locals.push(`const ${local} = {};`);
    this.#literal.push(`${name}: ${local}`);
    // Key and value, once each and in this order; a key of this name would become the prototype.
    this.#cases.push(
      `case ${tag}: { const e = r.enter(); if (r.uint32() !== 10) throw odd; const k = r.string(); if (k === "__proto__") throw odd; ` +
        `if (r.uint32() !== ${kind.tag(2)}) throw odd; ${local}[k] = ${kind.read}; r.leave(e); break; }`,
    );
  }

  #oneof(oneof: DescOneof): void {
    const name = oneof.localName;
    const local = `o${oneof.fields[0]?.number}`;
    const cases = oneof.fields.map((field) => {
      const kind = this.#kind(field);
      const tag = kind.tag(field.number);
      const once = `if (${local} !== undefined) throw odd; `;
      this.#cases.push(`case ${tag}: ${once}${local} = { case: ${quoted(field.localName)}, value: ${kind.read} }; break;`);
      const check = kind.child === undefined ? "" : "if (e == null) throw odd; ";
      return `case ${quoted(field.localName)}: { const e = v.value; ${check}w.tag(${tag}); ${kind.write("e")} break; }`;
    });
    const number = Math.min(...oneof.fields.map((field) => field.number));
    const numbers = oneof.fields.map((field) => field.number);
    // Others between the fields of a oneof would have to be written between them.
    const between = oneof.parent.fields.some(
      (field) => field.oneof !== oneof && field.number > number && field.number < Math.max(...numbers),
    );
    if (between) throw new Unsupported();
    this.#writes.push([
      number,
      `v = m.${name}; if (v != null && v.case != null) switch (v.case) { ${cases.join("\n")} default: throw odd; }`,
    ]);
    this.#locals.push(`let ${local};`);
    this.#literal.push(`${name}: ${local} === undefined ? { case: undefined } : ${local}`);
  }

  get text(): string {
    const writes = this.#writes.toSorted(([a], [b]) => a - b).map(([, text]) => text);
    const literal = [`$typeName: ${quoted(this.#typeName)}`, ...this.#literal].join(", ");
    return `"use strict";
return {
write: (w, m) => { let v; if (m.$unknown !== undefined) throw odd;
${writes.join("\n")}
},
read: (r, end) => {
${this.#locals.join(" ")}
while (r.at < end) switch (r.uint32()) {
${this.#cases.join("\n")}
default: throw odd;
}
r.leave(end);
const o = { ${literal} };
${this.#optional.join(" ")}
return o;
} };
//# sourceURL=stamp-codec/${this.#typeName}`;
  }
}

const compiledTypes = new WeakMap<DescMessage, Compiled | "unsupported">();
const none = (): Uint8Array => new Uint8Array(0);

function compile(schema: DescMessage): Compiled {
  const known = compiledTypes.get(schema);
  if (known === "unsupported") throw new Unsupported();
  if (known !== undefined) return known;
  const compiled: Compiled = { write: unfinished, read: unfinished };
  // Before its children, which may hold it themselves.
  compiledTypes.set(schema, compiled);
  try {
    Object.assign(compiled, functionsOf(schema, undefined));
  } catch (error) {
    compiledTypes.set(schema, "unsupported");
    throw error;
  }
  return compiled;
}

const unfinished = (): never => {
  throw outOfTheOrdinary;
};

function functionsOf(schema: DescMessage, without: DescField | undefined): Compiled {
  const { children, text } = new TypeText(schema, without);
  const names = children.map((_, i) => `c${i}`);
  return new Function("odd", "none", ...names, text)(outOfTheOrdinary, none, ...children.map(compile)) as Compiled;
}

const writer = new WireWriter();

/** Returns undefined for a type with a kind of field that is not compiled. `without` is left out when it encodes. */
export function compiledCodec(schema: DescMessage, without?: DescField): CompiledCodec | undefined {
  let compiled: Compiled;
  try {
    const whole = compile(schema);
    compiled = without === undefined ? whole : { ...functionsOf(schema, without), read: whole.read };
  } catch (error) {
    // Also a process that was started with --disallow-code-generation-from-strings.
    if (error instanceof Unsupported || error instanceof EvalError) return undefined;
    throw error;
  }
  const { read, write } = compiled;
  return {
    encode: (init) => leftOut(() => writer.take(() => write(writer, init))),
    decode: (bytes) =>
      leftOut(() => {
        const reader = new WireReader(bytes);
        return read(reader, reader.start()) as Message;
      }),
  };
}

/** Returns undefined if it met something odd, or what is no message at all: protobuf-es says what is wrong with it. */
function leftOut<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch (error) {
    if (error === outOfTheOrdinary || error instanceof TypeError || error instanceof RangeError) return undefined;
    throw error;
  }
}
