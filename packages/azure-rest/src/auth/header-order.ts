/**
 * Returns the weight by which the service sorts x-ms- headers for signing: by culture. Hyphens count only when nothing else differs; an
 * underscore comes before digits, and digits come before letters. Header names are lower case here.
 */
function weight(code: number): number {
  if (code >= 0x61 && code <= 0x7a) return 2_000 + code;
  if (code >= 0x30 && code <= 0x39) return 1_000 + code;
  return code;
}

export function compareByCulture(a: string, b: string): number {
  const left = a.replaceAll("-", "");
  const right = b.replaceAll("-", "");
  for (let i = 0; i < Math.min(left.length, right.length); i++) {
    const difference = weight(left.charCodeAt(i)) - weight(right.charCodeAt(i));
    if (difference !== 0) return difference;
  }
  if (left.length !== right.length) return left.length - right.length;
  return hyphensLater(a, b);
}

/** Compares texts that differ in hyphens only: the one whose first differing hyphen comes later sorts first. */
function hyphensLater(a: string, b: string): number {
  for (let i = 0; i < Math.min(a.length, b.length); i++) {
    if (a.charCodeAt(i) === b.charCodeAt(i)) continue;
    return a.charCodeAt(i) === 0x2d ? 1 : -1;
  }
  return a.length - b.length;
}
