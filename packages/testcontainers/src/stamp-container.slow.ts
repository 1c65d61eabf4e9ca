/** The module with a real engine: skipped where none answers. The image is built here. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { StampContainer } from "./index.ts";

// Where images can't be pulled the reaper's is not there; each test removes its container.
process.env.TESTCONTAINERS_RYUK_DISABLED ??= "true";

const root = join(import.meta.dirname, "../../..");
const machineCa = "/etc/ssl/certs/ca-certificates.crt";
const image = `stamp-testcontainers-${process.pid}`;
const docker = async (...args: string[]): Promise<string> => (await promisify(execFile)("docker", args)).stdout.trim();
const skip = (await docker("info").catch(() => undefined)) === undefined ? "no Docker engine answers: install one and start it" : false;

before(async () => {
  if (skip) return;
  await docker("build", "-q", "-t", image, ...(existsSync(machineCa) ? ["--secret", `id=ca,src=${machineCa}`] : []), root);
});
after(async () => {
  if (!skip) await docker("image", "rm", image);
});

test("testcontainers, a stamp: each service answers at its endpoint, commands run, restarts keep data", {
  skip,
  timeout: 400_000,
}, async () => {
  await using stamp = await new StampContainer(image).withEnvironment({ STAMP_FAULT_RULES: "true" }).start();
  for (const url of Object.values(stamp.endpoints)) assert.match((await fetch(url)).headers.get("x-ms-request-id") ?? "", /-/, url);
  assert.match(stamp.connectionString, /^DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;.*TableEndpoint=http:/);
  assert.equal((await stamp.exec(["stamp", "faults", "list"])).exitCode, 0);
});

test("testcontainers, an account of one's own: it is served, and the public one is not", { skip, timeout: 400_000 }, async () => {
  await using stamp = await new StampContainer(image).withAccount("shop", Buffer.alloc(64, 7).toString("base64")).start();
  const { output } = await stamp.exec(["stamp", "account", "list"]);
  assert.match(output, /^shop\b/m);
  assert.doesNotMatch(output, /devstoreaccount1/);
});
