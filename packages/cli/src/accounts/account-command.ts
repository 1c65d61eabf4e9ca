/** `stamp account list|show|create|migrate|rotate-key|revoke-delegation|set|scope|usage`: accounts of the running stamp. */
import { decodeServiceProperties } from "@stamp/azure-rest";
import type { Outcome } from "@stamp/base";
import { type Account, Accounts } from "@stamp/wire";
import type { Command } from "commander";
import { CommandError, configOf, exitCodes } from "../context.ts";
import { addMigrate } from "../geo/migrate-command.ts";
import { table } from "../print.ts";
import { inspect, make as makeBelow, type Transport, tell } from "../running.ts";
import { topLevel } from "../top-level.ts";
import { oneOf, whole } from "../values.ts";
import { endpointLinesOf, endpointsOfAccount, neighbour } from "./endpoints.ts";
import { untilInForce } from "./in-force.ts";
import { createLocated, withLocation } from "./location-command.ts";
import { addUsage } from "./usage-command.ts";

const callTimeoutMs = 15_000;
const pageSize = 1_000;
const call = { timeoutMs: callTimeoutMs } as const;

type AccountsClient = ReturnType<typeof accountsAt>;
const accountsAt = (transport: Transport, address: string) => transport.client(address, Accounts);

export function addAccount(program: Command): void {
  const account = topLevel(program, "account");
  const make = (name: string, about: string): Command => makeBelow(account, name, about);

  make("list", "all accounts").action(async (_options, command: Command) => {
    tell(command, await asked(command, listAll), (accounts) =>
      table(
        ["ACCOUNT", "CREATED", "VERSIONING", "DELETED CONTAINERS", "PUBLIC ACCESS"],
        accounts.map((one) => [one.name, ...settingsOf(one)]),
      ),
    );
  });
  make("show <account>", "an account; its keys only with --keys")
    .option("--keys", "print the keys, too")
    .action((name: string, { keys }: { keys?: boolean }, command: Command) =>
      shown(command, keys ? "keys" : "noKeys", (accounts) => accounts.get({ account: name }, call)),
    );
  withLocation(make("create <account>", "a new account; without --key it gets two random keys"))
    .option("--key <base64...>", "its keys")
    .option("--hierarchical-namespace", "its containers are filesystems with directories, for the dfs endpoint (for good)")
    .option("--location <name>", "place it on a stamp of this location, by the location service; without it: on the running stamp")
    .option("--geo <name>", "with --location: keep a copy on a stamp of this location")
    .option("--with-queues", "with --geo: copy queues and messages, too; without it they are at one stamp only")
    .addHelpText("after", "\nExample: stamp account create acme --location north --geo south --at 127.0.0.1:7900")
    .action((name: string, { key, location, geo, withQueues = false, hierarchicalNamespace = false }: CreateOptions, command: Command) => {
      if (location === undefined && geo !== undefined) throw new CommandError("--geo goes with --location only", exitCodes.usage);
      if (geo === undefined && withQueues) throw new CommandError("--with-queues goes with --geo only", exitCodes.usage);
      if (hierarchicalNamespace && location !== undefined)
        throw new CommandError("--hierarchical-namespace and --location: such an account is at one stamp only", exitCodes.usage);
      const asked = { account: name, keys: key ?? [] };
      if (location === undefined)
        return shown(command, "keys", (accounts) =>
          hierarchicalNamespace ? accounts.createHierarchical(asked, call) : accounts.create(asked, call),
        );
      if (key !== undefined) throw new CommandError("--key and --location: the location service makes the keys", exitCodes.usage);
      return createLocated(command, name, { location, second: geo ?? "", withQueues });
    });
  addMigrate(account);
  make("rotate-key <account>", "a new key 1 or 2; the other one stays, so that clients can go over to it first")
    .argument("<number>", "1 or 2", oneOf(["1", "2"]))
    .option("--key <base64>", "the new key (default: 64 random bytes)")
    .action((name: string, number: string, { key }: { key?: string }, command: Command) => {
      return changed(command, name, () =>
        shown(command, "keys", (accounts) => accounts.rotateKey({ account: name, keyNumber: Number(number), newKey: key ?? "" }, call)),
      );
    });
  make("revoke-delegation <account>", "end every user delegation key, and every SAS made with one").action(
    (name: string, _options, command: Command) =>
      changed(command, name, () => shown(command, "noKeys", (accounts) => accounts.revokeDelegationKeys({ account: name }, call))),
  );
  make("set <account>", "settings of its blob service")
    .option("--versioning <on|off>", "whether every write keeps what was there as a version")
    .option("--keep-deleted-containers <days>", "1 to 365; 0: not at all", whole(0, 365))
    .option("--public-access <on|off>", "whether containers may be read without authorization; off counts for public ones, too")
    .action((name: string, { versioning, keepDeletedContainers, publicAccess }: SetOptions, command: Command) => {
      const versions = switchOf(versioning);
      const allowPublicAccess = switchOf(publicAccess);
      const changes = {
        ...(versions === undefined ? {} : { versioning: versions }),
        ...(allowPublicAccess === undefined ? {} : { allowPublicAccess }),
        ...(keepDeletedContainers === undefined ? {} : { containerDeleteRetentionDays: Number(keepDeletedContainers) }),
      };
      return changed(command, name, () =>
        shown(command, "noKeys", (accounts) => accounts.setBlobSettings({ account: name, ...changes }, call)),
      );
    });
  addScopes(account);
  addUsage(account);
}

/** `stamp account scope create|list|disable|enable` */
function addScopes(account: Command): void {
  // Without options of its own: commander would take those of the commands below for this one.
  const scope = account.command("scope").description("encryption scopes: keys of the stamp, by whose names blobs are encrypted");
  const make = (name: string, about: string): Command => makeBelow(scope, `${name} <account>${name === "list" ? "" : " <scope>"}`, about);
  const listed = async (command: Command, work: (accounts: AccountsClient) => Promise<Outcome<Account>>): Promise<void> => {
    const { encryptionScopes } = await asked(command, work);
    const shownScopes = encryptionScopes.map(({ name, disabled }) => ({ name, state: disabled ? "disabled" : "enabled" }));
    tell(command, shownScopes, (scopes) =>
      table(
        ["SCOPE", "STATE"],
        scopes.map(({ name, state }) => [name, state]),
      ),
    );
  };
  make("list", "the scopes of an account").action((name: string, _options, command: Command) =>
    listed(command, (accounts) => accounts.get({ account: name }, call)),
  );
  make("create", "a scope with a key of its own, which stays for good").action(
    (name: string, scopeName: string, _options, command: Command) =>
      listed(command, (accounts) => accounts.createEncryptionScope({ account: name, scope: scopeName }, call)),
  );
  for (const [verb, disabled, about] of [
    ["disable", true, "refuse reads and writes of what is encrypted under it"],
    ["enable", false, "let them in again"],
  ] as const) {
    make(verb, about).action((name: string, scopeName: string, _options, command: Command) =>
      changed(command, name, () =>
        listed(command, (accounts) => accounts.setEncryptionScopeState({ account: name, scope: scopeName, disabled }, call)),
      ),
    );
  }
}

interface CreateOptions {
  readonly key?: string[];
  readonly location?: string;
  readonly geo?: string;
  readonly withQueues?: boolean;
  readonly hierarchicalNamespace?: boolean;
}

interface SetOptions {
  readonly versioning?: string;
  readonly keepDeletedContainers?: string;
  readonly publicAccess?: string;
}

const switchOf = (text: string | undefined): boolean | undefined => (text === undefined ? undefined : text === "on");

/** Makes a change, then waits until it is in force everywhere. Fails, though the change is made, if it is not. */
async function changed(command: Command, name: string, change: () => Promise<void>): Promise<void> {
  await change();
  const where = await inspect(command, async (inspector, transport) => {
    const accounts = accountsAt(transport, await inspector.leader("partition-manager"));
    return untilInForce({ ask: () => accounts.getSettingsInForce({ account: name }, call), nowMs: () => performance.now(), sleep: waitMs });
  });
  if (where !== "") throw new CommandError(`account ${name} is changed, but that is not in force everywhere: ${where}`);
}

const waitMs = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

const asked = async <T>(command: Command, work: (accounts: AccountsClient) => Promise<Outcome<T>>): Promise<T> =>
  (await askedWhere(command, work)).found;

/** Returns where the stamp is, too. */
const askedWhere = <T>(command: Command, work: (accounts: AccountsClient) => Promise<Outcome<T>>) =>
  inspect(command, async (inspector, transport, _lockService, { endpoints }) => {
    const answer = await work(accountsAt(transport, await inspector.leader("partition-manager")));
    if (answer.ok) return { found: answer.value, endpoints };
    throw new CommandError(answer.failure.message);
  });

async function listAll(accounts: AccountsClient): Promise<Outcome<Account[]>> {
  const all: Account[] = [];
  for (let marker = ""; ; ) {
    const page = await accounts.list({ marker, maxResults: pageSize }, call);
    if (!page.ok) return page;
    all.push(...page.value.accounts);
    marker = page.value.nextMarker;
    if (marker === "") return { ok: true, value: all };
  }
}

/** Tells the account. Its keys, as text and as JSON, only to a command that is about them. */
async function shown(command: Command, what: "keys" | "noKeys", work: (accounts: AccountsClient) => Promise<Outcome<Account>>) {
  const { found: account, endpoints: here } = await askedWhere(command, work);
  const config = configOf(command);
  const endpoints = endpointsOfAccount(account, here, (stamp) => neighbour(config, stamp));
  const key = what === "keys" ? account.keys[0] : undefined;
  tell(command, { ...(what === "keys" ? account : withoutKeys(account)), endpoints }, () =>
    [accountText(account, what), ...endpointLinesOf(account.name, key, endpoints)].join("\n"),
  );
}

export const withoutKeys = ({ keys: _, ...rest }: Account): Omit<Account, "keys"> => rest;

export function accountText(account: Account, what: "keys" | "noKeys"): string {
  const [created, versioning, deleted, publicAccess] = settingsOf(account);
  return [
    `account             ${account.name}`,
    ...(what === "keys" ? account.keys.map((key, index) => `key ${index + 1}               ${key}`) : []),
    `created             ${created}`,
    `versioning          ${versioning}`,
    `deleted containers  ${deleted}`,
    `public access       ${publicAccess}`,
  ].join("\n");
}

function settingsOf(account: Account): [string, string, string, string] {
  const properties = decodeServiceProperties(account.serviceProperties.blob ?? "");
  const created = new Date(Number(account.createdMs)).toISOString();
  if (!properties) return [created, "?", "?", "?"];
  const { versioning, containerDeleteRetention, publicAccessForbidden } = properties;
  return [
    created,
    versioning ? "on" : "off",
    containerDeleteRetention.enabled ? `kept ${containerDeleteRetention.days} days` : "gone at once",
    publicAccessForbidden ? "off" : "on",
  ];
}
