/**
 * Makes the certificates of a release's processes and keeps them as secrets, one for each role (templates/certificates.yaml runs it before
 * an install or upgrade, and each month). `stamp certs cluster folders` makes them; this brings the secrets there and back.
 *
 *   secret RELEASE-certs-authority   ca.pem, ca-key.pem: no process mounts it
 *   secret PREFIX-ROLE               ca.pem, and NAME.pem, NAME-key.pem of each process of the role
 *
 * Invariants:
 * - An authority and certificates that are there stay, unless a certificate ends within `renewDays`.
 * - The authority is stored before a certificate of it: a job that is killed and begins again goes on under the same one.
 */
import { execFileSync } from "node:child_process";
import { X509Certificate } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const env = process.env;
const renewDays = 60;
const account = env.STAMP_SERVICE_ACCOUNT_DIR ?? "/var/run/secrets/kubernetes.io/serviceaccount";
const api = env.STAMP_KUBERNETES_API ?? `https://${env.KUBERNETES_SERVICE_HOST}:${env.KUBERNETES_SERVICE_PORT}`;
const secrets = `${api}/api/v1/namespaces/${readFileSync(join(account, "namespace"), "utf8")}/secrets`;
const headers = { authorization: `Bearer ${readFileSync(join(account, "token"), "utf8")}`, "content-type": "application/json" };

const work = mkdtempSync(join(env.STAMP_WORK_DIR ?? "/tmp", "certificates-"));
const authorityFolder = join(work, "data", "cluster-certs");
const folders = join(work, "folders");
/** [{role, name}] of STAMP_PROCESSES. */
const processes = env.STAMP_PROCESSES.split(" ").map((each) => {
  const name = each.slice(0, each.indexOf("="));
  return { name, role: name.replace(/-\d+$/, "") };
});

async function call(method, url, body) {
  const answer = await fetch(url, { method, headers, body: body && JSON.stringify(body), signal: AbortSignal.timeout(30_000) });
  if (answer.status === 404) return undefined;
  if (!answer.ok) throw new Error(`${method} ${url}: ${answer.status} ${await answer.text()}`);
  return answer.json();
}

const find = async (name) => call("GET", `${secrets}/${name}`);

/** Creates the secret, or changes the one that was found: `found` names the version that it takes the place of. */
async function keep(name, found, files) {
  const data = Object.fromEntries(Object.entries(files).map(([file, bytes]) => [file, bytes.toString("base64")]));
  const labels = { "app.kubernetes.io/name": "stamp", "app.kubernetes.io/instance": env.STAMP_RELEASE };
  if (found) await call("PUT", `${secrets}/${name}`, { ...found, data });
  else await call("POST", secrets, { apiVersion: "v1", kind: "Secret", type: "Opaque", metadata: { name, labels }, data });
}

function write(folder, secret, wanted) {
  for (const [file, text] of Object.entries(secret?.data ?? {})) {
    if (!wanted(file)) continue;
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    writeFileSync(join(folder, file), Buffer.from(text, "base64"), { mode: 0o600 });
  }
}

const filesOf = (folder) => Object.fromEntries(readdirSync(folder).map((file) => [file, readFileSync(join(folder, file))]));

const makeFolders = (...more) =>
  execFileSync(
    process.execPath,
    [env.STAMP_MAIN ?? "/stamp/stamp.mjs", "certs", "cluster", "folders", "--dir", folders, "--stamp", env.STAMP_RELEASE, ...more],
    { stdio: "inherit", env: { ...env, STAMP_DATA_DIR: join(work, "data") } },
  );

const endsSoon = (pem) => new Date(new X509Certificate(pem).validTo).getTime() < Date.now() + renewDays * 86_400_000;

const authorityName = `${env.STAMP_RELEASE}-certs-authority`;
const authority = await find(authorityName);
write(authorityFolder, authority, () => true);
if (!authority) {
  makeFolders();
  const { "ca.pem": certificate, "ca-key.pem": key } = filesOf(authorityFolder);
  await keep(authorityName, undefined, { "ca.pem": certificate, "ca-key.pem": key });
}
const roles = [...new Set(processes.map(({ role }) => role))];
const held = new Map();
for (const role of roles) held.set(role, await find(`${env.STAMP_CERTS_PREFIX}-${role}`));
for (const { role, name } of processes) {
  const secret = held.get(role);
  const certificate = secret?.data?.[`${name}.pem`];
  if (certificate === undefined || endsSoon(Buffer.from(certificate, "base64"))) continue;
  write(
    join(folders, name),
    secret,
    (file) => file === "ca.pem" || file.startsWith(`${name}.`) || file === `${name}-key.pem` || file.startsWith("operator"),
  );
}
makeFolders();
for (const role of roles) {
  const files = Object.assign({}, ...processes.filter((each) => each.role === role).map(({ name }) => filesOf(join(folders, name))));
  await keep(`${env.STAMP_CERTS_PREFIX}-${role}`, held.get(role), files);
  console.log(`secret ${env.STAMP_CERTS_PREFIX}-${role}: ${Object.keys(files).length} files`);
}
