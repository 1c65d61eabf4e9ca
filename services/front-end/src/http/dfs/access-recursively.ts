/**
 * Access control is changed of a path and of everything below it, path after path: a request goes over `maxRecords` of them, and its answer
 * tells how many were changed, which could not be, and a continuation. Each path is changed by itself, so others see some changed and some
 * not yet. What is made below meanwhile may be left out.
 */
import {
  changedPathsJson,
  type FailedPath,
  mayChangeLists,
  type Parsed,
  type RecursiveChange,
  recursivelyChanged,
  rejected,
} from "@stamp/azure-rest";
import { toHex, utf8 } from "@stamp/base";
import { type Listed, list, resolve } from "@stamp/tree";
import type { Container } from "@stamp/wire";
import { type Answer, respond } from "../exchange.ts";
import { changeAccess, type Named } from "./access.ts";
import { coversOnePath, type DataLakeExchange, namesOf, type OnPath, rowOf, treeNameOf } from "./exchange.ts";
import { mayListAll } from "./judge.ts";
import { notOfThisList } from "./lists.ts";
import { refused } from "./refusals.ts";
import { runInTree } from "./run.ts";
import { bytesOf } from "./tokens.ts";

/** Paths that are changed at once. */
const changedAtOnce = 16;

interface PathToChange {
  readonly name: string;
  readonly held: Named;
}

export async function setAccessControlRecursively(exchange: DataLakeExchange<"SetAccessControlRecursively">): Promise<Answer> {
  const { change, force, maxRecords, continuation } = exchange.asked;
  const { access } = exchange;
  if (access.by === "sas" && !access.may("p")) return rejected("AuthorizationPermissionMismatch");
  const token = continuation === undefined ? undefined : bytesOf(continuation);
  if (continuation !== undefined && token === undefined) return notOfThisList;
  const row = await rowOf(exchange);
  if (!row.ok) return row;
  const names = namesOf(exchange.resource.path);
  const tree = treeNameOf(exchange, row.value);
  const found = await runInTree(exchange, tree, (context) => resolve(context, names));
  if (!found.ok) return refused(found.refusal === "notDirectory" ? { ...found, refusal: "notFound" } : found);
  const held = found.value.at(-1)?.held;
  if (held?.kind !== "file" && coversOnePath(exchange)) return rejected("AuthorizationPermissionMismatch");
  const first: PathToChange[] = token ? [] : [{ name: names.join("/"), held }];
  const below =
    held?.kind === "file"
      ? { ok: true as const, value: { paths: [] } }
      : await pathsBelow(exchange, row.value, {
          names,
          entriesMax: maxRecords - first.length,
          token,
        });
  if (!below.ok) return below;
  const { paths, next } = below.value as Below;
  const done = await changeAll(exchange, row.value, [...first, ...paths], { change, force });
  if (!done.ok) return done;
  const { directories, files, failed } = done.value;
  const goesOn = next !== undefined && (force || failed.length === 0);
  const headers = { "Content-Type": "application/json;charset=utf-8", ...(goesOn ? { "x-ms-continuation": toHex(next) } : {}) };
  return respond(200, headers, utf8(changedPathsJson(directories, files, failed)));
}

interface Below {
  readonly paths: readonly PathToChange[];
  readonly next?: Uint8Array | undefined;
}

async function pathsBelow(
  exchange: OnPath,
  row: Container,
  { names, entriesMax, token }: { readonly names: readonly string[]; readonly entriesMax: number; readonly token: Uint8Array | undefined },
): Promise<Parsed<Below>> {
  const options = { recursive: true, entriesMax, continuation: token };
  const page = await runInTree(exchange, treeNameOf(exchange, row), (context) => list(context, names, options));
  if (!page.ok) return refused(page);
  const directories = page.value.entries.flatMap((each) => (each.held.kind === "directory" ? [each.held.id] : []));
  const may = await mayListAll(exchange, row, [...page.value.opened, ...directories]);
  if (!may.ok) return may;
  const pathOf = ({ path, held }: Listed): PathToChange => ({ name: [...names, ...path].join("/"), held });
  return { ok: true, value: { paths: page.value.entries.map(pathOf), next: page.value.continuation } };
}

interface Changed {
  readonly directories: number;
  readonly files: number;
  readonly failed: readonly FailedPath[];
}

async function changeAll(
  exchange: OnPath,
  row: Container,
  paths: readonly PathToChange[],
  { change, force }: { readonly change: RecursiveChange; readonly force: boolean },
): Promise<Parsed<Changed>> {
  let [directories, files] = [0, 0];
  const failed: FailedPath[] = [];
  for (let at = 0; at < paths.length && (force || failed.length === 0); at += changedAtOnce) {
    const some = paths.slice(at, at + changedAtOnce);
    const answers = await Promise.all(some.map((path) => changeOne(exchange, row, path, change)));
    for (const [index, answer] of answers.entries()) {
      const { name, held } = some[index] as PathToChange;
      const isDirectory = held?.kind !== "file";
      if (answer.ok) isDirectory ? directories++ : files++;
      else if (answer.error.status >= 500) return answer;
      // It was removed meanwhile.
      else if (answer.error.code !== "BlobNotFound") failed.push({ name, isDirectory, message: answer.error.message });
    }
  }
  return { ok: true, value: { directories, files, failed } };
}

function changeOne(exchange: OnPath, row: Container, { held }: PathToChange, change: RecursiveChange): Promise<Parsed<unknown>> {
  const { judged } = exchange.access;
  return changeAccess(exchange, row, held, {
    conditions: {},
    change: (access) =>
      judged && !mayChangeLists(judged, access)
        ? rejected("AuthorizationPermissionMismatch")
        : recursivelyChanged(held?.kind ?? "root", access, change),
  });
}
