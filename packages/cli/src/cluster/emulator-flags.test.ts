import assert from "node:assert/strict";
import { test } from "node:test";
import type { ClusterConfig } from "@stamp/cluster";
import { Command } from "commander";
import { withConfig } from "../context.ts";
import { CommandError, exitCodes } from "../exit.ts";
import { checkValues } from "../values.ts";
import { addEmulatorFlags, emulatorValues } from "./emulator-flags.ts";

function valuesOf(args: string, environment: Record<string, string> = {}): Partial<ClusterConfig> {
  const program = new Command();
  const up = program.command("up").action(() => {});
  addEmulatorFlags(withConfig(up));
  checkValues(program);
  program.parse(["up", ...args.split(" ").filter((each) => each !== "")], { from: "user" });
  return emulatorValues(up, environment);
}

const refused = (args: string, message: RegExp, environment: Record<string, string> = {}): void =>
  assert.throws(
    () => valuesOf(args, environment),
    (error: CommandError) => {
      assert.ok(error instanceof CommandError, String(error));
      assert.match(error.message, message);
      assert.doesNotMatch(error.message, /\n/);
      return error.exitCode === exitCodes.usage;
    },
    args,
  );

test("flags of the emulator, with a place here: they are keys of the configuration", () => {
  assert.deepEqual(valuesOf("--silent --disableProductStyleUrl -s"), {});
  assert.deepEqual(valuesOf("-l data --blobPort 7000 --queuePort 7001 --tablePort 7002"), { dataDir: "data", portBase: 7000 });
  assert.deepEqual(valuesOf("--tablePort 10002"), { portBase: 10_000 });
  assert.deepEqual(valuesOf("--blobHost 0.0.0.0 --queueHost 0.0.0.0"), { httpBind: "0.0.0.0" });
  assert.deepEqual(valuesOf("--cert c.pem --key k.pem --skipApiVersionCheck"), {
    tlsCert: "c.pem",
    tlsKey: "k.pem",
    strictVersions: false,
  });
});

test("AZURITE_ACCOUNTS: accounts of the configuration, unless STAMP_ACCOUNTS says them; a wrong one is refused without its keys", () => {
  const accounts = [
    { name: "first", keys: ["QQ=="] },
    { name: "second2", keys: ["QUE=", "QUJD"] },
  ];
  assert.deepEqual(valuesOf("", { AZURITE_ACCOUNTS: "first:QQ==;second2:QUE=:QUJD;" }), { accounts });
  assert.deepEqual(valuesOf("", { AZURITE_ACCOUNTS: "first:QQ==", STAMP_ACCOUNTS: "[]" }), {});
  for (const text of ["first", "first:!secret!", "FIRST:QQ==", "first:QQ==:QQ==:QQ=="]) {
    refused("", /AZURITE_ACCOUNTS: account1:key1/, { AZURITE_ACCOUNTS: text });
    assert.throws(
      () => valuesOf("", { AZURITE_ACCOUNTS: text }),
      (error: Error) => !error.message.includes("secret"),
    );
  }
});

test("flags of the emulator, without a place here: refused in one line that says what to do instead", () => {
  refused("--loose", /^--loose: .*Leave it out$/);
  refused("-L", /^--loose: /);
  refused("--inMemoryPersistence", /startStamp\(\)/);
  refused("--pwd secret", /openssl pkcs12/);
  refused("--oauth basic", /oidcIssuer/);
  refused("--debug debug.log", /--log-level debug/);
  refused("", /AZURITE_DB/, { AZURITE_DB: "mysql://user:word@host/db" });
  refused("--blobPort 0", /--port-base N/);
  refused("--blobPort 7000 --queuePort 8000", /7000, 7001, 7002: --port-base 7000/);
  refused("--blobHost 0.0.0.0 --tableHost 127.0.0.1", /0\.0\.0\.0, 127\.0\.0\.1/);
});

test("flags of the emulator, beside the flag of the same key: refused", () => {
  refused("--location one --data two", /--location is --data here/);
  refused("--blobPort 7000 --port-base 7000", /--blobPort is --port-base here/);
  refused("--cert c.pem --tls-cert c.pem", /--cert is --tls-cert here/);
});
