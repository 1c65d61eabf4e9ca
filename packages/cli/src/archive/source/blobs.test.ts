/** Tests what a server gives in several answers, over the SDK: ranges of pages, and versions of one name. */
import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import { accountDoors } from "../doors.ts";
import { BlobChanged, type BlobGroup, LeftOut } from "../items.ts";
import { blobSteps } from "./blobs.ts";

const listing = { versions: true, included: () => ({ includeSnapshots: true, includeVersions: true }) };

interface Listed {
  readonly name: string;
  readonly version?: string;
  readonly current?: boolean;
  readonly type?: string;
  readonly length?: number;
}

const blobXml = ({ name, version = "", current = true, type = "BlockBlob", length = 1 }: Listed): string =>
  `<Blob><Name>${name}</Name>${version === "" ? "" : `<VersionId>${version}</VersionId>`}${current ? "<IsCurrentVersion>true</IsCurrentVersion>" : ""}<Properties><Last-Modified>Sun, 29 Nov 2026 10:00:00 GMT</Last-Modified><Etag>0x1</Etag><Content-Length>${length}</Content-Length><BlobType>${type}</BlobType></Properties></Blob>`;
const pageXml = (blobs: readonly Listed[], next: string): string =>
  `<EnumerationResults><Blobs>${blobs.map(blobXml).join("")}</Blobs><NextMarker>${next}</NextMarker></EnumerationResults>`;
const containersXml =
  "<EnumerationResults><Containers><Container><Name>box</Name><Properties><Last-Modified>Sun, 29 Nov 2026 10:00:00 GMT</Last-Modified><Etag>0x1</Etag></Properties></Container></Containers><NextMarker/></EnumerationResults>";

/** The groups of the only container of a server that answers what `answer` gives: XML, bytes or a status. */
async function groups(context: TestContext, answer: (query: URLSearchParams, request: IncomingMessage) => string | Buffer | number) {
  const listener: RequestListener = (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? "", "http://x");
    const comp = searchParams.get("comp");
    const isContainers = pathname === "/acme/" || pathname === "/acme";
    const found = isContainers ? containersXml : comp === "acl" ? "<SignedIdentifiers/>" : answer(searchParams, request);
    if (typeof found === "number") response.writeHead(found).end();
    else response.writeHead(200, { "content-type": "application/xml", "content-length": found.length, etag: '"0x1"' }).end(found);
  };
  const server = createServer(listener).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const at = `http://127.0.0.1:${(server.address() as AddressInfo).port}/acme`;
  const doors = accountDoors({ account: "acme", key: "QQ==", urls: { blob: at, queue: at, table: at } });
  const found: BlobGroup[] = [];
  for await (const { item } of blobSteps(doors, {}, listing)) if (item.kind === "blobs") found.push(item);
  return found;
}

test("export: ranges of pages that the server gives in several answers are all read, near ones as one", async (context) => {
  const rangesXml = (ranges: readonly number[], next: string): string =>
    `<PageList>${ranges.map((start) => `<PageRange><Start>${start}</Start><End>${start + 511}</End></PageRange>`).join("")}<NextMarker>${next}</NextMarker></PageList>`;
  const [group] = await groups(context, (query, request) => {
    if (query.get("comp") === "list") return pageXml([{ name: "pages", type: "PageBlob", length: 1_048_576 }], "");
    if (query.get("comp") === "pagelist")
      return query.get("marker") === "more" ? rangesXml([2_048, 524_288], "") : rangesXml([0, 1_024], "more");
    const [, from = 0, to = 0] = /bytes=(\d+)-(\d+)/.exec(String(request.headers["x-ms-range"] ?? request.headers.range)) ?? [];
    return Buffer.alloc(Number(to) - Number(from) + 1, 7);
  });
  const ranges: number[][] = [];
  for await (const { at, bytes } of group?.blobs[0]?.chunks() ?? []) ranges.push([at, bytes.length]);
  assert.deepEqual(ranges, [
    [0, 2_560],
    [524_288, 512],
  ]);
});

test("export: a name that changed is looked at again with all of its versions, in however many answers", async (context) => {
  const old = { name: "kept", version: "2026-01-01T00:00:00.0000000Z", current: false };
  const current = { name: "kept", version: "2026-01-02T00:00:00.0000000Z" };
  const [group] = await groups(context, (query) => {
    if (query.get("comp") !== "list") return 412;
    return query.get("marker") === "more" ? pageXml([current, { name: "kept too" }], "") : pageXml([old], "more");
  });
  await assert.rejects(async () => {
    for await (const _each of group?.blobs[0]?.chunks() ?? []);
  }, BlobChanged);
  const again = await group?.again();
  assert.deepEqual(
    again?.blobs.map(({ facts }) => [facts.name, facts.current]),
    [
      ["kept", false],
      ["kept", true],
    ],
  );
});

test("export: a blob whose name is two dots is left out, and the others come", async (context) => {
  const found = await groups(context, (query) =>
    query.get("comp") === "list" ? pageXml([{ name: ".." }, { name: "a" }], "") : Buffer.alloc(1),
  );
  assert.deepEqual(
    found.map(({ name }) => name),
    ["..", "a"],
  );
  await assert.rejects(async () => {
    for await (const _each of found[0]?.blobs[0]?.chunks() ?? []);
  }, LeftOut);
});
