/** `stamp token`: a bearer token for the gRPC door of the front-end (`authorization: Bearer …`). */
import { createHmac } from "node:crypto";
import { makeToken } from "@stamp/azure-rest";
import type { Command } from "commander";
import { CommandError, configOf, exitCodes, withConfig } from "./context.ts";

export function addToken(program: Command): void {
  const command = program
    .command("token")
    .description("print a token for the gRPC calls of stamp.v1.FrontEnd")
    .option("--account <name>", "account (default: the first of the configuration)")
    .option("--key <base64>", "account key, when the account is not in the configuration")
    .option("--minutes <n>", "how long it is good for", "60");
  withConfig(command, ["accounts"]).action((_options, command: Command) => {
    const { account, key, minutes } = command.opts<{ account?: string; key?: string; minutes: string }>();
    const accounts = configOf(command).accounts;
    const found = account === undefined ? accounts[0] : accounts.find((each) => each.name === account);
    const name = account ?? found?.name;
    const usedKey = key ?? found?.keys[0];
    if (name === undefined || usedKey === undefined)
      throw new CommandError(`no key of the account ${account} is known: give --key`, exitCodes.usage);
    if (!/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(usedKey) || usedKey === "")
      throw new CommandError("--key: what is given is not base64", exitCodes.usage);
    const lastsMs = Number(minutes) * 60_000;
    if (!(lastsMs > 0)) throw new CommandError(`--minutes: ${minutes} is not a time`, exitCodes.usage);
    const sign = (by: Uint8Array, message: Uint8Array): Uint8Array => createHmac("sha256", by).update(message).digest();
    console.log(makeToken({ account: name, expiresMs: Date.now() + Math.round(lastsMs) }, Buffer.from(usedKey, "base64"), sign));
  });
}
