/** Operations on accounts and what they answer: the same as in proto/stamp/v1/objects.proto. */
export interface Account {
  readonly name: string;
  /** Base64. */
  readonly keys: readonly string[];
  /** From which user delegation keys are derived; empty until the first is asked for. */
  readonly delegationSecret: Uint8Array;
  /** By service (blob, queue, table), as @stamp/azure-rest writes them; absent: the defaults. */
  readonly serviceProperties: Readonly<Record<string, string>>;
  /** Of the keys that the configuration said last; empty when it was not made by one. */
  readonly configuredDigest: Uint8Array;
  /** In order of their names. */
  readonly encryptionScopes: readonly EncryptionScope[];
  readonly createdMs: number;
}

/** A key of the stamp, by whose name blobs of an account are encrypted. */
export interface EncryptionScope {
  readonly name: string;
  /** 32 random bytes. Never replaced: what was written under it could not be read any more. */
  readonly key: Uint8Array;
  /** Nothing is read or written under it. */
  readonly disabled: boolean;
}

/** What is undefined stays; what is expected must be so. Properties of services are replaced service by service. */
export interface ChangeAccount {
  readonly account: string;
  readonly keys?: readonly string[] | undefined;
  readonly delegationSecret?: Uint8Array | undefined;
  readonly configuredDigest?: Uint8Array | undefined;
  readonly serviceProperties: Readonly<Record<string, string>>;
  /** Added if the account has none of this name; else that one stays as it is. */
  readonly newEncryptionScope?: EncryptionScope | undefined;
  readonly encryptionScopeState?: Omit<EncryptionScope, "key"> | undefined;
  readonly expected: {
    readonly keys?: readonly string[] | undefined;
    readonly delegationSecret?: Uint8Array | undefined;
    readonly configuredDigest?: Uint8Array | undefined;
    readonly serviceProperties: Readonly<Record<string, string>>;
  };
}

export interface ListAccounts {
  /** The first name of the page; empty for the start. */
  readonly marker: string;
  readonly maxResults: number;
}
