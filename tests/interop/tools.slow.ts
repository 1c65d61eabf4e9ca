/**
 * Backup and data tools of other projects, unmodified, against one cluster of real processes that serves HTTPS: each stores, changes, checks,
 * deletes and restores, and compares what came back. The script of a tool is `tools/<tool>.sh`, and `tools/install.sh` gets the tools; a tool
 * that can't be had here is skipped with the reason. STAMP_INTEROP_TOOLS names the tools to run ("restic dvc"), or "none".
 */
import assert from "node:assert/strict";
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { BlobServiceClient, StorageSharedKeyCredential } from "@azure/storage-blob";
import { startOwn } from "@stamp/drills";
import { root, run } from "../tools/commands.ts";

const tools = ["adlfs", "barman", "delta", "duplicity", "dvc", "litestream", "obstore", "pgbackrest", "pyarrow", "restic"];
const wanted = (process.env.STAMP_INTEROP_TOOLS ?? tools.join(" ")).split(/[\s,]+/).filter((word) => word !== "none");
/** Exit code of a script whose tool is missing. */
const skipped = 77;
const account = { name: "interop", key: Buffer.from("a key of the interop tests only").toString("base64") };
/** The name that restic 0.14 reaches an account by. The proxy leads it to the cluster. */
const foreignSuffix = "blob.core.windows.net";

const folder = mkdtempSync(join(tmpdir(), "stamp-tools-"));
const authority = join(folder, "ca.pem");
const programs = join(folder, "programs");
let cluster: Awaited<ReturnType<typeof startOwn>> | undefined;
let service: BlobServiceClient | undefined;
let proxy: Server | undefined;
let proxyUrl = "";

before(async () => {
  assert.deepEqual(
    wanted.filter((word) => !tools.includes(word)),
    [],
    "STAMP_INTEROP_TOOLS",
  );
  if (wanted.length === 0) return;
  // PostgreSQL's user reads the tools and the authority.
  chmodSync(folder, 0o755);
  const certificates = join(folder, "certs");
  const host = `${account.name}.${foreignSuffix}`;
  const stamp = join(root, "packages/cli/src/main.ts");
  const made = await run(process.execPath, [stamp, ...`certs init --dir ${certificates} --host ${host}`.split(" ")]);
  assert.equal(made.code, 0, made.output);
  cpSync(join(certificates, "ca.pem"), authority);
  const installed = await run("bash", [join(import.meta.dirname, "tools/install.sh"), programs], { timeoutMs: 400_000 });
  if (installed.output.trim() !== "") console.log(installed.output.trim());
  cluster = await startOwn(
    {
      accounts: [{ name: account.name, keys: [account.key] }],
      ...{ tlsCert: join(certificates, "server.pem"), tlsKey: join(certificates, "server-key.pem") },
      roles: { "front-end": { hostSuffixes: `blob.localhost,${foreignSuffix}` } },
    },
    false,
  );
  const options = { retryOptions: { maxTries: 3 }, tlsOptions: { ca: readFileSync(authority, "utf8") } };
  const credential = new StorageSharedKeyCredential(account.name, account.key);
  service = new BlobServiceClient(endpoint(), credential, options);
  proxy = await proxyTo(Number(new URL(endpoint()).port));
  proxyUrl = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
});
after(async () => {
  proxy?.closeAllConnections();
  proxy?.close();
  await cluster?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** URL of the Blob service, with the account. */
const endpoint = (): string => /BlobEndpoint=([^;]+)/.exec(cluster?.connectionString ?? "")?.[1] ?? "";

/** A proxy whose every tunnel leads to `port` of this machine, whatever host it is asked for. */
async function proxyTo(port: number): Promise<Server> {
  const server = createServer((_request, response) => void response.writeHead(405).end());
  server.on("connect", (_request, client, head: Buffer) => {
    const upstream = connect(port, "127.0.0.1", () => {
      client.write("HTTP/1.1 200 Connection established\r\n\r\n");
      upstream.write(head);
      client.pipe(upstream).pipe(client);
    });
    upstream.on("error", () => client.destroy());
    client.on("error", () => upstream.destroy());
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  return server;
}

for (const tool of tools) {
  test(`${tool} gets back what it stored`, async (context) => {
    if (!wanted.includes(tool)) return context.skip("STAMP_INTEROP_TOOLS names others");
    const scratch = join(folder, `${tool}-scratch`);
    mkdirSync(scratch);
    await service?.createContainer(tool);
    const settings = {
      ...{ ACCOUNT: account.name, KEY: account.key, CONTAINER: tool, ENDPOINT: endpoint(), AUTHORITY: authority },
      ...{ PROXY: proxyUrl, SCRATCH: scratch, TOOLS: programs },
    };
    const words = Object.entries(settings).map(([name, value]) => `${name}=${value}`);
    const startMs = performance.now();
    const { code, output } = await run("env", [...words, "bash", join(import.meta.dirname, `tools/${tool}.sh`)], { timeoutMs: 150_000 });
    if (code === skipped) return context.skip(output.trim().split("\n").at(-1) ?? "");
    assert.equal(code, 0, output.slice(-8_000));
    console.log(`${output.trim().split("\n")[0]}: ${((performance.now() - startMs) / 1_000).toFixed(1)} s`);
    rmSync(scratch, { recursive: true, force: true });
  });
}
