/**
 * Leases with fencing epochs, pure: `LeaseTable` grants, renews and ends them, `LeaseHolder` says until when a holder may
 * act. The caller owes: a record that is durable before its answer, and monotonic time that counts suspends.
 */
export { type LeaseAttempt, LeaseHolder } from "./holder.ts";
export { decodeLease, encodeLease, type LeaseRecord } from "./record.ts";
export { type LeaseDecision, LeaseTable, type LeaseView, leaseAheadMax } from "./table.ts";
