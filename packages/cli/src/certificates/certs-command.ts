/** `stamp certs`: a private certificate authority and a certificate for the REST doors. */
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { isIP } from "node:net";
import { join, resolve } from "node:path";
import type { Command } from "commander";
import { configOf, withConfig } from "../context.ts";
import { say } from "../say.ts";
import { topLevel } from "../top-level.ts";
import { kindOf, whole } from "../values.ts";
import type { PemPair } from "./certificates.ts";
import { addClusterCerts } from "./cluster-certs-command.ts";
import { addFolders } from "./folders.ts";

const hostName = /^(?=.{1,253}$)[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$/i;
const hostKind = kindOf("a.example", (text) => (isIP(text) !== 0 || hostName.test(text) ? undefined : "a host name or an address"));

export function addCerts(program: Command): void {
  const certs = topLevel(program, "certs");
  const init = certs
    .command("init")
    .description("make a certificate for the REST doors, and the private authority that signs it when there is none yet")
    .option("--dir <dir>", "where they are put (default: `certs` in the data folder)")
    .option("--host <name...>", "further names and addresses under which clients reach this stamp", hostKind as never)
    .option("--days <n>", "how long the certificate is good for, at most 397", whole(1, 397), "397");
  addFolders(addClusterCerts(certs));
  withConfig(init, ["dataDir"]).action(async (_options, command: Command) => {
    const { dir, host, days } = command.opts<{ dir?: string; host?: string[]; days: string }>();
    const folder = dir === undefined ? join(configOf(command).dataDir, "certs") : resolve(dir);
    await initCerts(folder, host ?? [], Number(days));
  });
}

async function initCerts(folder: string, hosts: readonly string[], days: number): Promise<void> {
  // Only here: what makes certificates is large, and every other command starts without it.
  const { certificateHosts, makeAuthority, makeServerCertificate } = await import("./certificates.ts");
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const at = (name: string): string => join(folder, name);
  const authority = await authorityIn(at, makeAuthority);
  const names = certificateHosts(hosts);
  writePair(at, "server", await makeServerCertificate(authority, names, Date.now(), days));
  say(`certificate  ${at("server.pem")}
key          ${at("server-key.pem")}
authority    ${at("ca.pem")}
names        ${names.join(", ")}

Serve HTTPS:       ./stamp up --tls-cert ${at("server.pem")} --tls-key ${at("server-key.pem")}
Clients trust it:  NODE_EXTRA_CA_CERTS=${at("ca.pem")} (Node), REQUESTS_CA_BUNDLE=${at("ca.pem")} (Python), SSL_CERT_FILE=${at("ca.pem")} (Go)
Run it again before the certificate ends, or for other names: the doors take the new one by themselves.`);
}

async function authorityIn(
  at: (name: string) => string,
  makeAuthority: (name: string, nowMs: number) => Promise<PemPair>,
): Promise<PemPair> {
  if (existsSync(at("ca.pem")) && existsSync(at("ca-key.pem"))) {
    return { certificate: readFileSync(at("ca.pem"), "utf8"), key: readFileSync(at("ca-key.pem"), "utf8") };
  }
  const authority = await makeAuthority("Stamp private authority", Date.now());
  writePair(at, "ca", authority);
  return authority;
}

/** Writes the key, then the certificate, each in one step: a reader finds whole files. */
function writePair(at: (name: string) => string, name: string, pair: PemPair): void {
  for (const [file, text, mode] of [
    [`${name}-key.pem`, pair.key, 0o600],
    [`${name}.pem`, pair.certificate, 0o644],
  ] as const) {
    writeFileSync(at(`${file}.new`), text, { mode });
    renameSync(at(`${file}.new`), at(file));
  }
}
