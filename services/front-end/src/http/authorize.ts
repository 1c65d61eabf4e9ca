/** Who asks: SharedKey and SharedKeyLite by the keys of the account, or nobody. */
import {
  checkSignature,
  type HttpHeaders,
  notImplemented,
  type Parsed,
  parseAuthorization,
  parsed,
  rejected,
  type Target,
  unknownAccount,
} from "@stamp/azure-rest";
import type { World } from "@stamp/ports";
import type { Accounts } from "../accounts.ts";
import { restErrorOf } from "../failures.ts";
import type { CallLimits } from "../router.ts";

export interface ToAuthorize {
  readonly method: string;
  readonly headers: HttpHeaders;
  readonly target: Target;
  readonly version: string;
}

export async function authorize(
  world: World,
  accounts: Accounts,
  request: ToAuthorize,
  limits: CallLimits,
): Promise<Parsed<{ readonly anonymous: boolean }>> {
  const header = request.headers.authorization;
  if (header !== undefined && /^bearer\s/i.test(header)) return notImplemented("Bearer tokens (Microsoft Entra ID, OIDC)");
  const { target } = request;
  const found = await accounts.find(target.account, limits);
  if (!found) return rejected("ServerBusy");
  if (!found.ok) return { ok: false, error: restErrorOf(found.failure) };
  if (found.value.kind === "unknown") return unknownAccount(target.account);
  if (header === undefined) {
    if (target.query.has("sig")) return notImplemented("Shared Access Signatures");
    return parsed({ anonymous: true });
  }
  const authorization = parseAuthorization(header);
  if (!authorization.ok) return authorization;
  const { keys, refusedWellKnown } = found.value;
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
  if (checked.ok) return parsed({ anonymous: false });
  if (keys.length > 0 || !refusedWellKnown) return checked;
  return rejected("AuthenticationFailed", {
    AuthenticationErrorDetail:
      "The well-known key of devstoreaccount1 is refused where others than this machine can connect. Configure an account of your own, " +
      "or set allowDevelopmentAccount.",
  });
}

export const noAuthentication = (operation: string): Parsed<never> =>
  rejected(
    "NoAuthenticationInformation",
    { AuthenticationErrorDetail: `${operation} needs an Authorization header.` },
    {
      headers: { "WWW-Authenticate": "SharedKey" },
    },
  );
