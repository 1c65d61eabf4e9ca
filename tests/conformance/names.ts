/** Names in URLs as the service reads them (docs/api/outcomes.md, "Names"), wherever a URL names a blob. Over raw connections: HTTP libraries resolve paths. */
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { describe, test } from "node:test";
import { fromBase64, signRequest } from "@stamp/azure-rest";
import { type RawRequest, rawExchange } from "./raw-connection.ts";
import { serviceSas } from "./sas-by-hand.ts";
import type { Clients } from "./target.ts";

const blockBlob = { "x-ms-blob-type": "BlockBlob" } as const;
const statusOf = (answer: string): number => Number(/^HTTP\/1\.1 (\d{3}) /.exec(answer)?.[1] ?? 0);
const bodyOf = (answer: string): string => answer.slice(answer.indexOf("\r\n\r\n") + 4);
const told = (answer: string): string => `${statusOf(answer)} ${/\r\nx-ms-error-code: (\w+)\r\n/i.exec(answer)?.[1] ?? ""}`.trim();

/** Paths below a container, and the name that each has. */
const spellings = [
  ["back%5Cslash", "back/slash"],
  ["raw\\slash", "raw/slash"],
  ["./dot", "dot"],
  ["%2E/dot2", "dot2"],
  [".%2Fdot3", "dot3"],
  ["%2e%2fdot4", "dot4"],
  ["x/../up", "up"],
  ["x%5C..%5Cup2", "up2"],
  ["trailing.", "trailing"],
  ["many...", "many"],
  ["dots./in./segments", "dots/in/segments"],
  ["folder/.", "folder/"],
] as const;

export function nameSuite(clients: () => Clients): void {
  const ask = (method: string, path: string, more: Partial<RawRequest> = {}): Promise<string> =>
    rawExchange(clients(), { method, path, ...more });
  const put = async (path: string, body: string): Promise<string> => told(await ask("PUT", path, { headers: blockBlob, body }));
  /** Not signed by the account's key. */
  const plain = async (path: string): Promise<string> => {
    const { endpoint, accountName } = clients().target;
    const { Socket } = await import("node:net");
    const { hostname, port, host } = new URL(endpoint);
    return new Promise((resolve, reject) => {
      let answer = "";
      const socket = new Socket();
      socket.on("data", (data) => (answer += data.toString("latin1")));
      socket.on("close", () => resolve(answer)).on("error", reject);
      socket.connect(Number(port), hostname, () =>
        socket.write(`GET /${accountName}${path} HTTP/1.1\r\nhost: ${host}\r\nx-ms-version: 2025-01-05\r\nconnection: close\r\n\r\n`),
      );
    });
  };
  const listed = async (container: string): Promise<string[]> => {
    const names: string[] = [];
    for await (const { name } of clients().service.getContainerClient(container).listBlobsFlat()) names.push(name);
    return names.sort();
  };

  describe("names in URLs", () => {
    test("a path names one blob, however it is written: backslashes, dot segments, dots at the end of segments", async () => {
      const { containerName } = await clients().container();
      for (const [path, name] of spellings) assert.equal(await put(`/${containerName}/${path}`, name), "201", path);
      assert.deepEqual(await listed(containerName), spellings.map(([, name]) => name).sort());
      for (const [path, name] of spellings) {
        assert.equal(bodyOf(await ask("GET", `/${containerName}/${path}`)), name, path);
        assert.equal(bodyOf(await ask("GET", `/${containerName}/${encodeURIComponent(name)}`)), name, path);
      }
    });

    test("a path may lead into another container, not into another account", async () => {
      const [one, two] = [await clients().container(), await clients().container()];
      await two.getBlockBlobClient("b").upload("two", 3);
      for (const path of [
        `/${one.containerName}/../${two.containerName}/b`,
        `/${one.containerName}/x/..%5C..%5C${two.containerName}/b`,
        `/../../${two.containerName}/b`,
        `/${two.containerName}%2Fb`,
      ]) {
        assert.equal(bodyOf(await ask("GET", path)), "two", path);
      }
      const sas = serviceSas(signer(), one.containerName, "r", { sr: "c" });
      assert.equal(told(await plain(`/${one.containerName}/../${two.containerName}/b?${sas}`)), "403 AuthenticationFailed");
    });

    test("names with characters that no name may have are 400 InvalidUri, and so are paths that are no UTF-8", async () => {
      const { containerName } = await clients().container();
      for (const path of ["%00", "a%01b", "tab%09", "%0A", "%1F", "%7F", "%C2%81", "%EE%80%80", "%EF%80%83", "%EF%BF%BD"]) {
        assert.equal(await put(`/${containerName}/${path}`, "x"), "400 InvalidUri", path);
        assert.equal(told(await ask("GET", `/${containerName}/${path}`)), "400 InvalidUri", path);
      }
      for (const path of ["%FF", "%C3", "%zz", "%2", "%ED%A0%80"])
        assert.equal(await put(`/${containerName}/${path}`, ""), "400 InvalidUri", path);
      assert.deepEqual(await listed(containerName), []);
    });

    const signer = () => ({ service: "blob", account: clients().target.accountName, key: clients().target.accountKey }) as const;

    test("a SAS signs the name that the path means", async () => {
      const { containerName } = await clients().container();
      for (const [path, name] of spellings) {
        assert.equal(await put(`/${containerName}/${path}`, name), "201", path);
        const sas = serviceSas(signer(), `${containerName}/${name}`, "r", { sr: "b" });
        assert.equal(bodyOf(await plain(`/${containerName}/${path}?${sas}`)), name, path);
        const literal = serviceSas(signer(), `${containerName}/${decodeURIComponent(path)}`, "r", { sr: "b" });
        assert.equal(told(await plain(`/${containerName}/${path}?${literal}`)), "403 AuthenticationFailed", path);
      }
    });

    test("the source of a copy is named as every blob", async () => {
      const { containerName } = await clients().container();
      const { endpoint, accountName } = clients().target;
      for (const [path, name] of spellings) {
        assert.equal(await put(`/${containerName}/${name}`, name), "201", name);
        const sas = serviceSas(signer(), `${containerName}/${name}`, "r", { sr: "b" });
        const source = `${endpoint}/${accountName}/${containerName}/${path}`;
        for (const [more, url] of [
          [{}, source],
          [{ "x-ms-requires-sync": "true" }, `${source}?${sas}`],
        ] as const) {
          const headers = { "x-ms-copy-source": url, ...more };
          const copied = await ask("PUT", `/${containerName}/to%5C${encodeURIComponent(name)}`, { headers });
          assert.equal(statusOf(copied), 202, copied);
          assert.equal(bodyOf(await ask("GET", `/${containerName}/to/${encodeURIComponent(name)}`)), name, path);
        }
      }
      const headers = { "x-ms-copy-source": `${endpoint}/${accountName}/${containerName}/a%01` };
      assert.match(told(await ask("PUT", `/${containerName}/never`, { headers })), /^400 /);
    });

    test("requests of a batch name blobs as others do; a batch of a container stays in it", async () => {
      const [one, two] = [await clients().container(), await clients().container()];
      for (const container of [one, two]) for (const name of ["a/b", "c"]) await container.getBlockBlobClient(name).upload("x", 1);
      const { accountName, accountKey } = clients().target;
      const part = (path: string, id: number): string => {
        const target = `/${accountName}${path}`;
        const headers = signRequest(
          { method: "DELETE", target, headers: { "content-length": "0" } },
          accountName,
          fromBase64(accountKey) as Uint8Array,
          Date.now(),
          (key, message) => createHmac("sha256", key).update(message).digest(),
        );
        const head = Object.entries(headers)
          .map(([name, value]) => `${name}: ${value}\r\n`)
          .join("");
        return `--batch\r\ncontent-type: application/http\r\ncontent-id: ${id}\r\n\r\nDELETE ${target} HTTP/1.1\r\n${head}\r\n`;
      };
      const paths = [
        `/${one.containerName}/a%5Cb`,
        `/${one.containerName}/x/../c.`,
        `/${one.containerName}/../${two.containerName}/c`,
        `/${two.containerName}/../${one.containerName}/c`,
      ];
      const body = `${paths.map(part).join("")}--batch--\r\n`;
      const headers = { "content-type": "multipart/mixed; boundary=batch" };
      const answer = await ask("POST", `/${one.containerName}?restype=container&comp=batch`, { headers, body });
      assert.equal(statusOf(answer), 202, answer);
      const statuses = [...bodyOf(answer).matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => status);
      assert.deepEqual(statuses, ["202", "202", "400", "400"], answer);
      assert.deepEqual([await listed(one.containerName), await listed(two.containerName)], [[], ["a/b", "c"]]);
    });

    test("a prefix of a list is text, not a path", async () => {
      const { containerName } = await clients().container();
      assert.equal(await put(`/${containerName}/a%5Cb`, "x"), "201");
      const found = async (prefix: string): Promise<boolean> =>
        bodyOf(await ask("GET", `/${containerName}?restype=container&comp=list&prefix=${prefix}`)).includes("<Name>a/b</Name>");
      assert.deepEqual([await found("a/"), await found("a%5C"), await found("./a")], [true, false, false]);
    });
  });
}
