/**
 * Admission: which operations begin now, which wait, which are refused. Start at `Gate`. Pure: time comes with each
 * call. The caller owes: one `leave` for each operation that was let in, and the time of each call from one monotonic
 * clock.
 */
export { type Effect, Gate, type GateFigures, type GateOptions, type OfferedOperation, type Refusal, type Ticket } from "./gate.ts";
export { gateMetrics } from "./metrics.ts";
export { RoomBeside, type RoomBesideOptions, type SmallEnd, type SmallOperation } from "./room-beside.ts";
