/** Keys and values that index tags of blobs may have: one rule for setting them (azure-rest) and for searching them (objects). */

const keyCharactersMax = 128;
const valueCharactersMax = 256;
const allowed = /^[A-Za-z0-9 +\-./:=_]*$/;

export const isTagKey = (key: string): boolean =>
  key.length >= 1 && key.length <= keyCharactersMax && allowed.test(key) && key !== "__proto__";

export const isTagValue = (value: string): boolean => value.length <= valueCharactersMax && allowed.test(value);
