import assert from "node:assert/strict";
import { test } from "node:test";
import { endpointLinesOf, endpointsOfAccount, type ServiceUrls } from "./endpoints.ts";

const at = (port: number): ServiceUrls => ({
  blob: `http://127.0.0.1:${port}/devstoreaccount1`,
  queue: `http://127.0.0.1:${port + 1}/devstoreaccount1`,
  table: `http://127.0.0.1:${port + 2}/devstoreaccount1`,
});
const linesOf = (geoRole: string, other: ServiceUrls | undefined, key?: string): string[] =>
  endpointLinesOf(
    "acme",
    key,
    endpointsOfAccount({ name: "acme", geoRole }, at(100), (stamp) => (stamp === "south-1" ? other : undefined)),
  );
const primary = '{"role":"primary","epoch":3,"peer":"south-1"}';
const secondary = '{"role":"secondary","epoch":3,"peer":"south-1"}';

test("account endpoints: without a copy they are the stamp's, and no connection string names a secondary", () => {
  const lines = linesOf("", undefined, "a2V5");
  assert.equal(lines[0], "blob                http://127.0.0.1:100/acme");
  assert.equal(lines.length, 4);
  assert.doesNotMatch(lines.join("\n"), /econdary/);
  assert.match(lines[3] ?? "", /AccountKey=a2V5;BlobEndpoint=http:\/\/127\.0\.0\.1:100\/acme;QueueEndpoint=/);
});

test("account endpoints: with a copy at a stamp of the same folder both are told, from either stamp alike, and the string names both", () => {
  const first = linesOf(primary, at(400), "a2V5").join("\n");
  assert.match(first, /^blob, read only +http:\/\/127\.0\.0\.1:400\/acme-secondary$/m);
  const string = /BlobEndpoint=http:\/\/127\.0\.0\.1:100\/acme;BlobSecondaryEndpoint=http:\/\/127\.0\.0\.1:400\/acme-secondary;/;
  assert.match(first, string);
  const second = linesOf(secondary, at(400)).join("\n");
  assert.match(second, /^table +http:\/\/127\.0\.0\.1:402\/acme$/m);
  assert.match(second, /^table, read only +http:\/\/127\.0\.0\.1:102\/acme-secondary$/m);
  assert.doesNotMatch(second, /connection string/, "without the key");
});

test("account endpoints: queues of the copy are told, and named in the string, only if queues are copied", () => {
  for (const role of [primary, secondary]) {
    const without = linesOf(role, at(400), "a2V5").join("\n");
    assert.doesNotMatch(without, /queue, read only|QueueSecondaryEndpoint/);
    assert.match(without, /^queue +http.*\/acme$/m);
    const copied = linesOf(role.replace("}", ',"queues":true}'), at(400), "a2V5").join("\n");
    assert.match(copied, /^queue, read only +http:\/\/127\.0\.0\.1:[14]01\/acme-secondary$/m);
    assert.match(copied, /;QueueSecondaryEndpoint=http:[^;]*\/acme-secondary;/);
  }
});

test("account endpoints: of a stamp that is not known its name is told, and what its front-ends serve", () => {
  const first = linesOf(primary, undefined, "a2V5").join("\n");
  assert.match(first, /other endpoints +at stamp south-1: its front-ends serve acme-secondary, read only/);
  assert.doesNotMatch(first, /SecondaryEndpoint/);
  const second = linesOf(secondary, undefined, "a2V5").join("\n");
  assert.match(second, /other endpoints +at stamp south-1: its front-ends serve acme$/m);
  assert.match(second, /blob, read only +http:\/\/127\.0\.0\.1:100\/acme-secondary/);
  assert.doesNotMatch(second, /connection string/);
});
