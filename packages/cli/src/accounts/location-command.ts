/**
 * `stamp location status|stamps|accounts|add|set-state|lost`: the location service over several stamps
 * (docs/guides/locations.md).
 */
import type { Outcome } from "@stamp/base";
import { addressesIn, whyNoAddress } from "@stamp/ports";
import { credentialOf, GrpcTransport } from "@stamp/ports-node";
import { type LocatedAccount, LocationService, type LocationStamp, StampState, Status } from "@stamp/wire";
import type { Command } from "commander";
import { configOf, withConfig } from "../context.ts";
import { CommandError, exitCodes } from "../exit.ts";
import { table } from "../print.ts";
import { tell } from "../running.ts";
import { locationIn, severalIn } from "../stamps/several.ts";
import { topLevel } from "../top-level.ts";
import { kindOf, oneOf } from "../values.ts";
import { endpointLinesOf, neighbour, urlsOf, urlsOfCopy } from "./endpoints.ts";

export const call = { timeoutMs: 20_000 } as const;
const pageSize = 1_000;
const defaultAddress = "127.0.0.1:7900";

interface LocationOptions {
  readonly at: string;
  readonly secretFile: string;
}

interface AddOptions {
  readonly location: string;
  readonly lockService: string;
  readonly secret: string;
  readonly doors: string;
}

const states = { open: StampState.OPEN, closed: StampState.CLOSED, draining: StampState.DRAINING } as const;

export const addressKind = kindOf("127.0.0.1:1", whyNoAddress);
const addressesKind = kindOf("127.0.0.1:1", (text) => {
  const addresses = addressesIn(text);
  return addresses.length === 0
    ? "host:port; several are separated by commas"
    : addresses.map(whyNoAddress).find((why) => why !== undefined);
});

/** Adds the command and returns it, for commands below it. */
export function addLocation(program: Command): Command {
  const location = topLevel(program, "location");
  const make = (name: string, about: string, example: string): Command =>
    withLocation(location.command(name).description(about).option("--json", "for tools")).addHelpText(
      "after",
      `\nExample: stamp location ${example}`,
    );

  make("status", "who leads, how many stamps and accounts there are", "status --at 127.0.0.1:7900").action(
    async (_options, command: Command) => {
      const found = await onLocation(command, async (transport, { at }) => transport.client(at, Status).getStatus({}, call));
      const facts = (found.facts ?? {}) as Readonly<Record<string, unknown>>;
      tell(command, { name: found.name, state: found.state, ready: found.ready, waitingFor: found.waitingFor, ...facts }, () =>
        [`${found.name}: ${found.state}`, ...found.waitingFor.map((each) => `waits for ${each}`), ...countsOf(facts)].join("\n"),
      );
    },
  );
  make("stamps", "all stamps: where they are, how full, whether they take new accounts", "stamps --json").action(
    async (_options, command: Command) => {
      const { stamps } = await onLocation(command, (transport, { at }) => transport.client(at, LocationService).listStamps({}, call));
      tell(command, stamps.map(stampFacts), () => stampsText(stamps));
    },
  );
  make("accounts", "all accounts, and the stamp that each is pinned to", "accounts").action(async (_options, command: Command) => {
    const accounts = await onLocation(command, (transport, { at }) => everyAccount(transport, at));
    tell(command, accounts.map(accountFacts), (rows) =>
      table(
        ["ACCOUNT", "STAMP", "LOCATION", "STATE", "QUEUES"],
        rows.map(({ name, stamp, location: place, state, queues }) => [name, stamp, place, state, queues ? "copied" : "-"]),
      ),
    );
  });
  make("add <stamp>", "add a running stamp; its accounts are pinned to it", "add north-1 --location north --lock-service 10.0.0.1:10100")
    .requiredOption("--location <name>", "location of the stamp")
    .requiredOption("--lock-service <addresses>", "host:port of the stamp's lock service; of several, separated by commas", addressesKind)
    .option("--secret <name>", "file with the stamp's secret, in the folder stampSecretsDir of the location service", "")
    .option(
      "--doors <addresses>",
      "host:port of its front-ends' internal ports, separated by commas; without them no account has a copy there",
      addressesKind,
      "",
    )
    .action(async (name: string, { location: place, lockService, secret, doors }: AddOptions, command: Command) => {
      const request = { name, location: place, lockService, secret, doors: addressesIn(doors) };
      const added = await onLocation(command, (transport, { at }) => transport.client(at, LocationService).addStamp(request, call));
      tell(command, stampFacts(added), () => stampsText([added]));
    });
  make("set-state <stamp>", "whether a stamp takes new accounts", "set-state north-1 closed")
    .argument("<state>", "open, closed or draining", oneOf(Object.keys(states)))
    .action(async (name: string, wanted: keyof typeof states, _options, command: Command) => {
      const state = states[wanted];
      const changed = await onLocation(command, (transport, { at }) =>
        transport.client(at, LocationService).setStampState({ name, state }, call),
      );
      tell(command, stampFacts(changed), () => stampsText([changed]));
    });
  make(
    "lost <stamp>",
    "give a stamp up that does not come back: operations end without it; should it answer again, it deletes what it has of their accounts",
    "lost north-1 --accept-loss",
  )
    .option("--accept-loss", "needed: what only that stamp has is lost")
    .action(async (name: string, { acceptLoss = false }: { acceptLoss?: boolean }, command: Command) => {
      const declared = await onLocation(command, (transport, { at }) =>
        transport.client(at, LocationService).declareStampLost({ name, acceptLoss }, call),
      );
      tell(command, stampFacts(declared), () => stampsText([declared]));
    });
  return location;
}

/** Adds the options that say where the location service is. */
export function withLocation(command: Command): Command {
  const located = command
    .option("--at <host:port>", "the leading location service; default: the one of --data, else 127.0.0.1:7900", addressKind)
    .option("--secret-file <file>", "file with the secret of the location service; default: as --at, else it has none");
  return located.options.some(({ long }) => long === "--data") ? located : withConfig(located, ["dataDir"]);
}

/** Returns the location service that the options name, or the one in the data folder if `stamp up --stamps` made it. */
function whereOf(command: Command): LocationOptions {
  const { at, secretFile } = command.opts<Partial<LocationOptions>>();
  const several = at === undefined ? severalIn(configOf(command, { withoutRecord: true })) : undefined;
  const there = several === undefined ? { at: defaultAddress, secretFile: "" } : locationIn(several);
  return { at: at ?? there.at, secretFile: secretFile ?? there.secretFile };
}

/** Location and stamp for a new account. */
interface NewPlace {
  readonly location: string;
  /** Location of the account's copy; empty: the account has none. */
  readonly second: string;
  /** True if the account's queues are copied, too. */
  readonly withQueues: boolean;
}

/** `stamp account create --location`: the account and its keys. */
export async function createLocated(command: Command, account: string, { location, second, withQueues }: NewPlace): Promise<void> {
  const made = await onLocation(command, (transport, { at }) =>
    transport.client(at, LocationService).createAccount({ account, location, secondLocation: second, withQueues }, call),
  );
  const isLeftOut = withQueues && made.account?.queues !== true;
  const facts = { ...(made.account === undefined ? {} : accountFacts(made.account)), keys: made.keys };
  tell(command, facts, () =>
    [
      `account             ${account}`,
      ...made.keys.map((key, at) => `key ${at + 1}               ${key}`),
      `stamp               ${made.account?.stamp ?? ""}`,
      `location            ${made.account?.location ?? ""}`,
      ...(second === "" ? [] : [`copy                ${copyText(made.account)}`]),
      ...placesOf(command, account, made.keys[0], made.account),
      ...(withQueues ? [`queues              ${isLeftOut ? leavesQueuesOut : "copied"}`] : []),
    ].join("\n"),
  );
  // The account is there, and its keys are told.
  if (isLeftOut) throw new CommandError(`account ${account} is made, and its queues are ${leavesQueuesOut}`);
}

/** Returns lines with the URLs of the new account, if its stamps are those of the folder. */
function placesOf(command: Command, account: string, key: string | undefined, made: LocatedAccount | undefined): string[] {
  const config = configOf(command, { withoutRecord: true });
  const here = made === undefined ? undefined : neighbour(config, made.stamp);
  if (made === undefined || here === undefined) return [];
  const peer = made.kind === "create" ? made.target : "";
  const copy = peer === "" ? undefined : neighbour(config, peer);
  const endpoints = { primary: urlsOf(here, account), secondary: copy && urlsOfCopy(copy, account, made.queues), peer };
  return endpointLinesOf(account, key, endpoints);
}

/** Text for a location service of an older release, which skips fields that it does not know. */
export const leavesQueuesOut = "not copied: the location service runs a release that copies no queues, upgrade it first";

/** Returns the text about a copy. A location service of an older release makes none, and shows no operation. */
const copyText = (made: LocatedAccount | undefined): string =>
  made?.kind === "create" && made.target !== ""
    ? `being made at stamp ${made.target}: ./stamp geo status ${made.name}`
    : `none yet; make one: ./stamp geo protect ${made?.name ?? ""}`;

export async function onLocation<T>(
  command: Command,
  work: (transport: GrpcTransport, options: LocationOptions) => Promise<Outcome<T>>,
): Promise<T> {
  const options = whereOf(command);
  const transport = new GrpcTransport({ credential: () => credentialOf({ clusterSecretFile: options.secretFile }) });
  try {
    const answer = await work(transport, options);
    if (answer.ok) return answer.value;
    const { message, details } = answer.failure;
    if (details?.listens === "no") throw new CommandError(`${message}\n${noLocation(options.at)}`, exitCodes.notRunning);
    throw new CommandError(message);
  } finally {
    await transport.close();
  }
}

/** Returns the error for a command that finds no location service, with what to say instead. */
const noLocation = (at: string): string =>
  `No location service runs at ${at}. It knows which of several stamps has which account; a stamp alone has none, and no copies of accounts. ` +
  "Stamps of one folder (./stamp up --stamps N): --data FOLDER; elsewhere: --at HOST:PORT --secret-file FILE (docs/guides/locations.md)";

export async function everyAccount(transport: GrpcTransport, at: string): Promise<Outcome<LocatedAccount[]>> {
  const all: LocatedAccount[] = [];
  for (;;) {
    const page = await transport.client(at, LocationService).listAccounts({ after: all.at(-1)?.name ?? "", limit: pageSize }, call);
    if (!page.ok) return page;
    all.push(...page.value.accounts);
    if (!page.value.more) return { ok: true, value: all };
  }
}

export const stateName = (state: StampState): string => Object.entries(states).find(([, each]) => each === state)?.[0] ?? "?";

const stampFacts = (stamp: LocationStamp) => ({
  name: stamp.name,
  location: stamp.location,
  lockService: stamp.lockService,
  stampId: stamp.stampId,
  state: stateName(stamp.state),
  answers: stamp.answers,
  trouble: stamp.trouble,
  usedBytes: Number(stamp.usedBytes),
  totalBytes: Number(stamp.totalBytes),
  toldMsAgo: Number(stamp.toldMsAgo),
  accounts: stamp.accounts,
  lost: stamp.lost,
  owed: stamp.owed,
  taken: stamp.taken,
});

const accountFacts = ({ name, stamp, location, state, epoch, queues }: LocatedAccount) => ({
  name,
  stamp,
  location,
  state,
  epoch: Number(epoch),
  /** True if queues are copied to the second stamp. */
  queues,
});

function stampsText(stamps: readonly LocationStamp[]): string {
  const rows = stamps.map((stamp) => {
    const used = stamp.totalBytes === 0n ? "?" : `${((100 * Number(stamp.usedBytes)) / Number(stamp.totalBytes)).toFixed(1)}%`;
    return [
      stamp.name,
      stamp.location,
      stamp.lost ? "lost" : stateName(stamp.state),
      used,
      String(stamp.accounts),
      stamp.answers ? "yes" : "no",
    ];
  });
  const troubles = stamps.flatMap(({ name, trouble, taken, lost, owed }) => [
    ...(lost ? [`${name} was declared lost: when it answers, it is told of ${owed} accounts first`] : []),
    ...(trouble === "" ? [] : [`${name}: ${trouble}`]),
    ...(taken.length === 0 ? [] : [`${name} has accounts whose names are pinned to other stamps: ${taken.join(", ")}`]),
  ]);
  return [table(["STAMP", "LOCATION", "STATE", "USED", "ACCOUNTS", "ANSWERS"], rows), ...troubles].join("\n");
}

const countsOf = (facts: Readonly<Record<string, unknown>>): string[] =>
  Object.keys(facts).length === 0
    ? []
    : [
        `stamps              ${facts.stamps} (${facts.stampsSilent} do not answer)`,
        `accounts            ${facts.accounts} (${facts.operations} with an operation under way)`,
        `names taken         ${facts.taken}`,
      ];
