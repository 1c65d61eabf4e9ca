import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { advisories, lockedPackages, lockFile, severe } from "./advisories.ts";
import { root } from "./commands.ts";

test("advisories: every package of the lock file is asked about, by name and version", () => {
  const packages = lockedPackages(lockFile());
  const { devDependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { devDependencies: Record<string, string> };
  for (const [name, version] of Object.entries(devDependencies)) assert.ok(packages[name]?.includes(version), `${name}@${version}`);
  assert.ok(Object.keys(packages).length > 200, `${Object.keys(packages).length} packages`);
});

test("advisories: what the registry tells is told, and one that answers otherwise is unknown", async () => {
  const asked: unknown[] = [];
  const advisory = { title: "reads what it should not", severity: "high", url: "https://example.test/1" };
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += String(chunk);
    asked.push([request.method, request.url, JSON.parse(body)]);
    if (request.url?.startsWith("/mirror/")) response.writeHead(405).end();
    else response.end(JSON.stringify({ leaky: [advisory, { ...advisory, severity: "moderate" }] }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const registry = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  try {
    const told = await advisories(registry, { leaky: ["1.0.0"] }, 10_000);
    assert.ok(told.kind === "told");
    assert.deepEqual(severe(told.advisories), ["leaky: high: reads what it should not (https://example.test/1)"]);
    const mirror = await advisories(`${registry}/mirror`, { leaky: ["1.0.0"] }, 10_000);
    assert.deepEqual(mirror, { kind: "unknown", why: "the registry answers 405" });
    assert.deepEqual(asked[0], ["POST", "/-/npm/v1/security/advisories/bulk", { leaky: ["1.0.0"] }]);
  } finally {
    server.close();
  }
});

test("advisories: no package that the lock file names has a known one of high severity", async (context) => {
  const registry = process.env.npm_config_registry ?? process.env.NPM_CONFIG_REGISTRY ?? "https://registry.npmjs.org/";
  const told = await advisories(registry, lockedPackages(lockFile()), 20_000);
  if (told.kind === "unknown") return context.skip(`known advisories: ${told.why}`);
  assert.deepEqual(severe(told.advisories), []);
});
