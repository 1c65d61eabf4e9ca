/** A whole stamp in one container of the image, as `docker run` starts it: its rights, its health, its end, and what its volume keeps. */
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { after, before, test } from "node:test";
import { BlobServiceClient } from "@azure/storage-blob";
import { release } from "@stamp/base";
import { reservePorts } from "@stamp/cluster";
import { root, run } from "../tools/commands.ts";

const machineCa = "/etc/ssl/certs/ca-certificates.crt";
const image = `stamp-one-${process.pid}`;
const safe = ["--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL", "--security-opt", "no-new-privileges:true"];
const bytesMax = 200_000_000;
let ports: Awaited<ReturnType<typeof reservePorts>>;

const docker = async (...args: string[]): Promise<string> => {
  const { code, output } = await run("docker", args);
  assert.equal(code, 0, `docker ${args.join(" ")}: ${output.slice(-2_000)}`);
  return output.trim();
};
const inspect = (what: string): Promise<string> => docker("inspect", "--format", `{{${what}}}`, image);

async function healthy(): Promise<void> {
  for (let tries = 0; (await inspect(".State.Health.Status")) !== "healthy"; tries++) {
    assert.ok(tries < 300, await docker("logs", "--tail", "40", image));
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
}

function container() {
  const key = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
  const endpoint = `http://127.0.0.1:${ports.portBase}/devstoreaccount1`;
  const text = `DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey=${key};BlobEndpoint=${endpoint};`;
  return BlobServiceClient.fromConnectionString(text).getContainerClient("kept");
}

before(async () => {
  ports = await reservePorts();
  const ca = existsSync(machineCa) ? ["--secret", `id=ca,src=${machineCa}`] : [];
  await docker("build", "-q", "-t", image, ...ca, root);
});
after(async () => {
  await run("docker", ["rm", "-f", image]);
  await run("docker", ["volume", "rm", image]);
  await run("docker", ["image", "rm", image]);
  await ports.release();
});

test("image: is below 200 MB, runs as a user without rights, and says what it is", async () => {
  const size = Number(await docker("image", "inspect", "--format", "{{.Size}}", image));
  console.log(`the image has ${(size / 1e6).toFixed(0)} MB`);
  assert.ok(size > 50_000_000 && size < bytesMax, `${size} bytes`);
  const { Labels, User } = JSON.parse(await docker("image", "inspect", "--format", "{{json .Config}}", image)) as {
    readonly Labels: Record<string, string>;
    readonly User: string;
  };
  assert.deepEqual([User, Labels["org.opencontainers.image.version"]], ["node", release]);
  assert.equal(await docker("run", "--rm", image, "stamp", "--version"), release);
});

test("image, docker run: a stamp on a root that can't be written, which keeps its data and stops cleanly", {
  timeout: 400_000,
}, async () => {
  const { portBase } = ports;
  const publish = ["-p", `127.0.0.1:${portBase}-${portBase + 4}:10000-10004`];
  await docker("run", "-d", "--name", image, ...safe, ...publish, "-v", `${image}:/data`, image);
  await healthy();
  await container().create();
  await container().getBlockBlobClient("one").upload("stored", 6);
  const status = JSON.parse(await docker("exec", image, "stamp", "status", "--json")) as { readonly processes: readonly unknown[] };
  assert.equal(status.processes.length, 6);
  await docker("stop", "--time", "60", image);
  assert.equal(await inspect(".State.ExitCode"), "0");
  const logs = await docker("logs", image);
  assert.match(logs, /^\{"level":"info".*"name":"front-end-1"/m);
  assert.match(logs, /^stopped$/m);
  await docker("start", image);
  await healthy();
  assert.equal((await container().getBlobClient("one").downloadToBuffer()).toString(), "stored");
});

test("image, docker run, a wrong setting: exit code 2 and its name", async () => {
  const { code, output } = await run("docker", ["run", "--rm", "-e", "STAMP_COPIES=many", image]);
  assert.equal(code, 2);
  assert.match(output, /STAMP_COPIES: "many" is not allowed/);
});
