/**
 * Who asks (`authenticate`), and whether that is enough for what is asked (`authorize`): the one place where requests of every service
 * are let in.
 */
import {
  checkSignature,
  type HttpHeaders,
  notImplemented,
  type OperationAuthorization,
  type Parsed,
  parseAuthorization,
  parsed,
  rejected,
  type Target,
  unknownAccount,
} from "@stamp/azure-rest";
import type { World } from "@stamp/ports";
import type { AccountKeys, Accounts } from "../accounts.ts";
import { restErrorOf } from "../failures.ts";
import type { CallLimits } from "../router.ts";
import type { Access } from "./exchange.ts";

export interface ToAuthorize {
  readonly method: string;
  readonly headers: HttpHeaders;
  readonly target: Target;
  readonly version: string;
}

/** Whoever asks, and the account that is asked; what it may do is not looked at yet. */
export interface Asker {
  readonly by: Access["by"];
  readonly account: AccountKeys;
}

export async function authenticate(world: World, accounts: Accounts, request: ToAuthorize, limits: CallLimits): Promise<Parsed<Asker>> {
  const header = request.headers.authorization;
  if (header !== undefined && /^bearer\s/i.test(header)) return notImplemented("Bearer tokens (Microsoft Entra ID, OIDC)");
  const { target } = request;
  const found = await accounts.find(target.account, limits);
  if (!found) return rejected("ServerBusy");
  if (!found.ok) return { ok: false, error: restErrorOf(found.failure) };
  const account = found.value;
  if (account.kind === "unknown") return unknownAccount(target.account);
  if (header === undefined || request.method === "OPTIONS") {
    if (target.query.has("sig")) return notImplemented("Shared Access Signatures");
    return parsed({ by: "anonymous", account });
  }
  const authorization = parseAuthorization(header);
  if (!authorization.ok) return authorization;
  const { keys, refusedWellKnown } = account;
  const checked = checkSignature({
    parts: {
      method: request.method,
      account: target.account,
      rawPath: target.rawPath,
      query: target.query,
      headers: request.headers,
      version: request.version,
    },
    authorization: authorization.value,
    keys,
    nowMs: world.clock.wallMs(),
    hmacSha256: (key, message) => world.digest.hmacSha256(key, message),
    equal: (a, b) => world.digest.equal(a, b),
  });
  if (checked.ok) return parsed({ by: "key", account });
  if (keys.length > 0 || !refusedWellKnown) return checked;
  return rejected("AuthenticationFailed", {
    AuthenticationErrorDetail:
      "The well-known key of devstoreaccount1 is refused where others than this machine can connect. Configure an account of your own, " +
      "or set allowDevelopmentAccount.",
  });
}

export function authorize(asker: Asker, operation: string, needs: OperationAuthorization): Parsed<Access> {
  switch (asker.by) {
    case "key":
      return parsed({ by: "key", may: () => true });
    case "anonymous":
      return needs.anonymous === undefined ? noAuthentication(operation) : parsed({ by: "anonymous", may: () => false });
  }
}

const noAuthentication = (operation: string): Parsed<never> =>
  rejected(
    "NoAuthenticationInformation",
    { AuthenticationErrorDetail: `${operation} needs an Authorization header.` },
    {
      headers: { "WWW-Authenticate": "SharedKey" },
    },
  );
