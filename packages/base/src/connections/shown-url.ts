/**
 * URLs and request targets as they may be shown: in logs, in errors, and as the source of a copy. The query is taken apart as a server takes
 * it apart, so a name is known however it is written (`s%69g` is `sig`). What can't be read is taken for a secret.
 *
 * Invariant: nothing that came in a query reaches a log except through `loggedTarget`.
 */

/** Parameters of a shared access signature. */
const ofSignature: ReadonlySet<string> = new Set(
  (
    "sv ss srt sp st se spr sig sip si sr sdd tn spk srk epk erk skoid sktid skt ske sks skv saoid suoid scid skdutid sduoid srh srq ses " +
    "rscc rscd rsce rscl rsct"
  ).split(" "),
);
/** Names of parameters whose values give rights to whoever has them. */
const secrets: ReadonlySet<string> = new Set(["sig", "popreceipt"]);

/** Returns the name of one `name=value` as a server reads it, in lower case; undefined if its escapes can't be read. */
function nameOf(part: string): string | undefined {
  const equals = part.indexOf("=");
  try {
    return decodeURIComponent(equals < 0 ? part : part.slice(0, equals))
      .trim()
      .toLowerCase();
  } catch {
    return undefined;
  }
}

/** Splits a query at ampersands, and at semicolons, which some servers take for them. */
const separated = (query: string): string[] => query.split(/[&;]/);

/**
 * A signature in a URL that stands, encoded once or more often, in a path or in the value of a parameter: a client that takes a URL with its
 * signature for a name sends `b%3Fsv=1&sig=…`. To the next separator that is not encoded.
 */
const nestedSignature = /([?&;]|%(?:25)*(?:3f|26|3b))(?:s|%(?:25)*[57]3)(?:i|%(?:25)*[46]9)(?:g|%(?:25)*[46]7)(?:=|%(?:25)*3d)[^?&;]*/gi;

/** Returns the target with the values of secret parameters replaced, for logs. `target`: path and query, or a URL. */
export const loggedTarget = (target: string): string => withoutSecrets(target).replaceAll(nestedSignature, "$1sig=REDACTED");

function withoutSecrets(target: string): string {
  const mark = target.indexOf("?");
  if (mark < 0) return target;
  const parts = separated(target.slice(mark + 1)).map((part) => {
    const name = nameOf(part);
    if (name === undefined) return "REDACTED";
    return secrets.has(name) ? `${name}=REDACTED` : part;
  });
  return `${target.slice(0, mark)}?${parts.join("&")}`;
}

/** Returns the URL without a shared access signature, a user, and a fragment, for whoever may read the properties of a copy. */
export function urlWithoutSignature(url: string): string {
  const whole = (url.split("#")[0] as string).replace(/^([a-z][a-z0-9+.-]*:\/\/)[^/?]*@/i, "$1");
  const mark = whole.indexOf("?");
  if (mark < 0) return whole;
  const kept = separated(whole.slice(mark + 1)).filter((part) => {
    const name = nameOf(part);
    return part !== "" && name !== undefined && !ofSignature.has(name) && !secrets.has(name);
  });
  return kept.length === 0 ? whole.slice(0, mark) : `${whole.slice(0, mark)}?${kept.join("&")}`;
}
