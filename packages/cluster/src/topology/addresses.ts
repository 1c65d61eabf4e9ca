/**
 * Addresses that a cluster listens on: `httpBind` for the REST doors, `internalBind` for everything else (gRPC, the bus, the health doors).
 *
 * `bind` was one key for both until 26 November 2026. It is taken still, wherever a key can be given, and means: the REST doors, and the
 * internal ports as well if the address is of loopback. So no older command line opens an internal port to other machines.
 */
import { isLoopback } from "@stamp/ports";

export interface Addresses {
  readonly httpBind: string;
  readonly internalBind: string;
}

/** Key of releases before, in configuration files, records, STAMP_BIND and --bind. */
export const olderKey = "bind";

/** True if other machines can connect to a port at `address`. */
export const isBeyondLoopback = (address: string): boolean => !isLoopback(`${address}:0`);

/** True if other machines can connect to any port. */
export const bindsBeyondLoopback = ({ httpBind, internalBind }: Addresses): boolean =>
  isBeyondLoopback(httpBind) || isBeyondLoopback(internalBind);

/** Values of one source with `bind` put into today's keys. A key of today beside `bind` in the same source wins. */
export function withoutOlderKey(values: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const { [olderKey]: bind, ...rest } = values;
  if (bind === undefined) return rest;
  const internal = typeof bind === "string" && !isBeyondLoopback(bind) ? { internalBind: bind } : {};
  return { httpBind: bind, ...internal, ...rest };
}

/** Values of a record as the release that wrote it took them: `bind` was the address of every port, and one lock service the default. */
export function asRecorded(values: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const { [olderKey]: bind, ...rest } = values;
  return { lockServices: 1, ...(bind === undefined ? {} : { httpBind: bind, internalBind: bind }), ...rest };
}
