/** Lists of containers and blobs: order, prefix, delimiter, pages, what they show. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { ContainerClient } from "@azure/storage-blob";
import { type Clients, failure } from "./target.ts";

async function put(container: ContainerClient, names: readonly string[]): Promise<void> {
  for (let at = 0; at < names.length; at += 32) {
    await Promise.all(names.slice(at, at + 32).map((name) => container.getBlockBlobClient(name).upload("x", 1)));
  }
}

export function listSuite(clients: () => Clients): void {
  describe("lists", () => {
    test("blobs come in the order of their names, over pages, each once", async () => {
      const container = await clients().container();
      const names = Array.from({ length: 57 }, (_, i) => `n${String((i * 31) % 57).padStart(3, "0")}`);
      await put(container, names);
      const seen: string[] = [];
      let pages = 0;
      for await (const page of container.listBlobsFlat().byPage({ maxPageSize: 10 })) {
        pages++;
        assert.ok(page.segment.blobItems.length <= 10);
        seen.push(...page.segment.blobItems.map((blob) => blob.name));
      }
      assert.deepEqual(seen, [...names].sort());
      assert.equal(pages, 6);
    });

    test("a page that is exactly full and the last has no marker", async () => {
      const container = await clients().container();
      await put(container, ["a", "b", "c"]);
      const page = (await container.listBlobsFlat().byPage({ maxPageSize: 3 }).next()).value;
      assert.equal(page.segment.blobItems.length, 3);
      assert.equal(page.continuationToken || undefined, undefined);
    });

    test("a prefix selects, a delimiter folds", async () => {
      const container = await clients().container();
      await put(container, ["a", "dir/1", "dir/2", "dir/sub/3", "dirt", "e/4", "z"]);
      const flat: string[] = [];
      for await (const blob of container.listBlobsFlat({ prefix: "dir" })) flat.push(blob.name);
      assert.deepEqual(flat, ["dir/1", "dir/2", "dir/sub/3", "dirt"]);
      // The SDK gives the prefixes of a page before its blobs.
      const top: string[] = [];
      for await (const item of container.listBlobsByHierarchy("/")) top.push(`${item.kind}:${item.name}`);
      assert.deepEqual(top, ["prefix:dir/", "prefix:e/", "blob:a", "blob:dirt", "blob:z"]);
      const below: string[] = [];
      for await (const item of container.listBlobsByHierarchy("/", { prefix: "dir/" })) below.push(`${item.kind}:${item.name}`);
      assert.deepEqual(below, ["prefix:dir/sub/", "blob:dir/1", "blob:dir/2"]);
    });

    test("prefixes count as items of a page and are listed once over pages", async () => {
      const container = await clients().container();
      await put(
        container,
        Array.from({ length: 30 }, (_, i) => `p${Math.floor(i / 5)}/${i}`),
      );
      const seen: string[] = [];
      for await (const page of container.listBlobsByHierarchy("/").byPage({ maxPageSize: 2 })) {
        const prefixes = page.segment.blobPrefixes ?? [];
        assert.ok(prefixes.length + page.segment.blobItems.length <= 2);
        seen.push(...prefixes.map((prefix) => prefix.name));
      }
      assert.deepEqual(seen, ["p0/", "p1/", "p2/", "p3/", "p4/", "p5/"]);
    });

    test("items show properties, and metadata when asked for", async () => {
      const container = await clients().container();
      const client = container.getBlockBlobClient("shown");
      const made = await client.upload("abc", 3, { metadata: { k: "v<&>" }, blobHTTPHeaders: { blobContentType: "text/x" } });
      for await (const blob of container.listBlobsFlat({ includeMetadata: true })) {
        assert.equal(blob.properties.contentLength, 3);
        assert.equal(blob.properties.contentType, "text/x");
        assert.equal(blob.properties.blobType, "BlockBlob");
        assert.equal(blob.properties.etag, made.etag?.replaceAll('"', ""));
        assert.equal(blob.properties.contentMD5?.length, 16);
        assert.deepEqual(blob.metadata, { k: "v<&>" });
      }
      for await (const blob of container.listBlobsFlat()) assert.equal(blob.metadata, undefined);
    });

    test("a name that XML can't carry is listed as it is", async () => {
      const container = await clients().container();
      await put(container, ["bell\ufffe", "next"]);
      const names: string[] = [];
      for await (const blob of container.listBlobsFlat()) names.push(blob.name);
      assert.deepEqual(names, ["bell\ufffe", "next"]);
    });

    test("names that XML can't carry: a prefix and a delimiter of them select, and come back as they were", async () => {
      const container = await clients().container();
      await put(container, ["a\ufffe/1", "a\ufffe/2", "b\uffff\ufffec", "b\uffffd", "plain"]);
      const of = async (delimiter: string, prefix = ""): Promise<string[]> => {
        const found: string[] = [];
        for await (const item of container.listBlobsByHierarchy(delimiter, { prefix })) found.push(item.name);
        return found;
      };
      assert.deepEqual(await of("/"), ["a\ufffe/", "b\uffffd", "b\uffff\ufffec", "plain"]);
      assert.deepEqual(await of("/", "a\ufffe/"), ["a\ufffe/1", "a\ufffe/2"]);
      assert.deepEqual(await of("\ufffe", "b\uffff"), ["b\uffff\ufffe", "b\uffffd"]);
      const list = `/${container.containerName}?restype=container&comp=list`;
      const told = await (await clients().raw("GET", `${list}&prefix=b%EF%BF%BF&delimiter=%02`)).text();
      assert.match(told, /<Prefix Encoded="true">b%EF%BF%BF<\/Prefix><Delimiter Encoded="true">%02<\/Delimiter>/);
      assert.match(told, /<Name Encoded="true">b%EF%BF%BFd<\/Name>/);
    });

    test("what XML can't carry is refused where it can't be told: older versions, lists of containers", async () => {
      const container = await clients().container();
      await put(container, ["a", "b\ufffe"]);
      const asked = async (path: string, version?: string): Promise<string> => {
        const answer = await clients().raw("GET", path, { headers: version === undefined ? {} : { "x-ms-version": version } });
        return `${answer.status} ${answer.headers.get("x-ms-error-code") ?? ""}`.trim();
      };
      const list = `/${container.containerName}?restype=container&comp=list`;
      const before = "2020-12-06";
      assert.equal(await asked(`${list}&prefix=a`, before), "200");
      assert.equal(await asked(list, before), "409 FeatureVersionMismatch");
      assert.equal(await asked(`${list}&prefix=b&delimiter=%01`, before), "400 InvalidQueryParameterValue");
      assert.equal(await asked(`${list}&prefix=%EF%BF%BE`, before), "400 InvalidQueryParameterValue");
      assert.equal(await asked(`${list}&prefix=%EF%BF%BE`), "200");
      for (const [character, expected] of [
        ["%00", "400 InvalidQueryParameterValue"],
        ["%1F", "400 InvalidQueryParameterValue"],
        ["%EF%BF%BE", "400 InvalidQueryParameterValue"],
        // Half of a pair is no UTF-8.
        ["%ED%A0%80", "400 InvalidQueryParameterValue"],
        ["%09", "200"],
        ["%F0%9F%98%80", "200"],
      ] as const) {
        assert.equal(await asked(`/?comp=list&prefix=${character}`), expected, character);
        assert.equal(await asked(`${list}&marker=${character}`), "400 InvalidQueryParameterValue", character);
      }
    });

    test("a document that refers to what XML can't carry is refused, as every other that is not well-formed", async () => {
      const container = await clients().container();
      const put = async (id: string): Promise<number> => {
        const body = `<SignedIdentifiers><SignedIdentifier><Id>${id}</Id></SignedIdentifier></SignedIdentifiers>`;
        return (await clients().raw("PUT", `/${container.containerName}?restype=container&comp=acl`, { body })).status;
      };
      assert.deepEqual([await put("a&#x9;b"), await put("a&#1;b"), await put("a&#xFFFE;b"), await put("a\u0001b")], [200, 400, 400, 400]);
    });

    test("containers are listed by prefix, with metadata, over pages", async () => {
      const mark = `m${Math.floor(Math.random() * 1e9)}`;
      const names = ["a", "b", "c", "d", "e"].map((end) => `${mark}-${end}`);
      for (const name of names)
        await clients()
          .service.getContainerClient(name)
          .create({ metadata: { name: name.slice(-1) } });
      const seen: string[] = [];
      for await (const page of clients().service.listContainers({ prefix: mark, includeMetadata: true }).byPage({ maxPageSize: 2 })) {
        assert.ok(page.containerItems.length <= 2);
        for (const item of page.containerItems) {
          assert.equal(item.metadata?.name, item.name.slice(-1));
          seen.push(item.name);
        }
      }
      assert.deepEqual(seen, names);
    });

    test("bad parameters of lists are 400", async () => {
      const container = await clients().container();
      const status = async (query: string) =>
        (await clients().raw("GET", `/${container.containerName}?restype=container&comp=list&${query}`)).status;
      assert.equal(await status("maxresults=0"), 400);
      assert.equal(await status("maxresults=x"), 400);
      assert.equal(await status("marker=nonsense"), 400);
      assert.equal(await status("include=nothing"), 400);
      assert.equal(await status("maxresults=100000"), 200);
      const missing = clients().service.getContainerClient("not-there-at-all");
      assert.equal((await failure(missing.listBlobsFlat().next())).code, "ContainerNotFound");
    });
  });
}
