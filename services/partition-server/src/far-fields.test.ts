/**
 * Each call of each role with all its 64-bit numbers at once at their maximum, and at one that is none (above 2^53 - 1), in a whole stamp on
 * virtual time: no process ends, and the stamp serves. The calls are made from the descriptors, so a new one is among them.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { create, type DescMessage, type DescService, type Message, ScalarType } from "@bufbuild/protobuf";
import type { Outcome } from "@stamp/base";
import {
  Accounts,
  ExtentFragments,
  ExtentNode,
  LockService,
  MetadataStore,
  PartitionManager,
  PartitionServer,
  StreamManager,
} from "@stamp/wire";
import { Client, container, container1, stamp } from "./testing/stack-harness.ts";

const timeoutMs = 2_000;
const roles: readonly (readonly [process: string, service: DescService])[] = [
  ["lock", LockService],
  ["lock", MetadataStore],
  ["sm", StreamManager],
  ["en-1", ExtentNode],
  ["en-1", ExtentFragments],
  ["pm", PartitionManager],
  ["pm", Accounts],
  ["ps-1", PartitionServer],
];
const wide: ReadonlySet<ScalarType> = new Set([
  ScalarType.UINT64,
  ScalarType.INT64,
  ScalarType.FIXED64,
  ScalarType.SFIXED64,
  ScalarType.SINT64,
]);
const depthMax = 4;

/** Paths of all numbers of a message that are terms, epochs, versions or lineages. */
function pathsOf(desc: DescMessage, depth = 0): string[] {
  if (depth > depthMax) return [];
  return desc.fields.flatMap(({ localName, message, scalar, fieldKind }) => {
    if (fieldKind === "map") return [];
    if (message !== undefined) return pathsOf(message, depth + 1).map((path) => `${localName}.${path}`);
    return scalar !== undefined && wide.has(scalar) && /(?:term|epoch|version|lineage|paired)$/i.test(localName) ? [localName] : [];
  });
}

/** Sets one number of a message; false: what it would be in is not there. */
function setAt(message: Message, path: string, number: bigint): boolean {
  const [first = "", ...rest] = path.split(".");
  const held = message as unknown as Record<string, unknown>;
  if (rest.length === 0) {
    held[first] = number;
    return true;
  }
  const value = held[first];
  const inner = Array.isArray(value) ? value[0] : value;
  return typeof inner === "object" && inner !== null && setAt(inner as Message, rest.join("."), number);
}

/** A message with one element in each list, all messages in it, and this number in each 64-bit field; texts name things that are there. */
function filled(desc: DescMessage, number: bigint, depth = 0): Message {
  const values: Record<string, unknown> = {};
  for (const field of desc.fields) {
    const { fieldKind, localName } = field;
    if (field.oneof !== undefined || depth > depthMax) continue;
    const inner = field.message === undefined ? undefined : filled(field.message, number, depth + 1);
    const scalar = field.scalar === undefined ? undefined : wide.has(field.scalar) ? number : undefined;
    const text = field.scalar === ScalarType.STRING ? "stream-manager" : undefined;
    const value = inner ?? scalar ?? text;
    if (value === undefined || fieldKind === "map") continue;
    values[localName] = fieldKind === "list" ? [value] : value;
  }
  return create(desc, values);
}

test("far fields: no call with numbers at their maximum, or with numbers that are none, ends a process", async () => {
  const sim = stamp(41);
  await sim.run(async () => {
    const client = new Client(sim);
    await container1(client);
    const stranger = sim.world("stranger");
    const lost: string[] = [];
    let calls = 0;
    for (const [process, service] of roles) {
      for (const method of service.methods) {
        if (method.methodKind !== "unary") continue;
        for (const number of [BigInt(Number.MAX_SAFE_INTEGER), 2n ** 63n - 1n, 2n ** 64n - 1n]) {
          const methods = stranger.transport.client(process, service) as unknown as Readonly<
            Record<string, (request: Message, options: { timeoutMs: number }) => Promise<Outcome<unknown>>>
          >;
          calls++;
          const answer = await methods[method.localName]?.(filled(method.input, number), { timeoutMs });
          const reason = answer?.ok === false ? answer.failure.reason : "";
          if (["connectionLost", "bug", "internal"].includes(reason)) lost.push(`${service.typeName}/${method.name} ${number}: ${reason}`);
        }
      }
    }
    assert.ok(calls > 150, `${calls} calls`);
    assert.deepEqual(lost, []);
    assert.equal((await client.execute({ case: "getContainer", value: container })).case, "container");
  });
});

test("far fields: no call with one term, epoch, version or lineage at its maximum, and 1 in the others, ends a process or a range", async () => {
  const sim = stamp(42, { geoRolesEveryMs: 100 });
  await sim.run(async () => {
    const client = new Client(sim);
    await container1(client);
    const lost: string[] = [];
    let calls = 0;
    for (const [process, service] of roles) {
      const methods = sim.world("stranger").transport.client(process, service) as unknown as Readonly<
        Record<string, (request: Message, options: { timeoutMs: number }) => Promise<Outcome<unknown>>>
      >;
      for (const method of service.methods) {
        if (method.methodKind !== "unary") continue;
        for (const path of pathsOf(method.input)) {
          const request = filled(method.input, 1n);
          if (!setAt(request, path, BigInt(Number.MAX_SAFE_INTEGER))) continue;
          calls++;
          const answer = await methods[method.localName]?.(request, { timeoutMs });
          const reason = answer?.ok === false ? answer.failure.reason : "";
          if (["connectionLost", "bug", "internal"].includes(reason)) lost.push(`${service.typeName}/${method.name} ${path}: ${reason}`);
        }
      }
    }
    assert.ok(calls > 60, `${calls} calls`);
    assert.deepEqual(lost, []);
    const value = { ...container, container: "later" };
    await client.execute({ case: "createContainer", value });
    assert.equal((await client.execute({ case: "getContainer", value })).case, "container");
  });
});
