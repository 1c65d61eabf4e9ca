/** An issuer of bearer tokens for tests: a key pair, its public half in a file, and tokens of whoever is asked for. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { exportJWK, generateKeyPair, SignJWT } from "jose";

export interface TestIssuer {
  /** Settings of the front-end. */
  readonly settings: {
    readonly oidcIssuer: string;
    readonly oidcJwks: string;
    readonly oidcRoles: Record<string, "read" | "contribute" | "own">;
  };
  token(claims: { oid: string; tid?: string; roles?: string[]; groups?: string[]; audience?: string; expires?: string }): Promise<string>;
  remove(): void;
}

export async function testIssuer(): Promise<TestIssuer> {
  const folder = mkdtempSync(join(tmpdir(), "stamp-issuer-"));
  const { publicKey, privateKey } = await generateKeyPair("ES256", { extractable: true });
  const oidcJwks = join(folder, "jwks.json");
  writeFileSync(oidcJwks, JSON.stringify({ keys: [{ ...(await exportJWK(publicKey)), kid: "1", alg: "ES256" }] }));
  const oidcIssuer = "https://issuer.example/tenant";
  return {
    settings: { oidcIssuer, oidcJwks, oidcRoles: { readers: "read", writers: "contribute", owners: "own" } },
    token: ({ oid, tid = "tenant-1", roles = [], groups = [], audience = "https://storage.azure.com", expires = "5m" }) =>
      new SignJWT({ oid, tid, roles, groups })
        .setProtectedHeader({ alg: "ES256", kid: "1" })
        .setIssuer(oidcIssuer)
        .setAudience(audience)
        .setExpirationTime(expires)
        .sign(privateKey),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}
