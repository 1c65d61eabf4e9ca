/**
 * `stamp certs cluster folders`: certificates for processes that have no access to the folder of the authority: other hosts of a topology, and
 * containers. Each folder has exactly what its holder may have, under the names that `cluster-certs` of a data folder has.
 *
 *   topology     DIR/HOST/     the operator, every process of the host
 *   containers   DIR/PROCESS/  the process; the operator besides, if it is a front-end or a lock service, where commands run
 *
 * Invariants:
 * - A certificate that is there stays, unless --renew is given: running processes and copies that were handed out go on.
 * - No folder holds the key of the authority.
 */
import { existsSync, mkdirSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { type ClusterConfig, composeCluster, operatorName, peerFolder, processesOf, readTopology } from "@stamp/cluster";
import { inWords, type PeerFiles, type PeerName, readPeerTls } from "@stamp/ports-node";
import { type Caller, isCaller } from "@stamp/wire";
import type { Command } from "commander";
import { CommandError, configOf, exitCodes, withConfig } from "../context.ts";
import { whole } from "../values.ts";
import { authorityIn, type IssuedCertificate, issue, put, stampFor, tellIssued } from "./cluster-certs-command.ts";

/** Roles in whose containers an operator runs commands of stamp. */
const rolesOfTools: readonly string[] = ["front-end", "lock-service"];

interface Holder {
  /** Name of the host or the container, and of its folder. */
  readonly name: string;
  readonly peers: readonly Pick<PeerName, "role" | "name">[];
}

export function addFolders(cluster: Command): void {
  const folders = cluster
    .command("folders")
    .description("make a folder of certificates for each other host of the topology or, in a container, for each container")
    .requiredOption("--dir <dir>", "where the folders are put, by the name of the host or the container")
    .option("--stamp <name>", "name of the stamp in its certificates (default: made up)")
    .option("--days <n>", "how long they are good for, at most 3650", whole(1, 3_650), "365")
    .option("--renew", "make new ones in place of those that are there")
    .option("--json", "for tools")
    .addHelpText(
      "after",
      "\nExample:\n  stamp certs cluster folders --dir certs && rsync -a certs/b/ stamp@b:/var/lib/stamp/cluster-certs/",
    );
  withConfig(folders, ["dataDir"]).action(async (_options, command: Command) => {
    const { dir, stamp, days, renew, json } = command.opts<{
      dir: string;
      stamp?: string;
      days: string;
      renew?: boolean;
      json?: boolean;
    }>();
    const config = configOf(command);
    const holders = holdersOf(config);
    const daysGood = Number(days);
    mkdirSync(peerFolder(config), { recursive: true, mode: 0o700 });
    const authority = await authorityIn(peerFolder(config), true);
    const planned = holders.flatMap((holder) =>
      holder.peers.map((peer) => ({ peer, files: filesIn(join(resolve(dir), holder.name), peer.name) })),
    );
    const there = planned.filter(({ files }) => existsSync(files.cert));
    // Before anything is written: folders of another stamp or authority stay as they are.
    const known = there.map(({ files }) => stampIn(files, stamp))[0];
    const name = known ?? stampFor(config, stamp);
    const issued: IssuedCertificate[] = [];
    for (const { peer, files } of planned) {
      if (renew !== true && existsSync(files.cert)) continue;
      mkdirSync(dirname(files.ca), { recursive: true, mode: 0o700 });
      put(files.ca, authority.certificate, 0o644);
      issued.push(await issue(files, authority, { ...peer, stamp: name }, daysGood));
    }
    tellIssued(
      json,
      resolve(dir),
      issued,
      "Give each folder to its host or container only, as its `cluster-certs` (docs/guides/deploy.md).",
    );
  });
}

const filesIn = (folder: string, name: string): PeerFiles => ({
  cert: join(folder, `${name}.pem`),
  key: join(folder, `${name}-key.pem`),
  ca: join(folder, "ca.pem"),
});

/** Returns the stamp's name in an existing certificate. Throws CommandError if `given` differs or the certificate is unusable. */
function stampIn(files: PeerFiles, given: string | undefined): string {
  try {
    const { stamp } = readPeerTls(files, 0).own;
    if (given !== undefined && stamp !== given) throw new CommandError(`--stamp: ${files.cert} is of the stamp ${stamp}`, exitCodes.usage);
    return stamp;
  } catch (error) {
    throw error instanceof CommandError ? error : new CommandError(`${inWords(error)}; remove it to have it made anew`);
  }
}

/** Returns the hosts or containers that get a folder. Throws CommandError if there is none. */
function holdersOf(config: ClusterConfig): readonly Holder[] {
  const operator = { role: operatorName as Caller, name: operatorName };
  const composed = composeCluster();
  if (composed !== undefined)
    return composed.processes.map(({ role, name }) => {
      if (!isCaller(role)) throw new CommandError(`STAMP_PROCESSES: ${name} has no role of a stamp`, exitCodes.usage);
      return { name, peers: rolesOfTools.includes(role) ? [{ role, name }, operator] : [{ role, name }] };
    });
  if (config.topology === undefined)
    throw new CommandError(
      "--topology: without one all processes are here, and `stamp certs cluster init` makes their certificates",
      exitCodes.usage,
    );
  const others = Object.entries(readTopology(config.topology).hosts).filter(([name]) => name !== config.host);
  if (others.length === 0) throw new CommandError(`${config.topology} has no other host`, exitCodes.usage);
  return others.map(([name, host]) => ({ name, peers: [operator, ...processesOf(host)] }));
}
