/**
 * Settings in the properties of services that only the operator sets (docs/formats/account.md). A front-end writes properties for
 * its clients, who may set the others.
 */

type Texts = Readonly<Record<string, string>>;
type Properties = Readonly<Record<string, unknown>>;

/** Settings of the operator, with their values where a text names none. */
const settings = {
  versioning: false,
  containerDeleteRetention: { enabled: false },
  publicAccessForbidden: false,
  hierarchicalNamespace: false,
} as const;

/** Returns the first setting that is another after the change, by its name; undefined if each stays. A text that is no object changes all. */
export function changedSetting(next: Texts, held: Texts): string | undefined {
  for (const [service, text] of Object.entries(next)) {
    const [before, after] = [propertiesIn(held[service] ?? ""), propertiesIn(text)];
    for (const [name, otherwise] of Object.entries(settings))
      if (after === undefined || sorted(before?.[name] ?? otherwise) !== sorted(after[name] ?? otherwise)) return name;
  }
  return undefined;
}

function propertiesIn(text: string): Properties | undefined {
  if (text === "") return {};
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Properties) : undefined;
  } catch {
    return undefined;
  }
}

/** True if the account was made with a hierarchical namespace. */
export const isHierarchical = ({ blob = "" }: Texts): boolean => propertiesIn(blob)?.hierarchicalNamespace === true;

const sorted = (value: unknown): string =>
  JSON.stringify(value, (_name, each: unknown) =>
    typeof each === "object" && each !== null ? Object.fromEntries(Object.entries(each).sort(([a], [b]) => (a < b ? -1 : 1))) : each,
  );
