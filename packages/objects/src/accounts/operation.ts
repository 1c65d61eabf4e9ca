/** Operations on accounts and their answers, as in proto/stamp/v1/objects.proto. */
export interface Account {
  readonly name: string;
  /** Account keys, in base64. */
  readonly keys: readonly string[];
  /** Secret from which user delegation keys are derived. Empty until a client asks for the first key. */
  readonly delegationSecret: Uint8Array;
  /** Service properties by service (blob, queue, table), as @stamp/azure-rest writes them; absent: the defaults. */
  readonly serviceProperties: Readonly<Record<string, string>>;
  /**
   * Digest of the keys that the configuration had at the last start. Empty if the configuration did not create the
   * account.
   */
  readonly configuredDigest: Uint8Array;
  /** Encryption scopes in the order of their names. */
  readonly encryptionScopes: readonly EncryptionScope[];
  readonly createdMs: number;
  /** Role of the account at this stamp, as @stamp/geo writes it. Empty: the stamp is primary and has no second one. */
  readonly geoRole: string;
  /** Id of the master key that sealed the secrets in the row, in answers; undefined: they are not sealed. Ignored in requests. */
  readonly sealedBy?: string;
}

/** Settings that an account shares with its copy at another stamp. */
export type AccountSettings = Pick<Account, "keys" | "delegationSecret" | "serviceProperties" | "configuredDigest" | "encryptionScopes">;

/** A key of the stamp, by whose name blobs of an account are encrypted. */
export interface EncryptionScope {
  readonly name: string;
  /** 32 random bytes. Never replaced: what was written under it could not be read any more. */
  readonly key: Uint8Array;
  /** True if nothing may be read or written under the key. */
  readonly disabled: boolean;
}

/** A new account, or other values for one that is there. */
export interface PutAccount {
  readonly account: Account;
  /** True to leave an existing account unchanged. */
  readonly onlyIfAbsent: boolean;
  /**
   * Replaces everything but the time of creation, if the role is still this one. Undefined: replaces the keys only,
   * whatever the role.
   */
  readonly expectedGeoRole?: string | undefined;
  /** Replaces it only if the account has these keys, secrets, properties and scopes, too. Undefined: whatever it has. */
  readonly expectedSettings?: AccountSettings | undefined;
}

/**
 * A change of an account. Undefined fields stay as they are; expected ones must match. Properties of services are
 * replaced service by service.
 */
export interface ChangeAccount {
  readonly account: string;
  readonly keys?: readonly string[] | undefined;
  readonly delegationSecret?: Uint8Array | undefined;
  readonly configuredDigest?: Uint8Array | undefined;
  readonly serviceProperties: Readonly<Record<string, string>>;
  /** Scope that is added if the account has none of this name; else that one stays as it is. */
  readonly newEncryptionScope?: EncryptionScope | undefined;
  readonly encryptionScopeState?: Omit<EncryptionScope, "key"> | undefined;
  readonly geoRole?: string | undefined;
  /** True: refused if properties of services change what only the operator sets. Undefined: they may. */
  readonly keepsOperatorSettings?: boolean;
  readonly expected: {
    readonly keys?: readonly string[] | undefined;
    readonly delegationSecret?: Uint8Array | undefined;
    readonly configuredDigest?: Uint8Array | undefined;
    readonly serviceProperties: Readonly<Record<string, string>>;
    readonly geoRole?: string | undefined;
  };
}

export interface ListAccounts {
  /** The first name of the page; empty for the start. */
  readonly marker: string;
  readonly maxResults: number;
}
