/** Over HTTPS, with the real SDK: what it refuses to do without (bearer tokens), host-style addresses, and SAS that want it. */
import assert from "node:assert/strict";
import { type RequestOptions, request } from "node:https";
import { connect } from "node:net";
import { Duplex } from "node:stream";
import { after, before, describe, test } from "node:test";
import { connect as connectTls, type TLSSocket } from "node:tls";
import {
  BlobClient,
  BlobServiceClient,
  ContainerSASPermissions,
  generateBlobSASQueryParameters,
  SASProtocol,
  StorageSharedKeyCredential,
} from "@azure/storage-blob";
import { type HttpListener, serveHttp } from "@stamp/ports-node";
import { type TestCertificate, testCertificate } from "./certificate.ts";
import { type TestIssuer, testIssuer } from "./issuer.ts";
import { accountKey, accountName, type ScriptedStamp, startScriptedStamp } from "./scripted-stamp.ts";
import { failure } from "./target.ts";

describe("HTTPS", () => {
  let stamp: ScriptedStamp;
  let issuer: TestIssuer;
  let listener: HttpListener;
  let certificate: TestCertificate;
  let ca = "";
  let url = "";
  before(async () => {
    certificate = await testCertificate();
    issuer = await testIssuer();
    stamp = await startScriptedStamp({ frontEnd: issuer.settings });
    listener = await serveHttp(stamp.frontEnd.blob, { listen: "127.0.0.1:0", tls: certificate.tls });
    ca = certificate.ca;
    url = `https://${listener.address}/${accountName}`;
  });
  after(async () => {
    await listener?.close(100);
    await stamp?.stop();
    issuer?.remove();
    certificate?.remove();
  });

  const options = () => ({ retryOptions: { maxTries: 1 }, tlsOptions: { ca } });
  const byKey = (): BlobServiceClient => new BlobServiceClient(url, new StorageSharedKeyCredential(accountName, accountKey), options());
  const bearer = (oid: string, role: string): BlobServiceClient =>
    new BlobServiceClient(
      url,
      { getToken: async () => ({ token: await issuer.token({ oid, roles: [role] }), expiresOnTimestamp: Date.now() + 60_000 }) },
      options(),
    );

  test("the SDK with a token: reads and writes by its role, and makes a user delegation SAS that wants HTTPS", async () => {
    const owner = bearer("owner", "Storage Blob Data Owner");
    const container = owner.getContainerClient("by-token");
    await container.create();
    await container.getBlockBlobClient("b").upload("text", 4);
    await container.setAccessPolicy("blob");
    const reader = bearer("reader", "Storage Blob Data Reader");
    assert.equal((await reader.getContainerClient("by-token").getBlobClient("b").downloadToBuffer()).toString(), "text");
    const error = await failure(reader.getContainerClient("by-token").getBlockBlobClient("b").upload("x", 1));
    assert.deepEqual([error.statusCode, error.code], [403, "AuthorizationPermissionMismatch"]);
    const key = await reader.getUserDelegationKey(new Date(Date.now() - 60_000), new Date(Date.now() + 60_000));
    assert.equal(key.signedObjectId, "reader");
    const sas = generateBlobSASQueryParameters(
      {
        containerName: "by-token",
        permissions: ContainerSASPermissions.parse("r"),
        expiresOn: new Date(Date.now() + 30_000),
        protocol: SASProtocol.Https,
      },
      key,
      accountName,
    ).toString();
    assert.equal((await new BlobClient(`${url}/by-token/b?${sas}`, undefined, options()).downloadToBuffer()).toString(), "text");
    const plain = await failure(new BlobClient(`${stamp.endpoint}/${accountName}/by-token/b?${sas}`, undefined, options()).download());
    assert.deepEqual([plain.statusCode, plain.code], [403, "AuthorizationProtocolMismatch"]);
  });

  const portOf = ({ address }: HttpListener): string => address.slice(address.lastIndexOf(":") + 1);
  /** Status and body of a GET. */
  const read = (asked: RequestOptions): Promise<string> =>
    new Promise((resolve, reject) => {
      request({ ...asked, agent: false }, (answer) => {
        let text = `${answer.statusCode} `;
        answer.on("data", (chunk) => (text += chunk));
        answer.on("end", () => resolve(text));
      })
        .on("error", reject)
        .end();
    });

  test("IPv6: by address, with the account in the path, and by name, with the account in the host", async () => {
    const onIpv6 = await serveHttp(stamp.frontEnd.blob, { listen: "[::1]:0", tls: certificate.tls });
    try {
      assert.match(onIpv6.address, /^\[::1\]:\d+$/);
      const container = byKey().getContainerClient("by-address");
      await container.create({ access: "container" });
      await container.getBlockBlobClient("b").upload("text", 4);
      const port = portOf(onIpv6);
      const there = { host: "::1", port, ca };
      const path = `/${accountName}/by-address`;
      const byAddress = { ...there, servername: "", headers: { host: `[::1]:${port}` } };
      assert.equal(await read({ ...byAddress, path: `${path}/b` }), "200 text");
      const list = await read({ ...byAddress, path: `${path}?restype=container&comp=list` });
      assert.ok(list.includes(`ServiceEndpoint="https://[::1]:${port}/${accountName}`), list);
      const host = `${accountName}.blob.localhost`;
      assert.equal(await read({ ...there, servername: host, headers: { host: `${host}:${port}` }, path: "/by-address/b" }), "200 text");
    } finally {
      await onIpv6.close(100);
    }
  });

  test("lists name the endpoint by its scheme; the account may stand in the host's name on the same port", async () => {
    const container = byKey().getContainerClient("by-host");
    await container.create({ access: "blob" });
    await container.getBlockBlobClient("b").upload("text", 4);
    const port = portOf(listener);
    const host = `${accountName}.blob.localhost`;
    const asked = { host: "127.0.0.1", port, servername: host, headers: { host: `${host}:${port}` }, path: "/by-host/b", ca };
    assert.equal(await read(asked), "200 text");
    const page = (await byKey().listContainers().byPage().next()).value;
    assert.match(page?.serviceEndpoint ?? "", /^https:\/\//);
  });

  test("handshakes that don't go on are bounded as heads are; a connection whose handshake is over stays, and others are served", async (t) => {
    const limits = { headBytesMax: 256 * 1024 };
    const bounded = await serveHttp(stamp.frontEnd.blob, { listen: "127.0.0.1:0", tls: certificate.tls, limits });
    t.after(() => bounded.close(0));
    const port = Number(bounded.address.split(":")[1]);
    const idle = await new Promise<TLSSocket>((resolve) => {
      const socket = connectTls({ host: "127.0.0.1", port, ca }, () => resolve(socket));
    });
    t.after(() => idle.destroy());
    const hello = await clientHello();
    const stalled = Array.from({ length: 12 }, () => connect(port, "127.0.0.1").on("error", () => {}));
    t.after(() => {
      for (const each of stalled) each.destroy();
    });
    let ended = 0;
    for (const each of stalled)
      each
        .on("close", () => ended++)
        .resume()
        .write(hello);
    for (let tries = 0; ended < 9; tries++) {
      assert.ok(tries < 400, `${ended} of 12 were ended`);
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
    assert.equal(idle.destroyed, false);
    const answer = await new Promise<number>((resolve, reject) => {
      const asked = request({ host: "127.0.0.1", port, ca, path: "/" }, (incoming) => resolve(incoming.resume().statusCode ?? 0));
      asked.on("error", reject).end();
    });
    assert.equal(answer, 400);
  });
});

/** The first bytes of a TLS client. */
function clientHello(): Promise<Buffer> {
  return new Promise((resolve) => {
    const wire = new Duplex({
      read: () => {},
      write: (chunk: Buffer, _encoding, done) => {
        resolve(chunk);
        done();
      },
    });
    connectTls({ socket: wire }).on("error", () => {});
  });
}
