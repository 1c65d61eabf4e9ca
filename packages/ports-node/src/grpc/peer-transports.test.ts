import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { silentLogger } from "@stamp/ports";
import { NodeClock } from "../clock.ts";
import { peerTransports } from "./peer-transports.ts";

test("transports to other stamps: files that can't be used refuse the calls to that stamp with the reason, and are read again", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "stamp-peers-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const to = peerTransports({ clock: new NodeClock(), logger: silentLogger }, folder, "");
  const why = (stamp: string): string => {
    const transport = to(stamp);
    return transport.ok ? "ok" : `${transport.failure.code}: ${transport.failure.message}`;
  };
  assert.match(why("south"), /^failedPrecondition: the secret of stamp south is not there/);
  assert.match(why("../south"), /^invalidArgument/);
  writeFileSync(join(folder, "south"), `${Buffer.alloc(32, 1).toString("base64")}\n`, { mode: 0o600 });
  mkdirSync(join(folder, "south-certs"));
  // The first command of the guide leaves this, until the second one has run.
  writeFileSync(join(folder, "south-certs", "ca.pem"), "no certificate");
  assert.match(why("south"), /^failedPrecondition: certificates for stamp south: .*geo-peer\.pem/);
  rmSync(join(folder, "south-certs"), { recursive: true });
  const first = to("south");
  assert.ok(first.ok);
  await first.value.close();
});
