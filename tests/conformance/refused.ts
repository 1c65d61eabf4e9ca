/** What the service has and we do not: every such row of the recognition table is 501 with the feature's name, and changes nothing. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type BlobRequest, blobRequests, type OtherRequest, otherRequests, otherRequestTitle, parseTarget } from "@stamp/azure-rest";
import { rawExchange } from "./raw-connection.ts";
import type { Clients } from "./target.ts";

/** A request of another service as its clients send it, for a blob that exists. */
function sent({ level, query, header }: OtherRequest, container: string) {
  const path = { account: "/", root: `/${container}`, path: `/${container}/b` }[level];
  const text = query.map(([name, value]) => `${name}=${value === "*" ? "true" : value}`).join("&");
  const value = header === "x-ms-copy-source" ? "http://127.0.0.1/a/share/file" : "acquire";
  return { path: text === "" ? path : `${path}?${text}`, headers: header === undefined ? {} : { [header]: value } };
}

const isNotHere = ({ served }: BlobRequest): boolean => !served;
const isRead = (method: string): boolean => method === "GET" || method === "HEAD";
const bodyOf = (method: string) => (isRead(method) || method === "DELETE" ? {} : { body: "" });

/** Code and status of the refusal of a request of another service. */
const refusalOf = ({ refusedWith }: OtherRequest): [number, string] =>
  refusedWith === 400 ? [400, "HierarchicalNamespaceNotEnabled"] : [501, "NotImplemented"];

/** Whether the request can be told from one of the Blob service's when both come to the Blob service's host. */
function isTold(method: string, path: string, headers: Record<string, string>): boolean {
  const target = parseTarget(`/account${path}`, "", { hostSuffixes: [] });
  return target.ok && otherRequestTitle(method, target.value, headers) !== undefined;
}

export function refusedSuite(clients: () => Clients): void {
  describe("refused", () => {
    test("every request whose meaning we don't have is 501 with its name", async () => {
      const container = await clients().container();
      await container.getBlockBlobClient("b").upload("kept", 4);
      const paths = { service: "", container: `/${container.containerName}`, blob: `/${container.containerName}/b` };
      for (const { title, resource, request } of blobRequests().filter(isNotHere)) {
        const [method = "", ...query] = request.split(" ");
        const body = method === "PUT" || method === "POST" ? { body: "" } : {};
        const answer = await clients().raw(method, `${paths[resource]}?${query.join("&")}`, body);
        assert.deepEqual([answer.status, answer.headers.get("x-ms-error-code")], [501, "NotImplemented"], title);
        if (method !== "HEAD") assert.ok((await answer.text()).includes(title.replaceAll("&", "&amp;")), title);
      }
      assert.equal((await container.getBlockBlobClient("b").downloadToBuffer()).toString(), "kept");
    });

    test("every request of Data Lake Storage and Azure Files that reaches the Blob port is refused, and changes nothing", async () => {
      const container = await clients().container();
      const blob = container.getBlockBlobClient("b");
      const { etag } = await blob.upload("kept", 4);
      let told = 0;
      for (const row of otherRequests()) {
        const { path, headers } = sent(row, container.containerName);
        if (!isTold(row.method, path, headers)) continue;
        told++;
        const answer = await clients().raw(row.method, path, { headers, ...bodyOf(row.method) });
        const about = `${row.method} ${path}`;
        assert.deepEqual([answer.status, answer.headers.get("x-ms-error-code")], refusalOf(row), about);
        if (row.method !== "HEAD" && answer.status === 501) assert.ok((await answer.text()).includes(`${row.title} (`), about);
      }
      assert.ok(told >= 50, `${told} requests`);
      assert.deepEqual([(await blob.getProperties()).etag, (await blob.downloadToBuffer()).toString()], [etag, "kept"]);
    });

    test("every request to a dfs or file host is refused, and changes nothing", async () => {
      const container = await clients().container();
      const blob = container.getBlockBlobClient("b");
      const { etag } = await blob.upload("kept", 4);
      for (const row of otherRequests()) {
        const { path, headers } = sent(row, container.containerName);
        const host = `${clients().target.accountName}.${row.service}.localhost`;
        const answer = await rawExchange(clients(), { method: row.method, path, headers, host });
        const about = `${host} ${row.method} ${path}`;
        const [status, code] = refusalOf(row);
        assert.ok(answer.startsWith(`HTTP/1.1 ${status} `) && answer.includes(`x-ms-error-code: ${code}`), `${about}: ${answer}`);
        if (row.method !== "HEAD" && status === 501) assert.ok(answer.includes(`${row.title} (`), `${about}: ${answer}`);
      }
      assert.deepEqual([(await blob.getProperties()).etag, (await blob.downloadToBuffer()).toString()], [etag, "kept"]);
    });

    test("who asks for an access control list learns that the account is flat, of a container, of a path, and by host", async () => {
      const container = await clients().container();
      const flat = /^HTTP\/1\.1 400 This operation is only supported on a hierarchical namespace account\.\r\n/;
      for (const path of [`/${container.containerName}/`, `/${container.containerName}//`, `/${container.containerName}/no/such`]) {
        const asked = `${path}?action=getAccessControl&upn=false`;
        const answer = await clients().raw("HEAD", asked);
        assert.deepEqual([answer.status, answer.headers.get("x-ms-error-code")], [400, "HierarchicalNamespaceNotEnabled"], path);
        const host = `${clients().target.accountName}.dfs.localhost`;
        assert.match(await rawExchange(clients(), { method: "HEAD", path: asked, headers: {}, host }), flat, path);
      }
    });

    test("in a batch, and for an account that is not there, they are refused too", async () => {
      const container = await clients().container();
      const blob = container.getBlockBlobClient("b");
      await blob.upload("kept", 4);
      const { accountName, endpoint } = clients().target;
      const part = `DELETE /${accountName}/${container.containerName}/b?recursive=true HTTP/1.1\r\nContent-Length: 0\r\n\r\n`;
      const body = `--x\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n${part}\r\n--x--\r\n`;
      const batch = await clients().raw("POST", "/?comp=batch", { headers: { "content-type": "multipart/mixed; boundary=x" }, body });
      const text = await batch.text();
      assert.match(text, /HTTP\/1\.1 501 /);
      assert.match(text, /Delete Directory \(Data Lake Storage\)/);
      assert.equal((await blob.downloadToBuffer()).toString(), "kept");
      // SDKs of Azure Files leave the account out of the path of a rename.
      const answer = await fetch(`${endpoint}/share/file?comp=rename&restype=directory`, { method: "PUT" });
      assert.equal(answer.status, 501);
      assert.match(await answer.text(), /Azure Files/);
    });

    test("clients of Data Lake Storage get the refusal in the form that they read", async () => {
      const answer = await clients().raw("PUT", "/fs?resource=filesystem", { headers: { accept: "application/json" }, body: "" });
      const { error } = (await answer.json()) as { readonly error: { readonly code: string; readonly message: string } };
      assert.equal(error.code, "NotImplemented");
      assert.match(error.message, /Create Filesystem \(Data Lake Storage\)/);
    });
  });
}
