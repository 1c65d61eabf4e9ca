/**
 * Authentication (`authenticate`: who asks) and authorization (`authorize`: whether the caller may): the one place
 * where requests of every service are let in.
 */
import {
  type BearerRole,
  behavesAs,
  canonicalId,
  checkSasOperation,
  checkSasSignature,
  checkSasUse,
  checkSignature,
  delegationKeysOf,
  type HttpHeaders,
  hasSas,
  type Identity,
  lettersThatCount,
  mayAs,
  type OperationAuthorization,
  type Parsed,
  parseAuthorization,
  parsed,
  parseSas,
  refuseSecondary,
  rejected,
  responseOverrides,
  roleOfLetter,
  type Sas,
  type SasTerms,
  type SharedKeyAuthorization,
  type SignedIdentifier,
  type SignedResource,
  type SigningKeys,
  superuserId,
  type Target,
  termsOf,
  unknownAccount,
} from "@stamp/azure-rest";
import type { World } from "@stamp/ports";
import type { AccountKeys, Accounts } from "../accounts/accounts.ts";
import type { Endpoint } from "../geo/account-here.ts";
import { restErrorOf } from "../objects/failures.ts";
import type { CallLimits } from "../routing/router.ts";
import { type Bearer, type BearerTokens, challenge, checkBearer, claimsOf } from "./bearer.ts";
import type { Access } from "./exchange.ts";
import type { RestService } from "./service.ts";

export interface ToAuthorize {
  readonly method: string;
  readonly headers: HttpHeaders;
  readonly target: Target;
  /** Target as the client wrote it, before it was marked as the name of an older blob (older-names.ts). */
  readonly asked: Target;
  readonly version: string;
  readonly remoteAddress: string;
  readonly secure: boolean;
  /** True if the well-known key counts for the request (peers/well-known-key.ts). */
  readonly wellKnown: boolean;
}

export interface Judges {
  readonly world: World;
  readonly accounts: Accounts;
  readonly service: RestService;
  readonly tokens: BearerTokens | undefined;
  /** Called for each request whose date and signature by a key fit. */
  readonly signedRequest: () => void;
  /** Returns the stored access policies of what a SAS is for. */
  readonly policies: (account: string, resource: SignedResource, limits: CallLimits) => Promise<Parsed<readonly SignedIdentifier[]>>;
}

/** Whoever asks; what it may do is not looked at yet. */
export type RequestCaller =
  | { readonly by: "anonymous" }
  | { readonly by: "key" }
  | { readonly by: "sas"; readonly sas: Sas; readonly terms: SasTerms; readonly delegatedBy: BearerRole | undefined }
  | { readonly by: "bearer"; readonly bearer: Bearer };

export async function findAccount(
  accounts: Accounts,
  { account: name, secondary }: Endpoint,
  limits: CallLimits,
): Promise<Parsed<AccountKeys>> {
  const found = await accounts.find(name, limits);
  if (!found) return rejected("ServerBusy");
  if (!found.ok) return { ok: false, error: restErrorOf(found.failure) };
  if (found.value.kind !== "unknown") return parsed(found.value);
  return secondary ? refuseSecondary(name) : unknownAccount(name);
}

/**
 * Returns who asks. A refusal shows the string to sign, and so the name of the blob. It shows the name that the path has for everybody, so
 * that a made-up signature does not tell a stranger that an older blob exists.
 */
export async function authenticate(
  judges: Judges,
  account: AccountKeys,
  request: ToAuthorize,
  limits: CallLimits,
): Promise<Parsed<RequestCaller>> {
  const asker = await askerOf(judges, account, request, limits);
  if (asker.ok || request.asked === request.target) return asker;
  const stranger = await askerOf(judges, account, { ...request, target: request.asked }, limits);
  return stranger.ok ? asker : stranger;
}

async function askerOf(judges: Judges, account: AccountKeys, request: ToAuthorize, limits: CallLimits): Promise<Parsed<RequestCaller>> {
  const header = request.headers.authorization;
  const bearer = header !== undefined && /^bearer\s/i.test(header) ? header : undefined;
  if (header === undefined || (bearer !== undefined && hasSas(request.target.query))) {
    return hasSas(request.target.query) ? bySas(judges, account, request, bearer, limits) : parsed({ by: "anonymous" });
  }
  if (bearer !== undefined) {
    if (!behavesAs(request.version, "bearer")) {
      return rejected("AuthenticationFailed", {
        AuthenticationErrorDetail: "Authentication scheme Bearer is not supported in this version.",
      });
    }
    const checked = await checkBearer(judges.tokens, bearer, judges.service.name);
    return checked.ok ? parsed({ by: "bearer", bearer: checked.value }) : checked;
  }
  const authorization = parseAuthorization(header);
  if (!authorization.ok) return authorization;
  const checked = await withKeys(judges, account, request, limits, (keys) => bySharedKey(judges, keys, authorization.value, request));
  if (!checked.ok) return checked;
  judges.signedRequest();
  return parsed({ by: "key" });
}

/** Runs with the account's keys, and once more after a new read: a key rotated a moment ago may be unknown here. */
async function withKeys<T>(
  judges: Judges,
  account: AccountKeys,
  { target }: ToAuthorize,
  limits: CallLimits,
  check: (account: AccountKeys) => Parsed<T>,
): Promise<Parsed<T>> {
  const first = check(account);
  if (first.ok || first.error.code !== "AuthenticationFailed") return first;
  const fresh = await judges.accounts.findAgain(target.account, limits);
  if (fresh?.ok && fresh.value.kind === "known") return check(fresh.value);
  return first;
}

function bySharedKey(
  { world, service }: Judges,
  account: AccountKeys,
  authorization: SharedKeyAuthorization,
  request: ToAuthorize,
): Parsed<void> {
  const { target } = request;
  const checked = checkSignature({
    parts: {
      service: service.name,
      method: request.method,
      account: target.account,
      rawPath: target.rawPath,
      query: target.query,
      headers: request.headers,
      version: request.version,
    },
    authorization,
    keys: keysFor(account, request),
    nowMs: world.clock.wallMs(),
    ...digestsOf(world),
  });
  const leftOut = account.refusedWellKnown || (!request.wellKnown && account.wellKnownKeys.length > 0);
  if (checked.ok || account.keys.length > 0 || !leftOut) return checked;
  return rejected("AuthenticationFailed", {
    AuthenticationErrorDetail:
      "The well-known key of devstoreaccount1 is refused where others than this machine can connect, behind a proxy, and once accounts are " +
      "configured. Use an account of your own, or set allowDevelopmentAccount. With that, the host of the request must be an address, a name " +
      "that no stranger can own (localhost, a name without a dot), or one of developmentAccountHosts.",
  });
}

async function bySas(
  judges: Judges,
  account: AccountKeys,
  request: ToAuthorize,
  bearer: string | undefined,
  limits: CallLimits,
): Promise<Parsed<RequestCaller>> {
  const sas = parseSas(request.target.query);
  if (!sas.ok) return sas;
  const resource = judges.service.resource(request.target, request.headers);
  if (!resource.ok) return resource;
  const { target, headers, remoteAddress, secure } = request;
  const signed = { service: judges.service.name, account: target.account, resource: resource.value, query: target.query, headers };
  const signedBy = await withKeys(judges, account, request, limits, (held) =>
    checkSasSignature(sas.value, signed, signingKeys(judges.world, keysFor(held, request), held.delegationSecret, sas.value)),
  );
  if (!signedBy.ok) return signedBy;
  const policies = sas.value.identifier === "" ? parsed([]) : await judges.policies(target.account, resource.value, limits);
  if (!policies.ok) return policies;
  const terms = termsOf(sas.value, policies.value);
  if (!terms.ok) return terms;
  const use = { service: judges.service.name, remoteAddress, secure, nowMs: judges.world.clock.wallMs() };
  const good = checkSasUse(sas.value, terms.value, use);
  if (!good.ok) return good;
  const user = await checkDelegatedUser(judges, sas.value, bearer);
  if (!user.ok) return user;
  return parsed({ by: "sas", sas: sas.value, terms: terms.value, delegatedBy: signedBy.value });
}

/** Checks the user of a SAS for one user, who needs a token as well. A token beside any other SAS says nothing. */
async function checkDelegatedUser({ tokens }: Judges, { fields }: Sas, bearer: string | undefined): Promise<Parsed<void>> {
  const refused = (detail: string): Parsed<void> => rejected("AuthenticationFailed", { AuthenticationErrorDetail: detail });
  if (fields.sduoid === "") {
    return bearer === undefined ? parsed(undefined) : refused("The request has both a bearer token and a shared access signature.");
  }
  if (bearer === undefined) return refused("The shared access signature is for one user: the request needs a bearer token of that user.");
  const claims = await claimsOf(tokens, bearer);
  if (!claims.ok) return claims;
  const { subject, tenant: tenantId } = claims.value;
  if (subject !== fields.sduoid) return refused("The bearer token is not of the user that the shared access signature is for.");
  const tenant = fields.skdutid === "" ? fields.sktid : fields.skdutid;
  return tenant === tenantId
    ? parsed(undefined)
    : refused("The bearer token is of another tenant than the shared access signature is for.");
}

const digestsOf = ({ digest }: World) => ({
  hmacSha256: (key: Uint8Array, message: Uint8Array) => digest.hmacSha256(key, message),
  equal: (a: Uint8Array, b: Uint8Array) => digest.equal(a, b),
});

/** Returns the account's keys that are good for this request. */
const keysFor = ({ keys, wellKnownKeys }: AccountKeys, { wellKnown }: ToAuthorize): readonly Uint8Array[] =>
  wellKnown && wellKnownKeys.length > 0 ? [...keys, ...wellKnownKeys] : keys;

function signingKeys(
  world: World,
  keys: readonly Uint8Array[],
  delegationSecret: Uint8Array,
  sas: Sas,
): SigningKeys<BearerRole | undefined> {
  const digests = digestsOf(world);
  if (sas.kind !== "delegation") return { keys: keys.map((key) => ({ key, is: undefined })), ...digests };
  return { keys: delegationSecret.length === 0 ? [] : delegationKeysOf(delegationSecret, sas.fields, digests.hmacSha256), ...digests };
}

export interface AuthorizationInput {
  readonly asker: RequestCaller;
  readonly service: RestService["name"];
  readonly account: AccountKeys;
  /** Issuer of bearer tokens, for the challenge to callers without authorization. */
  readonly tokens: BearerTokens | undefined;
}

/** Decides if the caller may do the operation, and returns what the request then carries. */
export function authorize(asked: AuthorizationInput, operation: string, needs: OperationAuthorization): Parsed<Access> {
  const enough = suffices(asked, operation, needs);
  if (!enough.ok) return enough;
  const { asker, service } = asked;
  const allows: Access["allows"] = (name, other) => suffices(asked, name, other);
  switch (asker.by) {
    case "key":
      return parsed({ by: "key", may: () => true, allows });
    case "anonymous":
      return parsed({ by: "anonymous", may: () => false, allows, publicFor: needs.anonymous });
    case "bearer": {
      const { bearer } = asker;
      const mayBy = (role: BearerRole) => bearer.role !== undefined && mayAs(bearer.role, role);
      const judged = mayBy(needs.role) ? undefined : identityOf(bearer.objectId, bearer.groups);
      return parsed({
        by: "bearer",
        may: (letter) => judged !== undefined || mayBy(roleOfLetter(letter)),
        allows,
        bearer,
        ownerId: canonicalId(bearer.objectId),
        ...(judged && { judged }),
      });
    }
    case "sas": {
      const { sas, terms, delegatedBy } = asker;
      const letters = lettersThatCount(sas.version, terms.permissions);
      const overrides = responseOverrides(sas, service);
      if (!overrides.ok) return overrides;
      return parsed({
        by: "sas",
        may: (letter) => letters.includes(letter) && (delegatedBy === undefined || mayAs(delegatedBy, roleOfLetter(letter))),
        allows,
        overrides: overrides.value,
        ...actingFor(sas),
        ...(sas.fields.ses === "" ? {} : { encryptionScope: sas.fields.ses }),
        ...(sas.fields.tn === "" ? {} : { entityRange: entityRangeOf(sas) }),
      });
    }
  }
}

function suffices({ asker, account, tokens }: AuthorizationInput, operation: string, needs: OperationAuthorization): Parsed<void> {
  switch (asker.by) {
    case "key":
      return parsed(undefined);
    case "anonymous":
      if (needs.anonymous === undefined) return noAuthentication(operation, tokens);
      return account.publicAccessForbidden ? rejected("PublicAccessNotPermitted") : parsed(undefined);
    case "bearer": {
      const { role, hadRoles } = asker.bearer;
      if (role !== undefined && mayAs(role, needs.role)) return parsed(undefined);
      if (needs.byLists === true && account.serviceProperties.blob.hierarchicalNamespace) return parsed(undefined);
      if (role !== undefined) return rejected("AuthorizationPermissionMismatch");
      return rejected("AuthorizationFailure", { AuthenticationErrorDetail: `None of the token's roles is a role here: ${hadRoles}.` });
    }
    case "sas": {
      const { sas, terms, delegatedBy } = asker;
      const enough = checkSasOperation(sas, terms, needs);
      if (!enough.ok) return enough;
      const { sr, suoid } = sas.fields;
      const isOfPaths = sr === "d" || suoid !== "";
      if (isOfPaths && !account.serviceProperties.blob.hierarchicalNamespace) return notOfPaths;
      // Lists judge the user that the signature names, and don't decide about this operation.
      if (suoid !== "" && needs.byLists !== true) return rejected("AuthorizationPermissionMismatch");
      // Whoever made the key can't hand on more than it may itself.
      const handedOn = delegatedBy === undefined || mayAs(delegatedBy, needs.role);
      return handedOn ? parsed(undefined) : rejected("AuthorizationPermissionMismatch");
    }
  }
}

/** The superuser's id is nobody's: whoever has it in a token or a signature owns nothing by it. */
export const identityOf = (id: string, groups: readonly string[]): Identity => ({
  id: id === superuserId ? "" : canonicalId(id),
  groups: new Set(groups.filter((group) => group !== superuserId).map(canonicalId)),
  superuser: false,
});

/** Returns who acts. `saoid`: the maker of the signature has checked the user. `suoid`: lists judge the user, who owns what is made. */
function actingFor({ fields: { saoid, suoid } }: Sas): Pick<Access, "judged" | "ownerId"> {
  if (suoid !== "") return { judged: identityOf(suoid, []), ownerId: canonicalId(suoid) };
  return saoid === "" ? {} : { ownerId: canonicalId(saoid) };
}

const notOfPaths = rejected("AuthenticationFailed", {
  AuthenticationErrorDetail: "A shared access signature with sr=d or suoid is for accounts with a hierarchical namespace.",
});

const entityRangeOf = ({ fields }: Sas) => ({
  startPartitionKey: fields.spk,
  startRowKey: fields.srk,
  endPartitionKey: fields.epk,
  endRowKey: fields.erk,
});

const noAuthentication = (operation: string, tokens: BearerTokens | undefined): Parsed<never> =>
  rejected(
    "NoAuthenticationInformation",
    { AuthenticationErrorDetail: `${operation} needs an Authorization header.` },
    { headers: tokens ? challenge(tokens) : { "WWW-Authenticate": "SharedKey" } },
  );
