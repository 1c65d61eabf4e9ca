/**
 * Flags and variables that the documentation of the Azurite emulator names, for `stamp up`: each does what it says, or is refused with what Stamp
 * has in its place (docs/guides/from-the-emulator.md). They are not in the help.
 */
import type { ClusterConfig } from "@stamp/cluster";
import { type Command, Option } from "commander";
import { CommandError, exitCodes } from "../exit.ts";
import { whole } from "../values.ts";

const services = ["blob", "queue", "table"] as const;
/** Ports of the services, counted from that of blobs. */
const portAt = { blob: 0, queue: 1, table: 2 } as const;
const port = whole(0, 65_000);

/** Flags without a place here, each with what to do instead. */
const refused = {
  loose:
    "nothing is loose here: headers that are not known are passed over, and what is not there is refused as the service does. Leave it out",
  inMemoryPersistence:
    'stamp up keeps data on disk: --data "$(mktemp -d)" for data that nobody needs again; in a test suite, startStamp() keeps them in memory ' +
    "(docs/guides/library.md)",
  pwd: "the certificate and its key are PEM files: openssl pkcs12 -in FILE.pfx -nodes -out both.pem, then --cert both.pem --key both.pem",
  oauth:
    'bearer tokens are checked with their signature: name their issuer, --roles \'{"front-end":{"oidcIssuer":"https://…"}}\' (docs/guides/access.md)',
  debug: "each process has its log in the data folder: --log-level debug, then ./stamp logs --level debug",
} as const;

type RefusedFlag = keyof typeof refused;
type Flags = Partial<
  Record<`${(typeof services)[number]}Port` | `${(typeof services)[number]}Host` | "location" | "cert" | "key", string>
> &
  Partial<Record<RefusedFlag, string | boolean>> & { readonly skipApiVersionCheck?: boolean };

/** Adds the flags to `up`, without a line in its help. */
export function addEmulatorFlags(up: Command): void {
  const add = (flags: string, kind?: typeof port): void => {
    const option = new Option(flags).hideHelp();
    up.addOption(kind === undefined ? option : option.argParser(kind));
  };
  add("-l, --location <dir>");
  for (const service of services) {
    add(`--${service}Host <host>`);
    add(`--${service}Port <number>`, port);
  }
  for (const flag of ["-s, --silent", "-L, --loose", "--skipApiVersionCheck", "--inMemoryPersistence", "--disableProductStyleUrl"])
    add(flag);
  for (const flag of ["--cert <file>", "--key <file>", "--pwd <password>", "--oauth <mode>", "--debug <file>"]) add(flag);
  up.addHelpText(
    "after",
    "\nFlags of the Azurite emulator are taken, too, or refused with what to say instead (docs/guides/from-the-emulator.md).",
  );
}

/** Returns configuration keys from flags and variables of the emulator. Throws CommandError for those without a place here. */
export function emulatorValues(command: Command, environment: Readonly<Record<string, string | undefined>>): Partial<ClusterConfig> {
  const flags = command.opts<Flags>();
  for (const [flag, instead] of Object.entries(refused)) if (flags[flag as RefusedFlag] !== undefined) throw wrong(`--${flag}: ${instead}`);
  if ((environment.AZURITE_DB ?? "") !== "")
    throw wrong("AZURITE_DB: there is no database, data are in the data folder (--data). Unset it");
  const values: Record<string, unknown> = {};
  const take = (key: keyof ClusterConfig, own: string, from: string, value: unknown): void => {
    if (value === undefined) return;
    // `--data` is the one flag whose name is not that of its key.
    if (command.opts<Record<string, unknown>>()[key === "dataDir" ? "data" : key] !== undefined)
      throw wrong(`${from} is ${own} here, which is given, too: leave out one of them`);
    values[key] = value;
  };
  take("dataDir", "--data", "--location", flags.location);
  take("httpBind", "--http-bind", "--blobHost", sameHost(flags));
  take("portBase", "--port-base", "--blobPort", portBaseOf(flags));
  take("tlsCert", "--tls-cert", "--cert", flags.cert);
  take("tlsKey", "--tls-key", "--key", flags.key);
  take("strictVersions", "--strict-versions", "--skipApiVersionCheck", flags.skipApiVersionCheck === true ? false : undefined);
  const { AZURITE_ACCOUNTS: accounts = "", STAMP_ACCOUNTS: own = "" } = environment;
  if (accounts !== "" && own === "") take("accounts", "--accounts", "AZURITE_ACCOUNTS", accountsOf(accounts));
  return values as Partial<ClusterConfig>;
}

/** Returns the address of all services; refuses different ones. */
function sameHost(flags: Flags): string | undefined {
  const given = services.flatMap((service) => flags[`${service}Host`] ?? []);
  const [first] = given;
  if (given.every((host) => host === first)) return first;
  throw wrong(`--blobHost, --queueHost, --tableHost: all services are at one address here, and these differ: ${given.join(", ")}`);
}

/** Returns the port base; refuses ports that do not follow one another. */
function portBaseOf(flags: Flags): number | undefined {
  const given = services.flatMap((service) => {
    const text = flags[`${service}Port`];
    return text === undefined ? [] : [{ service, port: Number(text) }];
  });
  const [first] = given;
  if (first === undefined) return undefined;
  if (given.some(({ port }) => port === 0))
    throw wrong(
      "--blobPort 0: a stamp has fixed ports (--port-base N); in a test suite, startStamp() takes free ones (docs/guides/library.md)",
    );
  const base = first.port - portAt[first.service];
  if (given.every(({ service, port }) => port === base + portAt[service])) return base;
  const [blob, queue, table] = [base, base + 1, base + 2];
  throw wrong(`--blobPort, --queuePort, --tablePort: ports follow one another here, as ${blob}, ${queue}, ${table}: --port-base ${blob}`);
}

/** `account1:key1[:key2];account2:…`; with it there is no devstoreaccount1, as at the emulator. */
function accountsOf(text: string): ClusterConfig["accounts"] {
  return text
    .split(";")
    .map((part) => part.trim())
    .filter((part) => part !== "")
    .map((part) => {
      const [name = "", ...keys] = part.split(":");
      const isRight = /^[a-z0-9]{3,24}$/.test(name) && [1, 2].includes(keys.length) && keys.every((key) => base64.test(key));
      // A wrong text may hold a key.
      if (!isRight) throw wrong("AZURITE_ACCOUNTS: account1:key1[:key2];account2:key1[:key2], with keys in base64");
      return { name, keys };
    });
}

const base64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{4}|[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)$/;

const wrong = (message: string): CommandError => new CommandError(message, exitCodes.usage);
