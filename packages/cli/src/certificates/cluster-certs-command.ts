/** `stamp certs cluster`: certificates with which the processes of a stamp prove who they are to each other (`tls: "cluster"`). */
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { connect } from "node:tls";
import { operatorName, peerFilesOf, peerFolder, planCluster } from "@stamp/cluster";
import { geoPeerFile, inWords, type PeerFiles, type PeerName, peerUri, readPeerTls } from "@stamp/ports-node";
import { type Caller, callers } from "@stamp/wire";
import type { Command } from "commander";
import { recordOf } from "../cluster/known-record.ts";
import { CommandError, configOf, exitCodes, withConfig } from "../context.ts";
import { toJson } from "../print.ts";
import { withProgress } from "../progress.ts";
import { say, sayRaw } from "../say.ts";
import { oneOf, whole } from "../values.ts";
import type { PemPair } from "./certificates.ts";

const takenWithinMs = 30_000;

export interface IssuedCertificate {
  readonly uri: string;
  readonly cert: string;
  readonly endsAt: string;
}

/** Returns the command `cluster`, for more commands below it. */
export function addClusterCerts(certs: Command): Command {
  const cluster = certs.command("cluster").description('certificates of the processes, for tls: "cluster"');
  const init = cluster
    .command("init")
    .description("make the authority of the stamp, and a certificate for each process and for the operator, as far as they are missing")
    .option("--stamp <name>", "name of the stamp in its certificates (default: made up)")
    .option("--days <n>", "how long they are good for, at most 3650", whole(1, 3_650), "365")
    .option("--json", "for tools")
    .addHelpText("after", "\nExample:\n  stamp certs cluster init && stamp up -d --tls cluster");
  withConfig(init, ["dataDir"]).action(async (_options, command: Command) => {
    const { stamp, days, json } = command.opts<{ stamp?: string; days: string; json?: boolean }>();
    const config = configOf(command);
    const folder = peerFolder(config);
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const name = stampFor(config, stamp);
    const authority = await authorityIn(folder, true);
    const planned = planCluster(config, recordOf(config.dataDir)).processes;
    const issued: IssuedCertificate[] = [];
    for (const each of [{ role: operatorName as Caller, name: operatorName }, ...planned]) {
      const files = peerFilesOf(config, each.name);
      if (!existsSync(files.cert)) issued.push(await issue(files, authority, { ...each, stamp: name } as PeerName, Number(days)));
    }
    tellIssued(json, folder, issued, `Use them: ./stamp up --tls cluster (docs/guides/internal-ports.md)`);
  });
  const one = cluster
    .command("issue")
    .description("make the certificate of one process, for example for another host")
    .requiredOption("--role <role>", `one of ${callers.join(", ")}`, oneOf(callers))
    .requiredOption("--name <name>", "name of the process, for example extent-node-1; with --role geo-peer, of the other stamp")
    .option("--dir <dir>", "where it is put, with ca.pem (default: `cluster-certs` in the data folder)")
    .option("--days <n>", "how long it is good for, at most 3650", whole(1, 3_650), "365")
    .option("--json", "for tools")
    .addHelpText("after", "\nExample:\n  stamp certs cluster issue --role extent-node --name extent-node-5 --dir /tmp/for-host-b");
  withConfig(one, ["dataDir"]).action(async (_options, command: Command) => {
    const { role, name, dir, days, json } = command.opts<{ role: Caller; name: string; dir?: string; days: string; json?: boolean }>();
    if (role === "geo-peer" && dir === undefined)
      throw new CommandError("--role geo-peer needs --dir: the certificate is for another stamp (docs/guides/geo.md)", exitCodes.usage);
    const config = configOf(command);
    const stamp = stampIn(config);
    if (stamp === undefined) throw new CommandError("there is no authority here yet: ./stamp certs cluster init", exitCodes.usage);
    const authority = await authorityIn(peerFolder(config), false);
    const folder = dir === undefined ? peerFolder(config) : resolve(dir);
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const file = role === "geo-peer" ? geoPeerFile : name;
    const files = { cert: join(folder, `${file}.pem`), key: join(folder, `${file}-key.pem`), ca: join(folder, "ca.pem") };
    if (dir !== undefined) put(files.ca, authority.certificate, 0o644);
    tellIssued(json, folder, [await issue(files, authority, { stamp, role, name }, Number(days))], "Processes take it within a second.");
  });
  addRotate(cluster);
  return cluster;
}

function addRotate(cluster: Command): void {
  const rotate = cluster
    .command("rotate")
    .description("make a new certificate and key for each process here, and wait until those that run use them; none is restarted")
    .option("--days <n>", "how long they are good for, at most 3650", whole(1, 3_650), "365")
    .option("--json", "for tools")
    .addHelpText("after", "\nExample:\n  stamp certs cluster rotate --days 90");
  withConfig(rotate, ["dataDir"]).action(async (_options, command: Command) => {
    const { days, json } = command.opts<{ days: string; json?: boolean }>();
    const config = configOf(command);
    const folder = peerFolder(config);
    if (stampIn(config) === undefined) throw new CommandError("there are no certificates here yet: ./stamp certs cluster init");
    const authority = await authorityIn(folder, false);
    const names = readdirSync(folder).flatMap((file) => /^(.+)-key\.pem$/.exec(file)?.[1] ?? []);
    const issued: IssuedCertificate[] = [];
    for (const name of names.filter((each) => each !== "ca").sort()) {
      const files = peerFilesOf(config, name);
      issued.push(await issue(files, authority, ownName(files), Number(days)));
    }
    const { processes } = planCluster(config, recordOf(config.dataDir));
    const about = {
      what: "waiting for the processes",
      afterwards: "The new certificates are in place; processes take them by themselves.",
    };
    await withProgress(about, async (say) => {
      for (const { name, grpc } of processes) {
        say(`waiting for ${name} to use its new certificate`);
        await untilServed(grpc, peerFilesOf(config, name), peerFilesOf(config, operatorName));
      }
    });
    tellIssued(json, folder, issued, "Every process that runs here uses its new certificate.");
  });
}

/** Returns the name of the stamp in the operator's certificate; undefined: there is none. */
function stampIn(config: { readonly dataDir: string }): string | undefined {
  const files = peerFilesOf(config, operatorName);
  return existsSync(files.cert) ? ownName(files).stamp : undefined;
}

/** Returns the stamp's name for new certificates: the given one, that of the certificates here, or a new one. Throws CommandError if they differ. */
export function stampFor(config: { readonly dataDir: string }, given: string | undefined): string {
  const known = stampIn(config);
  if (given !== undefined && known !== undefined && given !== known)
    throw new CommandError(`--stamp: the certificates here are of the stamp ${known}`, exitCodes.usage);
  return given ?? known ?? `stamp-${randomBytes(4).toString("hex")}`;
}

/** Returns the name in a certificate, also in one that has ended: it is rotated all the same. */
function ownName(files: PeerFiles): PeerName {
  try {
    return readPeerTls(files, 0).own;
  } catch (error) {
    throw new CommandError(inWords(error));
  }
}

/** Reads the authority of a folder; `make`: makes it if there is none. */
export async function authorityIn(folder: string, make: boolean): Promise<PemPair> {
  const [cert, key] = [join(folder, "ca.pem"), join(folder, "ca-key.pem")];
  if (existsSync(key)) return { certificate: readFileSync(cert, "utf8"), key: readFileSync(key, "utf8") };
  if (!make || existsSync(cert)) throw new CommandError(`the key of the authority is not here: ${key}`);
  // Only here: what makes certificates is large, and every other command starts without it.
  const { makeAuthority } = await import("./certificates.ts");
  const made = await makeAuthority("Stamp cluster authority", Date.now());
  put(key, made.key, 0o600);
  put(cert, made.certificate, 0o644);
  return made;
}

/** Makes the key and the certificate of one process. */
export async function issue(files: PeerFiles, authority: PemPair, name: PeerName, days: number): Promise<IssuedCertificate> {
  const { makePeerCertificate } = await import("./certificates.ts");
  let pair: PemPair;
  try {
    pair = await makePeerCertificate(authority, name, Date.now(), days);
  } catch (error) {
    throw new CommandError(inWords(error), exitCodes.usage);
  }
  // A process that reads in between finds a key that is not the certificate's, keeps what it has, and reads again.
  put(files.key, pair.key, 0o600);
  put(files.cert, pair.certificate, 0o644);
  return { uri: peerUri(name), cert: files.cert, endsAt: new Date(readPeerTls(files).endsAtMs).toISOString() };
}

/** Writes a file, whole or not at all. */
export function put(path: string, text: string, mode: number): void {
  writeFileSync(`${path}.new`, text, { mode, flush: true });
  renameSync(`${path}.new`, path);
}

/** Resolves at once if nothing listens there: a process reads its files when it starts. */
async function untilServed(address: string, files: PeerFiles, operator: PeerFiles): Promise<void> {
  const wanted = readPeerTls(files).pem.cert.replaceAll(/\s/g, "");
  const endMs = performance.now() + takenWithinMs;
  for (;;) {
    const served = await servedAt(address, operator);
    if (served === undefined || wanted === served) return;
    if (performance.now() >= endMs) throw new CommandError(`${address} does not use ${files.cert} yet: ./stamp logs --level error`);
    await new Promise((resolve) => setTimeout(resolve, 300));
  }
}

/** Returns the certificate that a process shows, as PEM without white space; empty: no TLS; undefined: nothing listens. */
function servedAt(address: string, operator: PeerFiles): Promise<string | undefined> {
  const { context } = readPeerTls(operator);
  const at = address.lastIndexOf(":");
  const host = address.slice(0, at).replaceAll(/[[\]]/g, "");
  return new Promise((resolve) => {
    const socket = connect({ host, port: Number(address.slice(at + 1)), secureContext: context, checkServerIdentity: () => undefined });
    socket.setTimeout(5_000, () => socket.destroy(new Error("timeout")));
    socket.once("secureConnect", () => {
      resolve(socket.getPeerX509Certificate()?.toString().replaceAll(/\s/g, "") ?? "");
      socket.destroy();
    });
    socket.once("error", (error: NodeJS.ErrnoException) => resolve(error.code === "ECONNREFUSED" ? undefined : ""));
  });
}

export function tellIssued(json: boolean | undefined, folder: string, issued: readonly IssuedCertificate[], then: string): void {
  if (json === true) {
    sayRaw(toJson({ folder, issued }));
    return;
  }
  const lines = issued.map(({ uri, endsAt }) => `  ${uri}, until ${endsAt.slice(0, 10)}`);
  say([`certificates  ${folder}`, ...(lines.length === 0 ? ["  nothing was missing"] : lines), then].join("\n"));
}
