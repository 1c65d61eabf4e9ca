/**
 * Strings to sign as errors show them. A client compares the string with its own, and its log keeps the answer: the string must not hold
 * what another reader of that log could use.
 */
import { loggedTarget } from "@stamp/base";

/** Lines of headers and parameters whose value is a secret: customer-provided keys, bearer tokens, signatures. */
const secretLine = /^(x-ms-encryption-key|x-ms-source-encryption-key|x-ms-copy-source-authorization|sig):.*$/gim;
/** Line of the header whose URL may hold a shared access signature. */
const sourceLine = /^(x-ms-copy-source):(.*)$/gim;

/** Returns the string to sign with the values of secrets replaced. */
export const shownString = (stringToSign: string): string =>
  stringToSign.replace(secretLine, "$1:REDACTED").replace(sourceLine, (_line, name: string, url: string) => `${name}:${loggedTarget(url)}`);
