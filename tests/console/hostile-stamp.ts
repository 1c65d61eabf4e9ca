/** A stamp whose every name is one that a page may take for something else, as the console would tell it. */
import type { Page } from "playwright-core";
import { hostileNames } from "./browser.ts";

const figures = {
  requestsPerSecond: 1,
  errorsPerSecond: 0,
  writtenPerSecond: 1,
  readPerSecond: 1,
  p50Ms: 1,
  p99Ms: 2,
};

const hostileSnapshot = (atMs: number) => ({
  atMs,
  state: "healthy",
  sentence: hostileNames.join(" "),
  findings: [],
  dataDir: "",
  endpoints: [],
  processes: hostileNames.map((name) => ({
    name,
    role: "extent-node",
    host: name,
    pid: 1,
    grpc: name,
    state: name,
    ready: true,
    waitingFor: [name],
    restarts: 0,
    lastExit: name,
    uptimeMs: 1,
    release: name,
    workPerSecond: 1,
  })),
  nodes: hostileNames.map((name) => ({
    name,
    up: true,
    duty: "serving",
    faultDomain: name,
    freeBytes: 1,
    totalBytes: 2,
    replicas: 1,
    blocked: [name],
    freeFiles: null,
    syncP99Ms: 1,
    appendsPerSecond: 1,
    fragments: 0,
    takes: name,
    disks: [],
    scrub: name,
    scrubFindings: [name],
  })),
  repair: hostileNames,
  latency: [],
  figures: { atMs, ...figures },
});

/** Lets the page follow the hostile stamp instead of the real one, and loads it again at the path. */
export async function showHostile(page: Page, path: string): Promise<void> {
  await page.route("**/api/live?*", (route) =>
    route.fulfill({
      contentType: "text/event-stream",
      body: `event: snapshot\ndata: ${JSON.stringify(hostileSnapshot(Date.now()))}\n\n`,
    }),
  );
  await page.goto(`${new URL(page.url()).origin}/#/${path}`);
  await page.reload();
}
