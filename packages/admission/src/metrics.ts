/** Declares how `/metrics` tells of the figures of a gate. */
import { counter, gauge, type Metrics, summary } from "@stamp/base";

/** `prefix` is the role's; `labels` says which gate of it. */
export const gateMetrics = (prefix: string, labels: Readonly<Record<string, string>> = {}): Metrics => ({
  atWork: gauge(`${prefix}_admission_at_work`, "Requests that were let in and have not ended.", labels),
  waiting: gauge(`${prefix}_admission_waiting`, "Requests that wait for their turn.", labels),
  accounts: gauge(`${prefix}_admission_accounts`, "Accounts of which something waits or is at work.", labels),
  limit: gauge(
    `${prefix}_admission_limit`,
    "How many may be at work at once (a front-end: started in one turn of its event loop).",
    labels,
  ),
  contended: gauge(`${prefix}_admission_contended`, "1 while an account could suffer from another one.", labels),
  standing: gauge(`${prefix}_admission_standing_queue`, "1 while even the quickest operation takes longer than it should.", labels),
  started: counter(`${prefix}_admission_started_total`, "Requests that were let in.", labels),
  refused: counter(`${prefix}_admission_refused_total`, "Requests that were answered 503 because they would have waited too long.", labels),
  ...summary(
    { count: "waited", sum: "waitedMs" },
    `${prefix}_admission_wait_seconds`,
    "Of requests that had to wait before they were let in.",
    labels,
  ),
});
