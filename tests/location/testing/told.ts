/** Answers of the SDK as text that can be compared between two stamps. */

export interface Told {
  readonly title: string;
  readonly text: string;
}

/** Differ between any two answers. */
const ofTheCall = new Set(["_response", "requestId", "clientRequestId", "date", "version", "blobBody", "readableStreamBody"]);

/** `answer` without what differs between any two answers. Addresses of the copy lose the suffix of the account's name. */
export function told(title: string, answer: unknown): Told {
  const text = JSON.stringify(answer, (key, value: unknown) => {
    if (ofTheCall.has(key)) return undefined;
    if (typeof value === "bigint") return `${value}n`;
    return value instanceof Map ? [...value] : value;
  });
  return { title, text: text.replaceAll(/https?:\/\/127\.0\.0\.1:\d+\/\w+(-secondary)?/g, "AT") };
}

/** Returns what differs, in both directions: title, text here, text there. */
export function differences(here: readonly Told[], there: readonly Told[]): readonly (readonly [string, string, string])[] {
  const at = new Map(there.map(({ title, text }) => [title, text]));
  const missing = here.filter(({ title, text }) => at.get(title) !== text);
  const known = new Set(here.map(({ title }) => title));
  const more = there.filter(({ title }) => !known.has(title));
  return [
    ...missing.map(({ title, text }) => [title, text, at.get(title) ?? "(is not there)"] as const),
    ...more.map(({ title, text }) => [title, "(is not here)", text] as const),
  ];
}
