/**
 * `stamp token`: what gRPC tools send in the metadata of a call. With --internal a token of the stamp's secret, which every internal port
 * asks for (`stamp-token: …`); without it a token of an account, which the calls of stamp.v1.FrontEnd carry besides
 * (`authorization: Bearer …`).
 */
import { createHmac } from "node:crypto";
import { makeToken } from "@stamp/azure-rest";
import { type ClusterConfig, ownCredential, secretFilesOf } from "@stamp/cluster";
import {
  ConfigError,
  inWords,
  issuedTokenOf,
  issuedTokens,
  issuedTokensBeside,
  noteIssuedToken,
  revokeIssuedToken,
  toolTokenMsMax,
} from "@stamp/ports-node";
import { type Caller, callers } from "@stamp/wire";
import type { Command } from "commander";
import { CommandError, configOf, exitCodes, withConfig } from "../context.ts";
import { say, sayRaw, warn } from "../say.ts";
import { topLevel } from "../top-level.ts";
import { accountName, number, oneOf } from "../values.ts";

interface TokenOptions {
  readonly account?: string;
  readonly key?: string;
  readonly minutes: string;
  readonly internal?: boolean;
  readonly as: Caller;
}

export function addToken(program: Command): void {
  const command = topLevel(program, "token")
    .option("--internal", "of the stamp's secret: metadata stamp-token of each call; it opens everything")
    .option(
      "--as <role>",
      `with --internal, for calls that only processes make: the role to say (${callers.join(", ")})`,
      oneOf(callers),
      "operator",
    )
    .option("--account <name>", "account (default: the first of the configuration)", accountName)
    .option("--key <base64>", "account key, when the account is not in the configuration")
    .option("--minutes <n>", "how long it is good for", number(0.001, 525_600), "60");
  addTokenList(command);
  withConfig(command, ["accounts", "dataDir", "clusterSecretFile"]).action((_options, command: Command) => {
    const { account, key, minutes, internal, as } = command.opts<TokenOptions>();
    const lastsMs = Number(minutes) * 60_000;
    if (internal === true) {
      if (lastsMs > toolTokenMsMax)
        throw new CommandError(`--minutes: an internal token is good for a day at most (${toolTokenMsMax / 60_000})`, exitCodes.usage);
      sayRaw(internalToken(configOf(command), as, Math.round(lastsMs)));
      return;
    }
    const accounts = configOf(command).accounts;
    const found = account === undefined ? accounts[0] : accounts.find((each) => each.name === account);
    const name = account ?? found?.name;
    const usedKey = key ?? found?.keys[0];
    if (name === undefined || usedKey === undefined)
      throw new CommandError(`no key of the account ${account} is known: give --key`, exitCodes.usage);
    const sign = (by: Uint8Array, message: Uint8Array): Uint8Array => createHmac("sha256", by).update(message).digest();
    sayRaw(makeToken({ account: name, expiresMs: Date.now() + Math.round(lastsMs) }, Buffer.from(usedKey, "base64"), sign));
  });
}

function internalToken(config: ClusterConfig, caller: Caller, lastsMs: number): string {
  let credential: ReturnType<typeof ownCredential>;
  try {
    credential = ownCredential(config, caller);
  } catch (error) {
    throw new CommandError(inWords(error));
  }
  if (credential.open) {
    const { current } = secretFilesOf(config);
    throw new CommandError(`there is no cluster secret: neither ${current} nor STAMP_CLUSTER_SECRET (the first start makes it)`);
  }
  const token = credential.reusableToken(lastsMs);
  const facts = issuedTokenOf(token);
  const { current } = secretFilesOf(config);
  try {
    if (facts !== undefined) noteIssuedToken(current, facts, Date.now());
  } catch (error) {
    if (error instanceof ConfigError) throw new CommandError(error.message);
    warn(`the token is on no list and can't be revoked by itself: ${inWords(error, issuedTokensBeside(current))}`);
  }
  return token;
}

/** Does something with the list of tokens. Throws CommandError in words. */
function withTokens<T>(command: Command, work: (secretFile: string) => T): T {
  const { current } = secretFilesOf(configOf(command));
  try {
    return work(current);
  } catch (error) {
    if (error instanceof CommandError) throw error;
    throw new CommandError(error instanceof ConfigError ? error.message : inWords(error, issuedTokensBeside(current)));
  }
}

/** Adds `list` and `revoke`. Their options are those of `stamp token`, which may stand before and behind the name. */
function addTokenList(command: Command): void {
  command
    .command("list")
    .description("internal tokens that were made here and have not ended")
    .action(() => {
      for (const { id, role, madeMs, endsMs, revoked } of withTokens(command, (secretFile) => issuedTokens(secretFile, Date.now()))) {
        const [made, ends] = [madeMs, endsMs].map((ms) => new Date(ms).toISOString());
        say(`${id}  ${role}  made ${made}  until ${ends}${revoked ? "  revoked" : ""}`);
      }
    });
  command
    .command("revoke <token>")
    .description("end an internal token before its time")
    .action((id: string) => {
      withTokens(command, (secretFile) => {
        const folder = issuedTokensBeside(secretFile);
        if (!revokeIssuedToken(secretFile, id, Date.now()))
          throw new CommandError(`${folder} lists no token ${id}: stamp token list`, exitCodes.usage);
        say(`${id} is revoked: processes that see ${folder} refuse it within 2 s; copy the folder to other hosts`);
      });
    });
}
