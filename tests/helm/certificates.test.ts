/** The job of the chart that makes certificates, against secrets as the Kubernetes API keeps them. */
import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { root, runStamp } from "../tools/commands.ts";

interface Secret {
  readonly metadata: { readonly name: string; readonly resourceVersion?: string };
  readonly data: Readonly<Record<string, string>>;
}

test("certificates of the chart: made once, kept by later jobs, added for new pods, and made anew before they end", {
  timeout: 120_000,
}, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "stamp-chart-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const account = join(folder, "account");
  mkdirSync(account);
  writeFileSync(join(account, "namespace"), "storage");
  writeFileSync(join(account, "token"), "token");
  const secrets = new Map<string, Secret>();
  const calls: string[] = [];
  let version = 0;
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += String(chunk);
    const path = "/api/v1/namespaces/storage/secrets";
    const name = request.url?.slice(path.length + 1) ?? "";
    assert.equal(request.headers.authorization, "Bearer token");
    if (request.method !== "GET") {
      const secret = JSON.parse(body) as Secret;
      const held = secrets.get(secret.metadata.name);
      const fits = request.method === "POST" ? held === undefined : held?.metadata.resourceVersion === secret.metadata.resourceVersion;
      if (!fits) return void response.writeHead(409).end();
      calls.push(`${request.method} ${secret.metadata.name}`);
      secrets.set(secret.metadata.name, { ...secret, metadata: { ...secret.metadata, resourceVersion: String(++version) } });
      return void response.end("{}");
    }
    const found = secrets.get(name);
    if (found === undefined) response.writeHead(404).end();
    else response.end(JSON.stringify(found));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => server.close());
  const names = ["lock-service-0", "extent-node-0", "extent-node-1", "front-end-0"];
  const job = async (processes: readonly string[]) => {
    const env = {
      STAMP_KUBERNETES_API: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      STAMP_SERVICE_ACCOUNT_DIR: account,
      STAMP_WORK_DIR: folder,
      STAMP_MAIN: join(root, "packages/cli/src/main.ts"),
      STAMP_RELEASE: "shop",
      STAMP_CERTS_PREFIX: "shop-certs",
      STAMP_PROCESSES: processes.map((name) => `${name}=${name}.pods:11100:11200`).join(" "),
    };
    const program: [string, string] = [process.execPath, join(root, "deploy/helm/stamp/files/certificates.mjs")];
    const { code, output } = await runStamp([], { env: { ...process.env, ...env }, timeoutMs: 60_000, program });
    assert.equal(code, 0, output);
  };
  const certificate = (secret: string, name: string) =>
    new X509Certificate(Buffer.from(secrets.get(secret)?.data[`${name}.pem`] ?? "", "base64"));

  await job(names);
  assert.equal(calls[0], "POST shop-certs-authority", "nothing is made under an authority that may be lost");
  assert.deepEqual(Object.keys(secrets.get("shop-certs-authority")?.data ?? {}).sort(), ["ca-key.pem", "ca.pem"]);
  const nodes = secrets.get("shop-certs-extent-node");
  const files = ["ca.pem", "extent-node-0-key.pem", "extent-node-0.pem", "extent-node-1-key.pem", "extent-node-1.pem"];
  assert.deepEqual(Object.keys(nodes?.data ?? {}).sort(), files);
  assert.deepEqual(Object.keys(secrets.get("shop-certs-front-end")?.data ?? {}).sort(), [
    "ca.pem",
    "front-end-0-key.pem",
    "front-end-0.pem",
    "operator-key.pem",
    "operator.pem",
  ]);
  const authority = new X509Certificate(Buffer.from(secrets.get("shop-certs-authority")?.data["ca.pem"] ?? "", "base64"));
  assert.ok(certificate("shop-certs-extent-node", "extent-node-1").verify(authority.publicKey));

  await job([...names, "extent-node-2"]);
  const grown = secrets.get("shop-certs-extent-node");
  for (const file of files) assert.equal(grown?.data[file], nodes?.data[file], file);
  assert.ok(certificate("shop-certs-extent-node", "extent-node-2").verify(authority.publicKey));

  // As it is ten months later.
  const data = writeAuthority(folder, secrets.get("shop-certs-authority") as Secret);
  const short = await runStamp(
    ["certs", "cluster", "folders", "--dir", join(folder, "short"), "--stamp", "shop", "--days", "30", "--data", data],
    { env: { ...process.env, STAMP_PROCESSES: "extent-node-0=extent-node-0.pods:11100:11200" } },
  );
  assert.equal(short.code, 0, short.output);
  const ending = readFileSync(join(folder, "short/extent-node-0/extent-node-0.pem"));
  const held = secrets.get("shop-certs-extent-node") as Secret;
  secrets.set(held.metadata.name, { ...held, data: { ...held.data, "extent-node-0.pem": ending.toString("base64") } });
  await job([...names, "extent-node-2"]);
  const renewed = certificate("shop-certs-extent-node", "extent-node-0");
  assert.ok(new Date(renewed.validTo).getTime() > Date.now() + 300 * 86_400_000, renewed.validTo);
  assert.equal(secrets.get("shop-certs-extent-node")?.data["extent-node-1.pem"], nodes?.data["extent-node-1.pem"]);
});

function writeAuthority(folder: string, { data }: Secret): string {
  const certificates = join(folder, "authority/cluster-certs");
  mkdirSync(certificates, { recursive: true });
  for (const [file, text] of Object.entries(data)) writeFileSync(join(certificates, file), Buffer.from(text, "base64"));
  return join(folder, "authority");
}
