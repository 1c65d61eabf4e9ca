/**
 * A stamp with `tls: "cluster"`: it serves; somebody without a certificate, with one of another authority, or with a certificate and no secret
 * gets no answer from any method of any internal port, and none of the calls hangs; certificates are rotated under clients.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { connect } from "node:http2";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { BlobServiceClient } from "@azure/storage-blob";
import { reservePorts } from "@stamp/cluster";
import * as wire from "@stamp/wire";

interface Service {
  readonly kind: "service";
  readonly typeName: string;
  readonly methods: readonly { readonly name: string }[];
}
const services = (Object.values(wire) as unknown[]).filter((each): each is Service => (each as Service | null)?.kind === "service");
const paths = services.flatMap(({ typeName, methods }) => methods.map(({ name }) => `/${typeName}/${name}`));
/** Services that let everybody call, once the connection is proven. */
const open = ["/stamp.v1.Availability/", "/stamp.v1.Signals/"];
const main = join(import.meta.dirname, "../../packages/cli/src/main.ts");
const dataDir = mkdtempSync(join(tmpdir(), "stamp-cluster-tls-"));
const shape = ["--extent-nodes", "3", "--stream-managers", "1", "--partition-managers", "1", "--partition-servers", "1"];

interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

function stamp(...args: readonly string[]): Promise<Ran> {
  return new Promise((resolve) => {
    const child = execFile(process.execPath, [main, ...args, "--data", dataDir], (_error, out, err) =>
      resolve({ code: child.exitCode ?? -1, out, err }),
    );
  });
}

interface Told {
  readonly connectionString: string;
  readonly processes: readonly { readonly name: string; readonly grpc: string; readonly http: string; readonly ready: boolean }[];
}
const status = async (): Promise<Told> => JSON.parse((await stamp("status", "--json")).out) as Told;

before(
  async () => {
    const early = await stamp("up", "-d", "--tls", "cluster", ...shape);
    assert.equal(early.code, 2, early.err);
    assert.match(early.err, /there is no folder .*stamp certs cluster init/s);
    const made = await stamp("certs", "cluster", "init", "--stamp", "drill", ...shape);
    assert.match(made.out, /stamp:\/\/drill\/extent-node\/extent-node-3/, made.err);
    const portBase = String((await reservePorts()).portBase);
    const up = await stamp("up", "-d", "--ready-timeout-s", "120", "--tls", "cluster", "--port-base", portBase, ...shape);
    assert.equal(up.code, 0, up.err + up.out);
  },
  { timeout: 300_000 },
);
after(async () => {
  await stamp("down");
  rmSync(dataDir, { recursive: true, force: true });
});

const pem = (folder: string, name: string) => ({
  cert: readFileSync(join(folder, `${name}.pem`)),
  key: readFileSync(join(folder, `${name}-key.pem`)),
});

/** What becomes of each path for a caller with these TLS options; undefined: without TLS. `closed`: the connection ends without an answer. */
async function answers(grpc: string, tls: object | undefined): Promise<ReadonlyMap<string, string>> {
  const session =
    tls === undefined
      ? connect(`http://${grpc}`)
      : connect(`https://${grpc}`, { ...tls, servername: "stamp.internal", rejectUnauthorized: false });
  session.on("error", () => {});
  const ask = (path: string): Promise<string> =>
    new Promise((resolve) => {
      if (session.destroyed) {
        resolve("closed");
        return;
      }
      const stream = session.request({ ":method": "POST", ":path": path, "content-type": "application/grpc", te: "trailers" });
      const told = (headers: Record<string, unknown>): void => {
        if (headers["grpc-status"] !== undefined) resolve(String(headers["grpc-status"]));
      };
      stream
        .on("response", told)
        .on("trailers", told)
        .on("data", () => {});
      stream.on("error", () => resolve("closed")).on("close", () => resolve("closed"));
      stream.setTimeout(15_000, () => resolve("hangs"));
    });
  const found = await Promise.all(
    paths.filter((path) => !open.some((each) => path.startsWith(each))).map(async (path) => [path, await ask(path)] as const),
  );
  session.destroy();
  return new Map(found);
}

test("internal ports with TLS: nobody without a certificate of the stamp and its secret gets an answer from any method, and none hangs", {
  timeout: 180_000,
}, async () => {
  const certs = join(dataDir, "cluster-certs");
  const foreign = mkdtempSync(join(tmpdir(), "stamp-foreign-"));
  try {
    await new Promise((resolve) => execFile(process.execPath, [main, "certs", "cluster", "init", "--data", foreign], resolve));
    const other = join(foreign, "cluster-certs");
    const { processes } = await status();
    assert.ok(processes.length >= 8 && processes.every(({ ready }) => ready));
    const kinds: Readonly<Record<string, [object | undefined, RegExp]>> = {
      "without TLS": [undefined, /^closed$/],
      "without a certificate": [{}, /^closed$/],
      "with a certificate of another stamp": [pem(other, "operator"), /^closed$/],
      "with a certificate and no secret": [pem(certs, "operator"), /^(16|12)$/],
    };
    for (const { name, grpc } of processes)
      for (const [what, [tls, expected]] of Object.entries(kinds)) {
        const found = await answers(grpc, tls);
        assert.deepEqual(
          [...found].filter(([, answer]) => !expected.test(answer)),
          [],
          `${name}, ${what}`,
        );
      }
  } finally {
    rmSync(foreign, { recursive: true, force: true });
  }
});

test("certificates are rotated while clients write and read: no request fails, no process is restarted, and the tools go on", {
  timeout: 180_000,
}, async () => {
  const { connectionString, processes } = await status();
  const pids = (told: Told) => told.processes.map((each) => (each as unknown as { pid: number }).pid).join();
  const before = { pids: pids({ connectionString, processes }), pem: readFileSync(join(dataDir, "cluster-certs/front-end-1.pem"), "utf8") };
  const container = BlobServiceClient.fromConnectionString(connectionString, { retryOptions: { maxTries: 1 } }).getContainerClient(
    "rotation",
  );
  await container.create();
  // A busy machine writes slowly: clients go on until there is enough to judge by.
  let rotating = true;
  let requests = 0;
  const failed: string[] = [];
  const client = async (name: string): Promise<void> => {
    for (let i = 0; rotating || (requests <= 4 && failed.length === 0); i++) {
      // More than a row holds: the bytes travel to extent nodes and back.
      const [blob, content] = [container.getBlockBlobClient(`${name}-${i % 5}`), Buffer.alloc(100_000, i)];
      try {
        await blob.upload(content, content.length);
        assert.deepEqual(await blob.downloadToBuffer(), content);
        requests += 2;
      } catch (error) {
        failed.push(String(error));
      }
    }
  };
  const clients = ["a", "b"].map(client);
  const rotated = await stamp("certs", "cluster", "rotate", "--days", "20", "--json").finally(() => {
    rotating = false;
  });
  await Promise.all(clients);
  assert.equal(rotated.code, 0, rotated.err);
  assert.deepEqual(failed, []);
  assert.ok(requests > 4, `${requests} requests`);
  console.log(`${requests} requests during the rotation, none failed`);
  const now = await status();
  assert.equal(pids(now), before.pids, "no process was restarted");
  assert.notEqual(readFileSync(join(dataDir, "cluster-certs/front-end-1.pem"), "utf8"), before.pem);
  const health = await stamp("health", "--json");
  assert.match(health.out, /"cluster-certificate-ends"/, "they end in 20 days");
  const account = await stamp("account", "list");
  assert.equal(account.code, 0, account.err);
});
