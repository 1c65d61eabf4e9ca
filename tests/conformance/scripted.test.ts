/**
 * The suite against a front-end and a partition server over memory: nothing but the two is tested here. What it sees is what
 * docs/api/blob.md says.
 */
import { test } from "node:test";
import { blobRequests, blobRequestTitle, parseBlobResource, parseTarget } from "@stamp/azure-rest";
import type { HttpRequest } from "@stamp/ports";
import { ApiRecord, checkApiPage } from "../tools/api-table.ts";
import { blobConformance } from "./index.ts";
import { testIssuer } from "./issuer.ts";
import { accountKey, accountName, startScriptedStamp } from "./scripted-stamp.ts";

const record = new ApiRecord();

function onAnswer({ method, target, headers }: HttpRequest, status: number): void {
  const parsed = parseTarget(target, headers.host ?? "", { hostSuffixes: [] });
  const resource = parsed.ok ? parseBlobResource(parsed.value) : parsed;
  const title = parsed.ok && resource.ok ? blobRequestTitle(method, { ...parsed.value, ...resource.value }) : undefined;
  if (title !== undefined) record.saw(title, status);
}

blobConformance(
  "front-end and partition server over memory",
  async () => {
    const issuer = await testIssuer();
    const stamp = await startScriptedStamp({ onAnswer, frontEnd: issuer.settings });
    return {
      endpoint: stamp.endpoint,
      accountName,
      accountKey,
      issuer,
      setBlobSettings: stamp.setBlobSettings,
      stop: () => stamp.stop().finally(() => issuer.remove()),
    };
  },
  record,
);

test("docs/api/blob.md says what the suite has seen", () => {
  checkApiPage(
    {
      path: "docs/api/blob.md",
      heading: "Blob service",
      about: "One row per operation of the Blob service REST API.",
      requests: blobRequests().map(({ title, resource, request, served }) => ({ title, request: `${resource} ${request}`, served })),
    },
    record,
  );
});
