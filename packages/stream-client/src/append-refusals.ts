/** Sizes of appends that are refused before they are sent, and the meaning of refusals by extent nodes for the stream's next extents. */
import { type Failure, type Outcome, refused, unknownOutcome } from "@stamp/base";
import { appendBlocksMax, appendPayloadBytesMax, blockPayloadBytesMax } from "@stamp/extent";

const badRequest = (message: string): Outcome<never> => refused("invalidArgument", "badRequest", message);

/** Returns the bytes of all blocks together. */
export const payloadBytes = (blocks: readonly Uint8Array[]): number => blocks.reduce((sum, { length }) => sum + length, 0);

/** Refuses an append with a block, a number of blocks or a total size that no extent node takes. */
export function sizeRefused(blocks: readonly Uint8Array[]): Outcome<never> | undefined {
  const bad = blocks.find(({ length }) => length < 1 || length > blockPayloadBytesMax);
  if (bad !== undefined) return badRequest(`a block of ${bad.length} bytes`);
  if (blocks.length > appendBlocksMax) return badRequest(`an append of ${blocks.length} blocks`);
  const total = payloadBytes(blocks);
  return total === 0 || total > appendPayloadBytesMax ? badRequest(`an append of ${total} bytes`) : undefined;
}

/** Reasons with which every extent node refuses: another extent is no help. */
export const hopelessRefusals: ReadonlySet<Failure["reason"]> = new Set(["messageTooLarge", "badRequest"]);
/**
 * Reasons of refusals that a primary gives before it takes a byte or sends one to a secondary. What fails later has the reason extentFailed, too,
 * but its outcome is unknown.
 */
const beforeTaken: ReadonlySet<Failure["reason"]> = new Set([
  "diskFull",
  "offsetGap",
  "extentSealed",
  "extentFenced",
  "extentStale",
  "extentFailed",
]);

/** Returns true if the primary certainly took no byte of the append, and no secondary was asked. */
export const isNotTaken = ({ applied, reason }: Failure): boolean => applied === "no" && beforeTaken.has(reason);

/** Returns the outcome of an append whose deadline is over. `noExtent`: why the stream has no extent to write to, if it has none. */
export function lateOutcome(stream: string, isCertain: boolean, noExtent: Failure | undefined): Outcome<never> {
  const why = noExtent === undefined ? "" : `: there is no extent to write to: ${noExtent.message}`;
  if (!isCertain) return unknownOutcome("deadlineExceeded", "timeout", `an append to stream ${stream} was not acknowledged in time${why}`);
  const message = `an append to stream ${stream} was not sent in time${why}`;
  return noExtent === undefined ? refused("deadlineExceeded", "timeout", message) : refused("unavailable", "noPlacement", message);
}

/** Reasons after which the next extent avoids the node. */
export const unreachable: ReadonlySet<Failure["reason"]> = new Set([
  "connectFailed",
  "connectionLost",
  "timeout",
  "stopping",
  "diskFull",
  "diskFailed",
  "overloaded",
]);
