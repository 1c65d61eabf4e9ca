/** Limits of what a call asks of partition servers and extent nodes, with the caller's trace. */
import { type CallContext, causeOf } from "@stamp/ports";
import type { CallLimits } from "../routing/router.ts";

/** Returns the limits of the call's own work. Log lines and spans of all processes that work for the call name its cause. */
export const limitsOf = ({ deadlineMs, signal, metadata }: CallContext): CallLimits => ({ deadlineMs, signal, cause: causeOf(metadata) });
