/**
 * The HTTP health door of a process: `/live`, `/ready` (with whom it waits for), `/metrics` (Prometheus text), `/turns` (longest turn of the
 * event loop in processor time, for `stamp bench turns`). Everybody who reaches the port gets an answer, so it names no account and nothing
 * that accounts store. The facts of the role, which do, are told by the Status service to those who prove the secret of the stamp.
 */
import { monitorEventLoopDelay } from "node:perf_hooks";
import { release } from "@stamp/base";
import type { HttpHandler, HttpResponse, Role, SecretFacts } from "@stamp/ports";
import { NodeClock } from "../clock.ts";
import { metricsText, type PeerFigures, type ServedCertificate } from "./metrics.ts";
import { TurnWatch } from "./turn-watch.ts";

const json = (status: number, value: unknown): HttpResponse => ({
  status,
  headers: { "Content-Type": "application/json", "Cache-Control": "no-store" },
  body: Buffer.from(`${JSON.stringify(value)}\n`),
});

/** `certificates`: certificates of the open doors. `isStopping`: the process was asked to stop, and is not ready any more. */
export function healthHandler(
  roleName: string,
  name: string,
  role: Role,
  certificates: () => readonly ServedCertificate[] = () => [],
  secret: () => SecretFacts | undefined = () => undefined,
  peer: () => PeerFigures | undefined = () => undefined,
  isStopping: () => boolean = () => false,
): HttpHandler {
  const clock = new NodeClock();
  /** Returns the wall clock minus the time that passed: stays the same unless somebody sets the clock. */
  const wallOffsetMs = (): number => clock.wallMs() - clock.monotonicMs() - clock.suspendedMs();
  const startOffsetMs = wallOffsetMs();
  // One sample for each turn of the loop: the longest one is exact, and an idle process is not woken up to measure.
  const lag = monitorEventLoopDelay({ resolution: 20, samplePerIteration: true });
  lag.enable();
  const turns = new TurnWatch();
  return async (request) => {
    if (request.method !== "GET" && request.method !== "HEAD") return { status: 405, headers: { Allow: "GET, HEAD" } };
    const path = request.target.split("?")[0];
    if (path === "/live") return json(200, { live: true });
    if (path === "/ready") {
      const { waitingFor, ...status } = role.status;
      const [ready, state] = isStopping() ? [false, "stopping"] : [status.ready, status.state];
      return json(ready ? 200 : 503, { role: roleName, name, release, ready, state, waitingFor });
    }
    if (path === "/metrics") {
      const figures = { lag, wallSetMs: wallOffsetMs() - startOffsetMs, certificates: certificates(), secret: secret(), peer: peer() };
      const text = metricsText(roleName, name, role, figures);
      return { status: 200, headers: { "Content-Type": "text/plain; version=0.0.4" }, body: Buffer.from(text) };
    }
    if (path === "/turns") return json(200, turns.take());
    return json(404, { paths: ["/live", "/ready", "/metrics", "/turns"] });
  };
}
