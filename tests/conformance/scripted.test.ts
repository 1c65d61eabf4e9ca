/**
 * The suite against a front-end and a partition server over memory: nothing but the two is tested here. What it sees is what
 * docs/api/blob.md says.
 */
import assert from "node:assert/strict";
import { after, beforeEach, describe, test } from "node:test";
import {
  accountOfHost,
  blobRequests,
  blobRequestTitle,
  otherRequests,
  otherRequestTitle,
  parseBlobResource,
  parseTarget,
} from "@stamp/azure-rest";
import { refused } from "@stamp/base";
import type { HttpRequest } from "@stamp/ports";
import { NodeHttpClient } from "@stamp/ports-node";
import { ApiRecord, checkApiPage } from "../tools/api-table.ts";
import { copySources } from "./foreign.ts";
import { blobConformance } from "./index.ts";
import { testIssuer } from "./issuer.ts";
import { accountKey, accountName, type ScriptedStamp, startScriptedStamp } from "./scripted-stamp.ts";
import { roleRow, statisticsOf } from "./statistics.ts";
import { blockId, bytes, Clients, failure } from "./target.ts";

const record = new ApiRecord();
const otherRecord = new ApiRecord();

/** Requests of Data Lake Storage and Azure Files; the others are the Blob service's. */
function sawOther({ method, target, headers }: HttpRequest, status: number): boolean {
  for (const service of [undefined, "dfs", "file"] as const) {
    const hostSuffixes = service === undefined ? [] : [`${service}.localhost`];
    if (service !== undefined && accountOfHost(headers.host ?? "", hostSuffixes) === undefined) continue;
    const parsed = parseTarget(target, headers.host ?? "", { hostSuffixes });
    const title = parsed.ok ? otherRequestTitle(method, parsed.value, headers, service) : undefined;
    if (title !== undefined) otherRecord.saw(title, status);
    if (title !== undefined) return true;
  }
  return false;
}

function onAnswer(request: HttpRequest, status: number): void {
  otherRecord.part = record.part;
  if (sawOther(request, status)) return;
  const { method, target, headers } = request;
  const parsed = parseTarget(target, headers.host ?? "", { hostSuffixes: [] });
  const resource = parsed.ok ? parseBlobResource(parsed.value) : parsed;
  const title = parsed.ok && resource.ok ? blobRequestTitle(method, { ...parsed.value, ...resource.value }, headers) : undefined;
  if (title !== undefined) record.saw(title, status);
}

blobConformance(
  "front-end and partition server over memory",
  async () => {
    const issuer = await testIssuer();
    const stamp = await startScriptedStamp({ onAnswer, frontEnd: { ...issuer.settings, copySources }, http: new NodeHttpClient() });
    return {
      endpoint: stamp.endpoint,
      accountName,
      accountKey,
      issuer,
      setBlobSettings: stamp.setBlobSettings,
      scopes: stamp.scopes,
      stop: () => stamp.stop().finally(() => issuer.remove()),
    };
  },
  record,
);

describe("copies whose bytes have to be moved", () => {
  beforeEach(() => {
    record.part = "scripted.test.ts";
  });

  /** Source and destination, of which the destination can't share the source's places. */
  const running: ScriptedStamp[] = [];
  after(async () => {
    for (const stamp of running) await stamp.stop();
  });

  async function apart(size: number) {
    const stamp = await startScriptedStamp({ onAnswer, frontEnd: { requestTimeoutMs: 3_000 } });
    running.push(stamp);
    const clients = new Clients({ endpoint: stamp.endpoint, accountName, accountKey, stop: () => stamp.stop() });
    const container = await clients.container();
    const source = container.getBlockBlobClient("source");
    const content = bytes(size, 5);
    for (let i = 0; i < 3; i++) await source.stageBlock(blockId(i), content, size);
    await source.commitBlockList([blockId(0), blockId(1), blockId(2)]);
    const before = new Set(stamp.data.extents.keys());
    stamp.data.mayReferTo = (extentId) => !before.has(extentId) && stamp.data.extents.has(extentId);
    return {
      stamp,
      container,
      source,
      target: container.getBlockBlobClient("target"),
      whole: Buffer.concat([content, content, content]),
      before,
    };
  }

  test("they are the same bytes, and no longer need those of the source", async () => {
    const { stamp, source, target, whole, before } = await apart(2_000_000);
    assert.equal((await (await target.beginCopyFromURL(source.url)).pollUntilDone()).copyStatus, "success");
    for (const extentId of before) stamp.data.extents.delete(extentId);
    assert.ok(whole.equals(await target.downloadToBuffer()));
    assert.equal((await target.getBlockList("committed")).committedBlocks?.length, 3);
  });

  test("an archived source is copied to an online tier part by part, too", async () => {
    const { source, target, whole } = await apart(300_000);
    await source.setAccessTier("Archive");
    assert.equal((await (await target.beginCopyFromURL(source.url, { tier: "Cool" })).pollUntilDone()).copyStatus, "success");
    assert.ok(whole.equals(await target.downloadToBuffer()));
    assert.deepEqual([(await target.getProperties()).accessTier, (await source.getProperties()).accessTier], ["Cool", "Archive"]);
  });

  test("one that takes long is pending, keeps others off, and can be aborted", async () => {
    const { stamp, source, target } = await apart(1_000_000);
    let release = (): void => {};
    const held = new Promise<undefined>((resolve) => {
      release = () => resolve(undefined);
    });
    stamp.data.onRead = () => held;
    await target.beginCopyFromURL(source.url);
    const { copyId = "", copyStatus } = await target.getProperties();
    assert.equal(copyStatus, "pending");
    assert.equal((await failure(target.upload("x", 1))).code, "PendingCopyOperation");
    assert.equal((await failure(target.delete())).code, "PendingCopyOperation");
    assert.equal((await failure(target.abortCopyFromURL("11111111-1111-1111-1111-111111111111"))).code, "CopyIdMismatch");
    await target.abortCopyFromURL(copyId);
    const properties = await target.getProperties();
    assert.deepEqual([properties.copyStatus, properties.contentLength], ["aborted", 0]);
    assert.equal((await failure(target.abortCopyFromURL(copyId))).code, "NoPendingCopyOperation");
    stamp.data.onRead = undefined;
    release();
    await target.upload("after", 5);
    assert.equal((await target.downloadToBuffer()).toString(), "after");
  });

  test("one whose source is overwritten fails, and says so", async () => {
    const { stamp, source, target } = await apart(1_000_000);
    stamp.data.onRead = () => refused("unavailable", "extentStale", "not now");
    await target.beginCopyFromURL(source.url);
    await source.upload("other", 5);
    for (let i = 0; (await target.getProperties()).copyStatus === "pending"; i++) {
      assert.ok(i < 200, "it ends");
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    const properties = await target.getProperties();
    assert.deepEqual([properties.copyStatus, properties.contentLength], ["failed", 0]);
    assert.match(properties.copyStatusDescription ?? "", /ConditionNotMet/);
  });
});

test("statistics are given at the secondary location", async () => {
  record.part = "statistics.ts";
  const stamp = await startScriptedStamp({ onAnswer });
  await stamp.setRole(roleRow("secondary"));
  assert.equal((await statisticsOf("blob", stamp)).status, "unavailable");
  await stamp.stop();
});

test("docs/api/blob.md says what the suite has seen", () => {
  checkApiPage(
    {
      path: "docs/api/blob.md",
      heading: "Blob service",
      about: "One row per operation of the Blob service REST API.",
      requests: blobRequests().map(({ resource, request, ...row }) => ({ ...row, request: `${resource} ${request}` })),
    },
    record,
  );
});

test("docs/api/other-services.md says what the suite has seen", () => {
  const services = { dfs: "Data Lake Storage", file: "Azure Files" } as const;
  const textOf = (query: readonly (readonly [string, string])[]): string => query.map(([name, value]) => ` ${name}=${value}`).join("");
  checkApiPage(
    {
      path: "docs/api/other-services.md",
      heading: "Data Lake Storage and Azure Files",
      about: [
        "How the port of the Blob service answers operations of Data Lake Storage and Azure Files, which have ports of their own",
        "([features](../features.md)). At their hosts (`ACCOUNT.dfs.localhost`, `ACCOUNT.file.localhost`) it refuses all; at the Blob service's",
        "host, those whose request is none of the Blob service. Requests: `packages/azure-rest/src/other-services.ts`.",
      ].join("\n"),
      requests: otherRequests().map(({ service, title, level, method, query, header, refusedWith }) => ({
        title: `${title} (${services[service]})`,
        request: `${level} ${method}${textOf(query)}${header === undefined ? "" : ` with ${header}`}`,
        served: false,
        refusedWith,
      })),
    },
    otherRecord,
  );
});
