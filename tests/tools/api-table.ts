/**
 * docs/api/*.md: one row per kind of request of a service, whether it is served, and which parts of the conformance suite show it. What
 * is shown is what was seen: the suite's own requests and their answers, part by part. So a row can't say more than a test does.
 *
 * A service's suite makes a `ApiRecord`, tells it which part runs and every answer, and in the end has it checked against the page
 * (`checkApiPage`): a page that says something else is a failure. `node tests/tools/api-docs.ts` writes the pages anew.
 */
import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./commands.ts";

/** A kind of request; several with one title are one operation. */
export interface ApiRequest {
  /** As the REST reference calls the operation: Put Block List. */
  readonly title: string;
  /** `PUT comp=page`, with what it is about in front where that is not clear: `blob PUT comp=page`. */
  readonly request: string;
  readonly served: boolean;
  /** HTTP status of the refusal; undefined: 501. */
  readonly refusedWith?: number;
}

const refusalOf = ({ refusedWith }: ApiRequest): number => refusedWith ?? 501;

export class ApiRecord {
  /** Which part of the suite runs: the file's name. */
  part = "";
  readonly #shown = new Map<string, Set<string>>();

  /** Records an answer to a request of this title. Served operations are shown by success, refused ones by the status of their refusal. */
  saw(title: string, status: number): void {
    if (this.part === "") return;
    const key = `${status < 400 ? "served" : status} ${title}`;
    const parts = this.#shown.get(key) ?? new Set();
    this.#shown.set(key, parts.add(this.part));
  }

  parts(request: ApiRequest): string[] {
    return [...(this.#shown.get(`${request.served ? "served" : refusalOf(request)} ${request.title}`) ?? [])].sort();
  }
}

export interface ApiPage {
  /** In the repository: docs/api/blob.md */
  readonly path: string;
  readonly heading: string;
  /** Behind the heading. */
  readonly about: string;
  readonly requests: readonly ApiRequest[];
  /** Folder of the parts. Default: tests/conformance/. */
  readonly folder?: string;
}

export function apiPageText(page: ApiPage): string {
  const byTitle = Map.groupBy(page.requests, (request) => request.title);
  const rows = [...byTitle].map(([title, requests]) => {
    const first = requests[0] as ApiRequest;
    const asked = requests.map(({ request }) => `\`${request}\``).join(", ");
    return `| ${title} | ${asked} | ${first.served ? "done" : refusalOf(first)} |`;
  });
  const served = [...byTitle.values()].filter(([request]) => request?.served).length;
  const table =
    served === 0
      ? ["| service | here | operations |", "|---|---|---|", ...refusedTogether(page.requests)]
      : ["| operation | request | here |", "|---|---|---|", ...rows];
  return [
    `# ${page.heading}`,
    "",
    page.about,
    "",
    `Written by \`node tests/tools/api-docs.ts\`: what was asked and answered in \`${page.folder ?? "tests/conformance/"}\`. 501: refused with`,
    "`NotImplemented` and the feature's name; 400: refused with the service's own code.",
    "",
    `${byTitle.size} operations, ${served} done, ${byTitle.size - served} refused.`,
    "",
    ...table,
    "",
  ].join("\n");
}

/** Returns one row for all operations of a service (in brackets behind a title) that are refused with one status. */
function refusedTogether(requests: readonly ApiRequest[]): string[] {
  const alike = Map.groupBy(requests, (request) => {
    const service = /\((.*)\)$/.exec(request.title)?.[1] ?? "–";
    return `${service} | ${refusalOf(request)}`;
  });
  const name = ({ title }: ApiRequest): string => title.replace(/ \(.*\)$/, "");
  return [...alike].map(([answer, those]) => `| ${answer} | ${[...new Set(those.map(name))].join(", ")} |`);
}

/** Fails when a request is shown by nobody, or when the page says something else than what was seen; writes it when asked to. */
export function checkApiPage(page: ApiPage, record: ApiRecord): void {
  const unshown = page.requests.filter((request) => record.parts(request).length === 0).map(({ title }) => title);
  assert.deepEqual([...new Set(unshown)], [], `${page.path}: no test shows these`);
  const path = join(root, page.path);
  const there = existsSync(path) ? readFileSync(path, "utf8") : "";
  const text = apiPageText(page);
  if (process.env.STAMP_WRITE_API_DOCS === "1") {
    writeFileSync(path, text);
    return;
  }
  assert.equal(there, text, `${page.path} is not what the suite shows: node tests/tools/api-docs.ts`);
}
