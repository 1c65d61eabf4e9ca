/** Get Blob, Queue and Table Service Stats: how far the copy at this stamp follows its primary. */
import { type ReplicationStatus, refuseStatistics, serviceStatisticsXml } from "@stamp/azure-rest";
import { utf8 } from "@stamp/base";
import type { AccountRole } from "@stamp/geo";
import { type Answer, type Exchange, respond } from "../http/exchange.ts";

/** Answers statistics at the secondary location only; `refuseAt` lets nobody in elsewhere. */
export async function getServiceStatistics({ target, account, accounts }: Exchange): Promise<Answer> {
  const { role } = account;
  if (!target.secondary || role === undefined) return refuseStatistics();
  const lastSyncMs = role.role === "secondary" ? await accounts.lastSyncMs(target.account, role.epoch) : undefined;
  return respond(200, { "Content-Type": "application/xml" }, utf8(serviceStatisticsXml(statusOf(role, lastSyncMs), lastSyncMs)));
}

/** Returns the status of a copy. A complete one without a known Last Sync Time may be behind by any time: it is not `live`. */
function statusOf({ role }: AccountRole, lastSyncMs: number | undefined): ReplicationStatus {
  if (role === "unseeded") return "bootstrap";
  return lastSyncMs === undefined ? "unavailable" : "live";
}
