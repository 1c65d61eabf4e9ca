/**
 * Waits until changed keys and settings of an account are in force at every front-end of the stamp, and at the stamp of its copy
 * (docs/design/geo.md "Keys and settings"), or says where they are not.
 */
import type { Outcome } from "@stamp/base";
import type { SettingsInForce } from "@stamp/wire";

/** Longest wait unless the caller says otherwise, in milliseconds: the copy's stamp is given them again every 2 s, and every 10 s by the location service. */
const usualWaitMaxMs = 30_000;
const pollMs = 250;

interface Waiting {
  readonly ask: () => Promise<Outcome<SettingsInForce>>;
  readonly nowMs: () => number;
  readonly sleep: (ms: number) => Promise<void>;
  /** Longest wait, in milliseconds. */
  readonly waitMaxMs?: number;
}

/** Returns where the settings are not in force, for people; empty: they are everywhere, or the partition manager is of an older release. */
export async function untilInForce({ ask, nowMs, sleep, waitMaxMs = usualWaitMaxMs }: Waiting): Promise<string> {
  const untilMs = nowMs() + waitMaxMs;
  for (let where = ""; ; ) {
    const asked = await ask();
    if (!asked.ok && asked.failure.reason === "unknownMethod") return "";
    if (asked.ok && asked.value.inForce) return "";
    where = asked.ok ? asked.value.where : asked.failure.message;
    if (nowMs() >= untilMs) return where === "" ? "not every front-end of this stamp is known to have them" : where;
    await sleep(Math.min(1_000, Math.max(pollMs, asked.ok && where === "" ? asked.value.waitMs : pollMs)));
  }
}
