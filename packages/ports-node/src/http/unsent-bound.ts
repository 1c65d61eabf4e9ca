/**
 * Bounds the bytes that the system holds unsent for each connection of a listening socket (TCP_NOTSENT_LOWAT). Without a bound Linux takes
 * up to `net.ipv4.tcp_wmem` (4 MiB) from the process for a client that reads nothing: 400 slow readers bring the host's TCP memory to
 * `net.ipv4.tcp_mem`, and then every connection of the host is slow, those between the stamp's own processes too.
 *
 * - The option is set on the listening socket; each accepted connection inherits it.
 * - Bytes that were sent and not acknowledged do not count: a connection with a long round trip keeps its throughput. The client's own
 *   receive window bounds them.
 * - Node has no call for socket options, so libc's setsockopt is called by `node:ffi` (Node 26.8 and later, experimental). Where it is missing
 *   the result is false; the operator can set the sysctl `net.ipv4.tcp_notsent_lowat` (docs/guides/overload.md).
 */
import type { Server } from "node:net";

/** Bytes that may wait unsent in the system for one connection: four pieces of an answer. */
export const unsentBytesMax = 256 * 1024;

const ipprotoTcp = 6;
/** TCP_NOTSENT_LOWAT of netinet/tcp.h. */
const optionOf: Partial<Record<NodeJS.Platform, number>> = { linux: 25, darwin: 0x201 };

type SetSocketOption = (fd: number, level: number, option: number, value: Buffer, lengthBytes: number) => number;

let loaded: SetSocketOption | "missing" | undefined;

/** Returns true if every connection that `server` accepts from now on has the bound. `server` must be listening. */
export function boundUnsent(server: Server, bytes: number = unsentBytesMax): boolean {
  const option = optionOf[process.platform];
  const { fd } = (server as unknown as { readonly _handle?: { readonly fd?: number } })._handle ?? {};
  if (option === undefined || fd === undefined || fd < 0) return false;
  loaded ??= load() ?? "missing";
  if (loaded === "missing") return false;
  const value = Buffer.alloc(4);
  value.writeInt32LE(bytes);
  return loaded(fd, ipprotoTcp, option, value, value.length) === 0;
}

function load(): SetSocketOption | undefined {
  const { emitWarning } = process;
  try {
    // The module says on standard error that it is experimental, once for each process; the operator can do nothing about it.
    process.emitWarning = () => {};
    const ffi = process.getBuiltinModule("node:ffi");
    if (!ffi) return undefined;
    const { functions } = ffi.dlopen(null, {
      setsockopt: { return: "i32", arguments: ["i32", "i32", "i32", "buffer", "u32"] },
    });
    return functions.setsockopt as unknown as SetSocketOption;
  } catch {
    return undefined;
  } finally {
    process.emitWarning = emitWarning;
  }
}
