/** Facts about servers, by their names: which are silent, and for how long that is remembered. */
import { test } from "node:test";
import { rangeOf, withParts } from "../testing/term-harness.ts";

test("servers: who is silent and has no lease any more, not even an ended one, is forgotten", () =>
  withParts([rangeOf("Entity", "entity-1")], async ({ servers, leases, until }) => {
    leases["ps-nowhere"] = 7;
    await until(() => servers.unreachable.has("ps-nowhere"), 30_000, "calls to it failed for long");
    leases["ps-nowhere"] = 0;
    await until(() => servers.leases.some((lease) => lease.server === "ps-nowhere" && lease.ended), 5_000, "its lease has ended");
    await until(() => servers.unreachable.has("ps-nowhere"), 1, "an ended lease is not forgotten");
    delete leases["ps-nowhere"];
    await until(() => !servers.unreachable.has("ps-nowhere"), 5_000, "it is forgotten");
  }));
