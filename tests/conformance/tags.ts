/** Tags: set, read, found, and as conditions. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { describe, test } from "node:test";
import { type Clients, failure } from "./target.ts";

export function tagSuite(clients: () => Clients): void {
  describe("tags", () => {
    test("tags are set with a blob or on it, counted, read and replaced as a whole", async () => {
      const container = await clients().container();
      const client = container.getBlockBlobClient("b");
      await client.upload("1", 1, { tags: { project: "a b", "k-1": "x/y:z=1" } });
      assert.deepEqual((await client.getTags()).tags, { project: "a b", "k-1": "x/y:z=1" });
      const { tagCount, etag } = await client.getProperties();
      assert.equal(tagCount, 2);
      await client.setTags({ only: "this" });
      assert.deepEqual((await client.getTags()).tags, { only: "this" });
      assert.equal((await client.getProperties()).etag, etag, "tags don't change the ETag");
      await client.upload("2", 1);
      assert.deepEqual((await client.getTags()).tags, {}, "a put without tags leaves none");
      const tooMany = Object.fromEntries(Array.from({ length: 11 }, (_, i) => [`k${i}`, "v"]));
      assert.equal((await failure(client.setTags(tooMany))).statusCode, 400);
      assert.equal((await failure(client.setTags({ "bad!": "v" }))).statusCode, 400);
    });

    test("blanks around the keys and values of tags belong to them", async () => {
      const container = await clients().container();
      const client = container.getBlockBlobClient("b");
      await client.upload("1", 1);
      const tags = { " key 1": " v ", "key 1": "other" };
      const xml = Object.entries(tags).map(([key, value]) => `<Tag><Key>${key}</Key><Value>${value}</Value></Tag>`);
      const path = `/${container.containerName}/b?comp=tags`;
      const set = await clients().raw("PUT", path, { body: `<Tags><TagSet>${xml.join("")}</TagSet></Tags>` });
      assert.equal(set.status, 204);
      const text = await (await clients().raw("GET", path)).text();
      assert.ok(text.includes("<Key> key 1</Key><Value> v </Value>"), text);
      await client.setMetadata({ a: "1" }, { conditions: { tagConditions: `" key 1" = ' v '` } });
      assert.equal((await failure(client.setMetadata({}, { conditions: { tagConditions: `" key 1" = 'v'` } }))).statusCode, 412);
    });

    test("listings show tags when asked for, and their number always", async () => {
      const container = await clients().container();
      await container.getBlockBlobClient("b").upload("1", 1, { tags: { a: "1" } });
      for await (const blob of container.listBlobsFlat({ includeTags: true })) assert.deepEqual(blob.tags, { a: "1" });
      for await (const blob of container.listBlobsFlat()) {
        assert.equal(blob.tags, undefined);
        assert.equal(blob.properties.tagCount, 1);
      }
    });

    test("blobs are found by their tags, in a container and in the account, over pages", async () => {
      const [one, two] = [await clients().container(), await clients().container()];
      const mark = `m${randomUUID().slice(0, 8)}`;
      for (const [container, name, date] of [
        [one, "a", "2026-01"],
        [one, "b", "2026-02"],
        [one, "c", "2026-03"],
        [two, "d", "2026-02"],
      ] as const) {
        await container.getBlockBlobClient(name).upload("x", 1, { tags: { mark, date, other: "1" } });
      }
      await one.getBlockBlobClient("untagged").upload("x", 1);
      const inOne: string[] = [];
      for await (const blob of one.findBlobsByTags(`mark = '${mark}' AND date >= '2026-02' AND date > '2026-01'`)) {
        inOne.push(blob.name);
        assert.deepEqual(Object.keys(blob.tags ?? {}).sort(), ["date", "mark"], "the tags that were asked for");
      }
      assert.deepEqual(inOne, ["b", "c"]);
      const everywhere: string[] = [];
      for await (const page of clients().service.findBlobsByTags(`"mark"='${mark}'`).byPage({ maxPageSize: 2 })) {
        assert.ok(page.blobs.length <= 2);
        everywhere.push(...page.blobs.map((blob) => `${blob.containerName}/${blob.name}`));
      }
      assert.equal(everywhere.length, 4);
      assert.deepEqual(
        new Set(everywhere),
        new Set([...["a", "b", "c"].map((name) => `${one.containerName}/${name}`), `${two.containerName}/d`]),
      );
      const limited: string[] = [];
      for await (const blob of clients().service.findBlobsByTags(`@container='${two.containerName}' AND mark='${mark}'`)) {
        limited.push(blob.name);
      }
      assert.deepEqual(limited, ["d"]);
      await one.getBlockBlobClient("b").delete();
      await one.getBlockBlobClient("c").setTags({});
      for await (const blob of one.findBlobsByTags(`mark = '${mark}' AND date >= '2026-02'`)) assert.fail(`found ${blob.name}`);
    });

    test("a condition over tags decides reads and writes", async () => {
      const client = (await clients().container()).getBlockBlobClient("b");
      await client.upload("1", 1, { tags: { status: "new", n: "05" } });
      const when = (tagConditions: string) => ({ conditions: { tagConditions } });
      assert.equal((await client.downloadToBuffer(0, undefined, when("status = 'new'"))).toString(), "1");
      for (const work of [
        () => client.download(0, undefined, when("status = 'old'")),
        () => client.setMetadata({}, when("n > '05'")),
        () => client.setTags({}, when("status <> 'new'")),
        () => client.upload("2", 1, when("status = 'old' OR n < '05'")),
        () => client.delete(when("missing = 'x'")),
      ]) {
        const error = await failure(work());
        assert.deepEqual([error.statusCode, error.code], [412, "ConditionNotMet"]);
      }
      await client.setMetadata({ a: "1" }, when("status = 'old' OR n >= '05'"));
      assert.equal((await failure(client.getProperties(when("status =")))).statusCode, 400);
    });

    test("conditions on reading and setting tags are those of the blob", async () => {
      const client = (await clients().container()).getBlockBlobClient("b");
      const { etag = "" } = await client.upload("1", 1, { tags: { n: "1" } });
      assert.deepEqual((await client.getTags({ conditions: { ifMatch: etag } })).tags, { n: "1" });
      await client.setTags({ n: "2" }, { conditions: { ifMatch: etag } });
      for (const work of [
        () => client.setTags({ n: "3" }, { conditions: { ifNoneMatch: etag } }),
        () => client.setTags({ n: "3" }, { conditions: { ifUnmodifiedSince: new Date(0) } }),
        () => client.getTags({ conditions: { ifMatch: '"0x8D0000000000000"' } }),
      ]) {
        const error = await failure(work());
        assert.deepEqual([error.statusCode, error.code], [412, "ConditionNotMet"]);
      }
      assert.deepEqual((await client.getTags()).tags, { n: "2" });
    });

    test("expressions that can't be read are 400 with the service's message, in an account and in a container", async () => {
      const { containerName } = await clients().container();
      const at = "Error parsing query at or near character position";
      const cases: readonly (readonly [string, string])[] = [
        ["", ""],
        ["a", `${at} 2: unexpected end`],
        ["a = b", `${at} 5: unexpected &apos;b&apos;`],
        ["a = 'b' OR c = 'd'", `${at} 9: unexpected &apos;OR&apos;`],
        ["a <> 'b'", `${at} 3: unexpected &apos;&lt;&gt;&apos;`],
        ["a = 'b' AND", `${at} 12: unexpected end`],
        ["@container = 'b' AND @container = 'c'", "Error parsing query: "],
        ["(a = 'b')", `${at} 1: unexpected &apos;(&apos;`],
        ["Month = '4'", `${at} 1: unexpected &apos;Month&apos;`],
        [`"k,1" = 'x'`, `${at} 1: unexpected &apos;k,1&apos;`],
        [`"" = 'x'`, `${at} 1: unexpected &apos;&apos;`],
        [`"${"k".repeat(129)}" = 'x'`, `${at} 1: `],
        ["a = 'x*'", `${at} 5: unexpected &apos;x*&apos;`],
        [`a = '${"v".repeat(257)}'`, `${at} 5: `],
        [Array.from({ length: 11 }, (_, i) => `k${i} = 'v'`).join(" AND "), "Error parsing query: "],
      ];
      for (const path of ["/?comp=blobs", `/${containerName}?restype=container&comp=blobs`]) {
        for (const [where, message] of cases) {
          const answer = await clients().raw("GET", `${path}&where=${encodeURIComponent(where)}`);
          const code = where === "" ? "MissingRequiredQueryParameter" : "InvalidQueryParameterValue";
          assert.deepEqual([answer.status, answer.headers.get("x-ms-error-code")], [400, code], where);
          const text = (await answer.text()).replaceAll("'", "&apos;");
          assert.ok(text.includes(`<Message>${message}`), `${where}: ${text}`);
        }
      }
    });

    test("ten comparisons fit beside @container, and a container's own search has none", async () => {
      const { containerName } = await clients().container();
      const ten = Array.from({ length: 10 }, (_, i) => `"k${i}" = 'v'`).join(" AND ");
      const inContainer = `@container = '${containerName}'`;
      const search = (path: string, where: string) => clients().raw("GET", `${path}comp=blobs&where=${encodeURIComponent(where)}`);
      assert.equal((await search("/?", `${ten} AND ${inContainer}`)).status, 200);
      const both = await search(`/${containerName}?restype=container&`, `${inContainer} AND a = 'b'`);
      assert.deepEqual([both.status, both.headers.get("x-ms-error-code")], [400, "InvalidQueryParameterValue"]);
      assert.match(await both.text(), /<Message>Error parsing query: Cannot have container in both uri and query/);
    });
  });
}
