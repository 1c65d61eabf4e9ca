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
    claims: { subject: "who", tenant: "tenant", roles: ["a", "b"], groups: [] },
  });
  assert.deepEqual(await tokens.verify(await elliptic.token({ sub: "s", roles: "x y" })), {
    kind: "valid",
    claims: { subject: "s", tenant: "", roles: ["x", "y"], groups: [] },
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

test("oidc: documents of an issuer are given up when they are too long, while they are read", async (t) => {
  const known = await signer("1");
  for (const endless of ["openid-configuration", "keys"]) {
    let base = "";
    let sentBytes = 0;
    const chunk = new Uint8Array(64 * 1024).fill(0x20);
    async function* spaces() {
      for (; sentBytes < 256 * 1024 * 1024; sentBytes += chunk.length) yield chunk;
    }
    const listener = await serveHttp(
      async ({ target }) => {
        const headers = { "Content-Type": "application/json" };
        if (target.endsWith(endless)) return { status: 200, headers, body: spaces() };
        return { status: 200, headers, body: Buffer.from(JSON.stringify({ issuer: base, jwks_uri: `${base}/keys` })) };
      },
      { listen: "127.0.0.1:0" },
    );
    t.after(() => listener.close(0));
    base = `http://${listener.address}`;
    const check = await oidcIssuer({ ...options, issuer: base }).verify(await known.token({ sub: "s" }, { iss: base }));
    assert.match(reason(check), /^unavailable: .*more than 1048576 bytes/, endless);
    assert.ok(sentBytes < 64 * 1024 * 1024, `${sentBytes} bytes were sent`);
  }
});

test("oidc: documents of an issuer elsewhere come over HTTPS, unless the configuration says otherwise", async () => {
  const known = await signer("1");
  const asked: string[] = [];
  const verify = async (issuer: string, keys: string, more: Partial<OidcOptions> = {}): Promise<string> => {
    asked.length = 0;
    const fetched = async (url: string | URL | Request): Promise<Response> => {
      asked.push(String(url));
      return Response.json(String(url).endsWith("/keys") ? { keys: [known.jwk] } : { issuer, jwks_uri: keys });
    };
    const check = await oidcIssuer({ ...options, issuer, fetch: fetched, ...more }).verify(
      await known.token({ sub: "s" }, { iss: issuer }),
    );
    return reason(check);
  };
  const [secure, plain] = ["https://issuer.example", "http://issuer.example"];
  assert.equal(await verify(secure, `${secure}/keys`), "valid");
  assert.match(await verify(plain, `${plain}/keys`), /^unavailable: .*not HTTPS.*oidcPlainHttp/);
  assert.deepEqual(asked, []);
  assert.match(await verify(secure, `${plain}/keys`), /^unavailable: .*not HTTPS/);
  assert.deepEqual(asked, [`${secure}/.well-known/openid-configuration`]);
  assert.match(await verify(secure, "", { jwks: `${plain}/keys` }), /^unavailable: .*not HTTPS/);
  assert.match(await verify("http://127.0.0.1.example", "http://127.0.0.1.example/keys"), /^unavailable: .*not HTTPS/);
  assert.equal(await verify(plain, `${plain}/keys`, { plainHttp: true }), "valid");
  assert.equal(await verify("http://localhost:8080", "http://127.0.0.1:8080/keys"), "valid");
});
