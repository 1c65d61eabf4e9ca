/** Tokens of an issuer: which count, and what is said of those that don't. Keys from a file, and from a server found by discovery. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { test } from "node:test";
import type { TokenCheck } from "@stamp/ports";
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from "jose";
import { NodeClock } from "../clock.ts";
import { serveHttp } from "../http/http-server.ts";
import { type OidcOptions, oidcIssuer } from "./oidc.ts";

const issuer = "https://issuer.example/tenant";
const audience = "https://storage.azure.com";

async function signer(kid: string, algorithm = "RS256") {
  const { publicKey, privateKey } = await generateKeyPair(algorithm, { extractable: true });
  const jwk = { ...(await exportJWK(publicKey)), kid, alg: algorithm };
  const token = (claims: JWTPayload, more: { expires?: string; iss?: string; aud?: string } = {}): Promise<string> =>
    new SignJWT(claims)
      .setProtectedHeader({ alg: algorithm, kid })
      .setIssuer(more.iss ?? issuer)
      .setAudience(more.aud ?? audience)
      .setExpirationTime(more.expires ?? "5m")
      .sign(privateKey);
  return { jwk, token };
}

const options: OidcOptions = { issuer, audiences: [audience], jwks: "", rolesClaim: "roles", authorizationUri: "", clock: new NodeClock() };
const reason = (check: TokenCheck): string => (check.kind === "valid" ? "valid" : `${check.kind}: ${check.reason}`);

function folder(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), "stamp-oidc-"));
  t.after(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

test("oidc: a token of the issuer tells who and which roles; any other says why not", async (t) => {
  const file = join(folder(t), "jwks.json");
  const [known, elliptic, stranger] = [await signer("1"), await signer("2", "ES256"), await signer("1")];
  writeFileSync(file, JSON.stringify({ keys: [known.jwk, elliptic.jwk] }));
  const tokens = oidcIssuer({ ...options, jwks: file });
  const claims = { oid: "who", tid: "tenant", roles: ["a", "b"] };
  assert.deepEqual(await tokens.verify(await known.token(claims)), {
    kind: "valid",
    claims: { subject: "who", tenant: "tenant", roles: ["a", "b"] },
  });
  assert.deepEqual(await tokens.verify(await elliptic.token({ sub: "s", roles: "x y" })), {
    kind: "valid",
    claims: { subject: "s", tenant: "", roles: ["x", "y"] },
  });
  assert.match(reason(await tokens.verify(await stranger.token(claims))), /^invalid: .*SIGNATURE/);
  assert.match(reason(await tokens.verify(await known.token(claims, { expires: "-5m" }))), /^invalid: .*expired/);
  assert.match(reason(await tokens.verify(await known.token(claims, { iss: "https://other" }))), /^invalid: .*iss/);
  assert.match(reason(await tokens.verify(await known.token(claims, { aud: "other" }))), /^invalid: .*aud/);
  assert.match(reason(await tokens.verify(await known.token({ roles: ["a"] }))), /^invalid: .*whose/);
  for (const noise of ["", "a.b.c", "x".repeat(100)]) assert.match(reason(await tokens.verify(noise)), /^invalid/, noise);
  const unsigned = `${Buffer.from('{"alg":"none"}').toString("base64url")}.${Buffer.from(JSON.stringify({ ...claims, iss: issuer, aud: audience, exp: 9e9 })).toString("base64url")}.`;
  assert.match(reason(await tokens.verify(unsigned)), /^invalid/);
  const secret = new TextEncoder().encode(JSON.stringify(known.jwk).padEnd(64));
  const symmetric = await new SignJWT(claims)
    .setProtectedHeader({ alg: "HS256", kid: "1" })
    .setIssuer(issuer)
    .setAudience(audience)
    .setExpirationTime("5m")
    .sign(secret);
  assert.match(reason(await tokens.verify(symmetric)), /^invalid/);
});

test("oidc: a key file that changes is read again; one that is gone leaves what was known", async (t) => {
  const file = join(folder(t), "jwks.json");
  const tokens = oidcIssuer({ ...options, jwks: file });
  const [first, second] = [await signer("1"), await signer("2")];
  assert.match(reason(await tokens.verify(await first.token({ sub: "s" }))), /^unavailable/);
  writeFileSync(file, JSON.stringify({ keys: [first.jwk] }));
  assert.equal(reason(await tokens.verify(await first.token({ sub: "s" }))), "valid");
  writeFileSync(file, JSON.stringify({ keys: [second.jwk] }));
  utimesSync(file, 1, 1);
  assert.equal(reason(await tokens.verify(await second.token({ sub: "s" }))), "valid");
  assert.match(reason(await tokens.verify(await first.token({ sub: "s" }))), /^invalid/);
  rmSync(file);
  assert.equal(reason(await tokens.verify(await second.token({ sub: "s" }))), "valid");
});

test("oidc: keys found by discovery; an issuer that can't be reached is unavailable, and asked again", async (t) => {
  const known = await signer("1");
  let down = true;
  let base = "";
  const listener = await serveHttp(
    async ({ target }) => {
      if (down) return { status: 500, headers: {} };
      const document = target.endsWith("openid-configuration") ? { issuer: base, jwks_uri: `${base}/keys` } : { keys: [known.jwk] };
      return { status: 200, headers: { "Content-Type": "application/json" }, body: Buffer.from(JSON.stringify(document)) };
    },
    { listen: "127.0.0.1:0" },
  );
  t.after(() => listener.close(0));
  base = `http://${listener.address}`;
  const tokens = oidcIssuer({ ...options, issuer: base });
  assert.match(reason(await tokens.verify(await known.token({ sub: "s" }, { iss: base }))), /^unavailable: .*500/);
  down = false;
  assert.equal(reason(await tokens.verify(await known.token({ sub: "s" }, { iss: base }))), "valid");
});
