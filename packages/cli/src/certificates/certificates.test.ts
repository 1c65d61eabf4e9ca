/** Certificates of the private authority, as Node's own TLS judges them. */
import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
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

test("certificates: over TLS a request of several records is served while the client has not taken the answer before it", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "stamp-certs-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const authority = await makeAuthority("test", Date.now());
  const files = { certificatePath: join(folder, "server.pem"), keyPath: join(folder, "server-key.pem") };
  const pair = await makeServerCertificate(authority, certificateHosts([]), Date.now());
  writeFileSync(files.keyPath, pair.key);
  writeFileSync(files.certificatePath, pair.certificate);
  const begun = Promise.withResolvers<void>();
  const listener = await serveHttp(
    async ({ method, body }) => {
      if (method === "GET") {
        begun.resolve();
        return { status: 200, headers: { "Content-Length": String(8 << 20) }, body: Buffer.alloc(8 << 20, "x") };
      }
      const pieces: Uint8Array[] = [];
      for await (const piece of body) pieces.push(piece);
      return { status: 201, headers: {}, body: Buffer.concat(pieces) };
    },
    { listen: "127.0.0.1:0", tls: files },
  );
  t.after(() => listener.close(0));
  const socket = connect({
    host: "127.0.0.1",
    port: Number(listener.address.split(":")[1]),
    servername: "localhost",
    ca: authority.certificate,
  });
  await once(socket, "secureConnect");
  socket.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  await begun.promise;
  // The client takes nothing, so the answer stays in the server; then all records come in one read.
  await new Promise((resolve) => setTimeout(resolve, 100));
  const bytes = "the bytes".repeat(4_000);
  socket.write(`PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: ${bytes.length}\r\nConnection: close\r\n\r\n${bytes}`);
  await new Promise((resolve) => setTimeout(resolve, 100));
  let received = "";
  for await (const piece of socket) received += (piece as Buffer).toString("latin1");
  assert.deepEqual(received.match(/HTTP\/1\.1 \d+/g), ["HTTP/1.1 200", "HTTP/1.1 201"]);
  assert.ok(received.endsWith(`\r\n\r\n${bytes}`), received.slice(-200));
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
