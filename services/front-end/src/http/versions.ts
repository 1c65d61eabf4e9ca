/**
 * Version of the service that a request is served in: the one that it names in `x-ms-version`, in `api-version` or by its SAS (`sv`), or
 * else a default. What no version of the service is refused. A newer one than we know is served as the newest, and logged once.
 */
import {
  badQuery,
  type HttpHeaders,
  hasSas,
  isNewer,
  isVersion,
  newestVersion,
  type Parsed,
  parsed,
  parseVersion,
  type Query,
  queryValue,
  type ServiceName,
  unversioned,
} from "@stamp/azure-rest";
import type { Logger } from "@stamp/ports";

/** Versions that are logged, each once; clients can name any number of them. */
const loggedMax = 32;

export interface RequestVersionsOptions {
  readonly service: ServiceName;
  /** Whether versions that are newer than we know are refused. */
  readonly strict: boolean;
  readonly logger: Logger;
}

export class RequestVersions {
  readonly #options: RequestVersionsOptions;
  readonly #logged = new Set<string>();

  constructor(options: RequestVersionsOptions) {
    this.#options = options;
  }

  /** Returns the version; `fallback`: the account's DefaultServiceVersion, undefined if it has none. */
  of(headers: HttpHeaders, query: Query, fallback: string | undefined): Parsed<string> {
    const named = headers["x-ms-version"];
    if (named !== undefined) return this.#newestOf(named, parseVersion(named, this.#options.strict));
    const api = queryValue(query, "api-version") ?? "";
    if (api !== "") {
      if (!isVersion(api) || (this.#options.strict && isNewer(api))) return badQuery("api-version", api, "Not a version of the service.");
      return this.#newestOf(api, parseVersion(api));
    }
    // A signature with an sv that is no version is refused when it is read.
    const signed = hasSas(query) ? (queryValue(query, "sv") ?? "") : "";
    if (isVersion(signed)) return this.#newestOf(signed, parseVersion(signed));
    if (fallback !== undefined) return parsed(isNewer(fallback) ? newestVersion : fallback);
    return parsed(this.#options.service === "blob" && !isByKey(headers) ? unversioned : newestVersion);
  }

  #newestOf(named: string, version: Parsed<string>): Parsed<string> {
    if (version.ok && isNewer(named) && !this.#logged.has(named) && this.#logged.size < loggedMax) {
      this.#logged.add(named);
      const { service, logger } = this.#options;
      logger.info("requests of a newer version of the service are served as the newest known one", {
        service,
        version: named,
        servedAs: version.value,
      });
    }
    return version;
  }
}

/**
 * True for a request that is signed with an account's key. The reference asks it to name its version; what the service does when it names
 * none is not known, and it is served in the newest one.
 */
function isByKey({ authorization }: HttpHeaders): boolean {
  return authorization !== undefined && !/^bearer\s/i.test(authorization);
}
