/** A server certificate for loopback, of an authority that is made for one test. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { certificates } from "@stamp/cli";

export interface TestCertificate {
  readonly tls: { readonly certificatePath: string; readonly keyPath: string };
  /** Certificate of the authority, in PEM. */
  readonly ca: string;
  remove(): void;
}

export async function testCertificate(): Promise<TestCertificate> {
  const { certificateHosts, makeAuthority, makeServerCertificate } = await certificates();
  const folder = mkdtempSync(join(tmpdir(), "stamp-https-"));
  const authority = await makeAuthority("test", Date.now());
  const pair = await makeServerCertificate(authority, certificateHosts([]), Date.now());
  const tls = { certificatePath: join(folder, "server.pem"), keyPath: join(folder, "server-key.pem") };
  writeFileSync(tls.certificatePath, pair.certificate);
  writeFileSync(tls.keyPath, pair.key);
  return { tls, ca: authority.certificate, remove: () => rmSync(folder, { recursive: true, force: true }) };
}
