/** The transport against the suite of its port, over loopback, with each of the two kinds of connection in both lanes. */

import type { AddressInfo } from "node:net";
import { createServer } from "node:net";
import { test } from "node:test";
import { transportConformance } from "@stamp/ports";
import { NodeClock } from "../clock.ts";
import type { LinkKind } from "./options.ts";
import { GrpcTransport } from "./transport.ts";

/** A port that was free a moment ago. */
async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

const kinds: readonly LinkKind[] = ["gRPC", "plain"];
for (const kind of kinds) {
  const limits = { links: { control: kind, bulk: kind } };
  transportConformance(
    (name, run) => void test(`${kind}: ${name}`, { timeout: 60_000 }, run),
    async () => ({
      clock: new NodeClock(),
      server: new GrpcTransport({ limits }),
      client: new GrpcTransport({ limits }),
      listen: "127.0.0.1:0",
      absent: `127.0.0.1:${await freePort()}`,
      dispose: async () => {},
    }),
  );
}
