/** The transport against the suite of its port, over loopback. */

import { test } from "node:test";
import { transportConformance } from "@stamp/ports";
import { NodeClock } from "../clock.ts";
// Loaded before the first connection, whose time is bounded: on a busy machine loading takes seconds.
import "./native/grpc-server.ts";
import { GrpcTransport } from "./transport.ts";

/** Nobody listens on this port. One that was free a moment ago can be given to another process. */
const absent = "127.0.0.1:1";

transportConformance(
  (name, run) => void test(name, { timeout: 60_000 }, run),
  async () => ({
    clock: new NodeClock(),
    server: new GrpcTransport(),
    client: new GrpcTransport(),
    listen: "127.0.0.1:0",
    absent,
    dispose: async () => {},
  }),
);
