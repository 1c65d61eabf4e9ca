import type { JSX } from "preact";
import type { RangeRow } from "../../model.ts";
import { Badge } from "../../ui.tsx";

/** State of a range in words. */
export function RangeState({ range: { server, loaded, change } }: { readonly range: RangeRow }): JSX.Element {
  if (change !== "") return <Badge tone="warn">{change}</Badge>;
  if (server === "") return <Badge tone="bad">unassigned</Badge>;
  return loaded ? <Badge tone="good">served</Badge> : <Badge tone="warn">loading</Badge>;
}
