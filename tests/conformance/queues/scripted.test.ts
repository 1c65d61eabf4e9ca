/** The suite against a front-end and a partition server over memory. What it sees is what docs/api/queue.md says. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { parseQueueResource, parseTarget, queueRequests, queueRequestTitle } from "@stamp/azure-rest";
import type { HttpRequest } from "@stamp/ports";
import { ApiRecord, checkApiPage } from "../../tools/api-table.ts";
import { testIssuer } from "../issuer.ts";
import { accountKey, accountName, startScriptedStamp } from "../scripted-stamp.ts";
import { roleRow, statisticsOf } from "../statistics.ts";
import { queueConformance } from "./index.ts";

const record = new ApiRecord();

function onQueueAnswer({ method, target, headers }: HttpRequest, status: number): void {
  const parsed = parseTarget(target, headers.host ?? "", { hostSuffixes: [] });
  const resource = parsed.ok ? parseQueueResource(parsed.value) : parsed;
  const title = parsed.ok && resource.ok ? queueRequestTitle(method, { ...parsed.value, ...resource.value }) : undefined;
  if (title !== undefined) record.saw(title, status);
}

queueConformance(
  "front-end and partition server over memory",
  async () => {
    const issuer = await testIssuer();
    const stamp = await startScriptedStamp({ onQueueAnswer, frontEnd: issuer.settings });
    return { endpoint: stamp.queueEndpoint, accountName, accountKey, issuer, stop: () => stamp.stop().finally(() => issuer.remove()) };
  },
  record,
);

test("statistics are given at the secondary location", async () => {
  record.part = "statistics.ts";
  const stamp = await startScriptedStamp({ onQueueAnswer });
  await stamp.setRole(roleRow("secondary"));
  assert.equal((await statisticsOf("queue", stamp)).status, "unavailable");
  await stamp.stop();
});

test("docs/api/queue.md says what the suite has seen", () => {
  checkApiPage(
    {
      path: "docs/api/queue.md",
      heading: "Queue service",
      about: "One row per operation of the Queue service REST API.",
      requests: queueRequests().map(({ resource, request, ...row }) => ({ ...row, request: `${resource} ${request}` })),
    },
    record,
  );
});
