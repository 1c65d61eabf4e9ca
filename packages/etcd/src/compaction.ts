/**
 * Keeps the history of etcd short: every interval, what is older than the interval before is compacted. A range that is read at a revision
 * for longer than the interval fails, and is begun anew by whoever reads it.
 */
import { sleep } from "@stamp/ports";
import type { Session } from "./election.ts";

export async function keepCompact(session: Session, everyMs: number): Promise<void> {
  const { client, ended, keys } = session;
  let before = 0n;
  while (!ended.aborted) {
    const found = await client.once(({ kv }, options) => kv.range({ key: keys.active }, options));
    const now = found.ok ? (found.value.header?.revision ?? 0n) : 0n;
    // An answer "has been compacted" says that somebody else did it.
    if (before > 0n && now > 0n) await client.once(({ kv }, options) => kv.compact({ revision: before }, options));
    if (now > 0n) before = now;
    await sleep(client.world.clock, everyMs, ended);
  }
}
