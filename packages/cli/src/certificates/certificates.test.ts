/** Certificates of the private authority, as Node's own TLS judges them. */
import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { connect } from "node:tls";
import { serveHttp } from "@stamp/ports-node";
import { certificateHosts, makeAuthority, makeServerCertificate } from "./certificates.ts";

test("certificates: the names of this machine and of every host, with accounts before the services", () => {
  const hosts = certificateHosts(["storage.example", "10.0.0.7"]);
  for (const name of [
    "localhost",
    "127.0.0.1",
    "::1",
    "10.0.0.7",
    "storage.example",
    "*.blob.localhost",
    "*.queue.storage.example",
    "table.storage.example",
  ]) {
    assert.ok(hosts.includes(name), name);
  }
  assert.equal(new Set(hosts).size, hosts.length);
});

test("certificates: a door that serves one is trusted under its names and no others; a renewed one is taken while it serves", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "stamp-certs-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const authority = await makeAuthority("test", Date.now());
  const files = { certificatePath: join(folder, "server.pem"), keyPath: join(folder, "server-key.pem") };
  const renew = async (days?: number): Promise<string> => {
    const pair = await makeServerCertificate(authority, certificateHosts([]), Date.now(), days);
    writeFileSync(files.keyPath, pair.key);
    writeFileSync(files.certificatePath, pair.certificate);
    return new X509Certificate(pair.certificate).serialNumber;
  };
  const endOf = (): number => Date.parse(new X509Certificate(readFileSync(files.certificatePath)).validTo);
  const first = await renew();
  const firstEndsMs = endOf();
  const listener = await serveHttp(async ({ secure }) => ({ status: secure ? 200 : 500, headers: {} }), {
    listen: "[::1]:0",
    tls: files,
    tlsCheckEveryMs: 10,
  });
  t.after(() => listener.close(0));
  const port = Number(listener.address.slice(listener.address.lastIndexOf(":") + 1));
  const get = (servername: string, ca?: string): Promise<number> =>
    new Promise((resolve, reject) => {
      const options = { host: "::1", port, servername, ...(ca === undefined ? {} : { ca }), agent: false };
      request(options, (answer) => resolve(answer.resume().statusCode ?? 0))
        .on("error", reject)
        .end();
    });
  assert.equal(await get("localhost", authority.certificate), 200);
  assert.equal(await get("acct.blob.localhost", authority.certificate), 200);
  await assert.rejects(get("other.example", authority.certificate), /altname|Host/i);
  await assert.rejects(get("localhost"), /self.signed|unable/i);
  const served = (): Promise<string> =>
    new Promise((resolve, reject) => {
      const socket = connect({ host: "::1", port, servername: "localhost", ca: authority.certificate }, () => {
        resolve(socket.getPeerCertificate().serialNumber);
        socket.destroy();
      });
      socket.on("error", reject);
    });
  assert.equal(await served(), first);
  assert.deepEqual(listener.certificate, { endsAtMs: firstEndsMs, successorUnusable: false });
  const second = await renew(30);
  while ((await served()) !== second) await new Promise((resolve) => setTimeout(resolve, 5));
  const secondEndsMs = endOf();
  assert.notEqual(secondEndsMs, firstEndsMs);
  assert.deepEqual(listener.certificate, { endsAtMs: secondEndsMs, successorUnusable: false });
  writeFileSync(files.certificatePath, "no certificate");
  while (listener.certificate?.successorUnusable === false) await new Promise((resolve) => setTimeout(resolve, 5));
  assert.equal(await served(), second);
  assert.deepEqual(listener.certificate, { endsAtMs: secondEndsMs, successorUnusable: true });
});
