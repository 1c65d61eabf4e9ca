/** Lists of the console in pages: streams and extents, each by its path. The page asks for the next one when a person scrolls there. */
import type { StampInspector } from "@stamp/cluster";
import type { ExtentRow, Page, StreamRow } from "@stamp/console-page";
import { statusOf } from "../coding/coding-command.ts";
import { codingText } from "../coding/coding-text.ts";
import { fragmentLines, repairOf } from "../nodes/node-commands.ts";
import { extentRow, streamRow } from "./snapshot.ts";

const pageMax = 500;
/** Extents of one stream are asked for one by one. */
const ofStreamMax = 50;

export type List = (query: URLSearchParams) => Promise<object>;

/** Returns the list at a path; undefined for a path without one. */
export interface Lists {
  find(path: string): List | undefined;
}

/** `inspector`: of the stamp that runs now. `others`: further lists, by path. */
export function listsOf(inspector: () => StampInspector, others: Readonly<Record<string, List>>): Lists {
  const lists: Readonly<Record<string, List>> = {
    ...others,
    "/api/streams": async (query) => streams(inspector(), query.get("after") ?? ""),
    "/api/extents": async (query) => extents(inspector(), idIn(query)),
    "/api/stream": async (query) => extentsOf(inspector(), query.get("name") ?? "", idIn(query)),
    "/api/coding": async () => coding(inspector()),
  };
  return { find: (path) => (Object.hasOwn(lists, path) ? lists[path] : undefined) };
}

/** Id of the extent that the page begins behind; 0 for the first page. */
function idIn(query: URLSearchParams): bigint {
  const text = query.get("after") ?? "";
  return /^\d{1,19}$/.test(text) ? BigInt.asUintN(63, BigInt(text)) : 0n;
}

async function streams(inspector: StampInspector, after: string): Promise<Page<StreamRow>> {
  const { items, more } = await inspector.streamPage("", after, pageMax);
  return { items: items.map(streamRow), next: more ? (items.at(-1)?.name ?? null) : null };
}

async function extents(inspector: StampInspector, after: bigint): Promise<Page<ExtentRow>> {
  const { items, more } = await inspector.extentPage(after, pageMax);
  const rows = items.map(extentRow);
  return { items: rows, next: more ? (rows.at(-1)?.id ?? null) : null };
}

async function extentsOf(inspector: StampInspector, name: string, after: bigint): Promise<Page<ExtentRow>> {
  const listed = await inspector.ask((manager, timeoutMs) => manager.getStream({ name, afterExtentId: after }, { timeoutMs }));
  const some = listed.extents.slice(0, ofStreamMax);
  const found = await Promise.all(some.map(({ extentId }) => inspector.extent(extentId)));
  const more = listed.more || listed.extents.length > some.length;
  const last = some.at(-1);
  return {
    items: found.flatMap((each) => (each === undefined ? [] : [extentRow(each)])),
    next: more && last !== undefined ? String(last.extentId) : null,
  };
}

/** Returns the lines of `stamp coding status`. */
async function coding(inspector: StampInspector): Promise<Page<string>> {
  const [status, repair] = await Promise.all([statusOf(inspector), repairOf(inspector)]);
  return { items: codingText(status, fragmentLines(repair)).split("\n"), next: null };
}
