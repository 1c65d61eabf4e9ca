/**
 * Leases with fencing epochs, pure: `LeaseTable` grants, renews and ends them, `LeaseHolder` says until when a holder may
 * act. The caller owes: a record that is durable before its answer, and monotonic time that counts suspends.
 */
export * from "./holder.ts";
export * from "./record.ts";
export * from "./table.ts";
