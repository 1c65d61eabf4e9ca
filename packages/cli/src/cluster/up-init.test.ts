import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { type ClusterStatus, clusterConfigSchema } from "@stamp/cluster";
import { initFailed } from "@stamp/front-end";
import { Command } from "commander";
import { CommandError, exitCodes } from "../exit.ts";
import { checkInitFile, refuseInitOfSeveral, UpInit } from "./up-init.ts";

const configWith = (initFile: string | undefined) => clusterConfigSchema.parse({ initFile });

test("up --init, a file with a mistake or none: refused before anything starts, as a wrong command line", async () => {
  const folder = mkdtempSync(join(tmpdir(), "stamp-up-init-"));
  try {
    const path = join(folder, "init.json");
    const refused = (message: RegExp): Promise<void> =>
      assert.rejects(checkInitFile(configWith(path)), (error: CommandError) => {
        assert.match(error.message, message);
        return error.exitCode === exitCodes.usage;
      });
    await refused(/there is no file .*init\.json/);
    writeFileSync(path, '{\n  "accounts": [{ "name": "acme", "queues": [{ "name": "Jobs" }] }]\n}');
    await refused(/init\.json:2:47: accounts\.0\.queues\.0\.name: no name of a queue/);
    writeFileSync(path, '{ "accounts": [{ "name": "acme" }] }');
    await checkInitFile(configWith(path));
    await checkInitFile(configWith(folder));
    await checkInitFile(configWith(undefined));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test("up --init, with several stamps: refused, because it is not said which one is meant", () => {
  assert.throws(() => refuseInitOfSeveral(configWith("init.json"), new Command()), CommandError);
  refuseInitOfSeveral(configWith(undefined), new Command());
});

test("up --init, a front-end that can't apply the file: its reason is found among the states of all processes", async () => {
  const init = new UpInit(configWith(undefined));
  const waiting = (...waitingFor: string[]): Pick<ClusterStatus, "processes"> => ({
    processes: [{ waitingFor }] as unknown as ClusterStatus["processes"],
  });
  assert.equal(init.failure(waiting("the partition map", "its init file")), undefined);
  assert.equal(init.failure(waiting(`${initFailed}f.json: 409 Conflict`)), "f.json: 409 Conflict");
  await init.end();
});
