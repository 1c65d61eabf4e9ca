/**
 * Removes secrets from text that leaves the machine. Two ways at once: each secret that this stamp is known to have, in every form in which texts
 * carry it, and every pattern of a secret. If in doubt, text goes: a hash that looks like a key is no loss, a key that stays is.
 */

const gone = "[removed]";

/** Shortest text that counts as a known secret: shorter ones are words of any text. */
const secretCharactersMin = 8;
/** A private key is shorter. */
const pemCharactersMax = 16_384;

/** Names of settings and fields whose values are secrets. */
const secretName =
  /key|secret|token|passw|pwd|passphrase|credential|authorization|cookie|signature|connection_?string|accounts|(^|[_-])sas([_-]|$)|(^|[_-])sig$/i;

/** True if the value under this name is not shown. */
export const isSecretName = (name: string): boolean => secretName.test(name);

type Rule = readonly [RegExp, string];

const rules: readonly Rule[] = [
  // The end may be missing, in a log that is cut.
  [new RegExp(`-----BEGIN [A-Z ]*PRIVATE KEY-----[\\s\\S]{0,${pemCharactersMax}}?(-----END [A-Z ]*PRIVATE KEY-----|$)`, "g"), gone],
  [/(AccountKey|SharedAccessSignature|SharedAccessKey)((?:=|%3D)\s*)[^;\s"'<>]+/gi, `$1$2${gone}`],
  [/([?&;]|%3F|%26|\b)(sig|signature|access_token|id_token|refresh_token|code|st-token)(=|%3D)[^&\s"'<>;\\]+/gi, `$1$2$3${gone}`],
  [/\b(SharedKey|SharedKeyLite)\s+[\w.-]+:[^\s"'<>]+/gi, `$1 ${gone}`],
  [/\b(Bearer|Basic)\s+[\w.~+/=-]{6,}/gi, `$1 ${gone}`],
  // Tokens of JSON: header, payload, signature.
  [/\beyJ[\w-]{6,}(\.[\w-]*){1,4}/g, gone],
  // To the last @ of the authority: a password may have one that nobody has encoded.
  [/\b([a-z][\w+.-]{0,30}:\/\/)[^\s/"'<>]+@/gi, `$1${gone}@`],
  // A field of JSON, also of JSON within a text.
  [
    /(\\*"[\w.-]*(?:key|secret|token|passw|pwd|passphrase|credential|authorization|cookie|signature|connectionString)[\w.-]*\\*"\s*:\s*\\*")(?:[^"\\]|\\(?!"))+/gi,
    `$1${gone}`,
  ],
  // name=value and name: value of command lines, headers and variables.
  [
    /((?:^|[\s;&?,{"'-])[\w.-]*(?:secret|token|passw(?:or)?d|pwd|passphrase|credential|authorization|api-?key|accesskey|account-?key)[\w.-]*\s*[=:]\s*)(?!\s*\[removed\])[^\s"',;&{}[\]]+/gim,
    `$1${gone}`,
  ],
];

/** Pattern of a long text of letters and digits, as keys in base64 are. */
const long = /[A-Za-z0-9+/_-]{40,}={0,2}/g;
const looksRandom = (text: string): boolean => {
  if (text.endsWith("=")) return true;
  return /[a-z]/.test(text) && /[A-Z]/.test(text) && (text.match(/\d/g)?.length ?? 0) >= 3;
};

export class Redactor {
  readonly #known: readonly string[];

  /** `secrets`: texts that the result must not hold in any form. */
  constructor(secrets: Iterable<string>) {
    const forms = [...secrets]
      .map((each) => each.trim())
      .filter((each) => each.length >= secretCharactersMin)
      .flatMap(formsOf);
    // The longest first: a part of another one must not leave its rest.
    this.#known = [...new Set(forms)].sort((one, other) => other.length - one.length);
  }

  text(given: string): string {
    let text = given;
    for (const secret of this.#known) if (text.includes(secret)) text = text.replaceAll(secret, gone);
    for (const [pattern, by] of rules) text = text.replace(pattern, by);
    return text.replace(long, (found) => (looksRandom(found) ? gone : found));
  }

  /** Returns a JSON value without secrets, judged by field names and in texts. Names of files stay. */
  value(given: unknown, name = ""): unknown {
    if (isSecretName(name) && !/file$|count|bytes|^keys?AtRest$/i.test(name) && isValue(given)) return gone;
    if (typeof given === "string") return this.text(given);
    if (Array.isArray(given)) return given.map((each) => this.value(each));
    if (typeof given !== "object" || given === null || given instanceof Uint8Array) return given;
    return Object.fromEntries(Object.entries(given).map(([key, value]) => [this.text(key), this.value(value, key)]));
  }
}

/** True for a value that may be a secret; numbers under such names are counts. */
const isValue = (given: unknown): boolean => given !== undefined && !["boolean", "number", "bigint"].includes(typeof given);

/** Forms in which texts carry a secret: as it is, in URLs, in JSON, in base64, and the bytes of a secret in base64 in hex. */
function formsOf(secret: string): string[] {
  const bytes = /^[A-Za-z0-9+/_-]+={0,2}$/.test(secret) ? Buffer.from(secret, "base64") : Buffer.alloc(0);
  return [
    secret,
    encodeURIComponent(secret),
    encodeURIComponent(secret).toLowerCase(),
    JSON.stringify(secret).slice(1, -1),
    Buffer.from(secret).toString("base64"),
    secret.replaceAll("+", "-").replaceAll("/", "_"),
    secret.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", ""),
    ...(bytes.length >= secretCharactersMin ? [bytes.toString("hex")] : []),
  ].filter((form) => form.length >= secretCharactersMin);
}
