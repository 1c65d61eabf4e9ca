/** Checks of answers. */
import type { SignedAnswer } from "../signed-client.ts";

/** False: busy, nothing was done. */
export function expected({ status, body }: SignedAnswer, wanted: number): boolean {
  if (status === wanted) return true;
  if (status === 503) return false;
  throw new Error(`${status} instead of ${wanted}: ${body.toString().slice(0, 500)}`);
}

export function contains({ body }: SignedAnswer, text: string): boolean {
  if (!body.includes(text)) throw new Error(`not ${text}: ${body.toString().slice(0, 300)}`);
  return true;
}
