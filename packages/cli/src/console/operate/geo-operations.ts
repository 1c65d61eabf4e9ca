/**
 * Stamps, copies of accounts and failovers, by path. Lists are for every session, but diverged rows, which name what is stored, for those with the
 * role "data"; changes are for those with the role "operate". The same calls as `stamp geo`; the location service carries an operation on by itself.
 *
 * Invariants:
 * - A forced failover is begun only with the word of a person that what was not shipped may be lost, and only towards the stamp that was shown.
 * - An operation is given up only while it is the one that was shown. A step that it takes meanwhile refuses, and is shown.
 * - A list looks at 5,000 accounts, and at 100 pages or 500 rows of each report at most.
 */
import type { Outcome } from "@stamp/base";
import type { CopyRow, DivergedReport, Geo, StampRow } from "@stamp/console-page";
import type { DivergedRow, ListDivergedResponse, LocatedAccount, LocationStamp } from "@stamp/wire";
import { stateName } from "../../accounts/location-command.ts";
import { CommandError } from "../../exit.ts";
import { reportingStamps, rowTexts } from "../../geo/diverged.ts";
import { lagText, lossText, pendingText, shippingFacts } from "../../geo/figures.ts";
import { type LocationClient, stepText } from "../../geo/operation.ts";
import { FieldError, wordIn } from "../data/fields.ts";
import type { List } from "../lists.ts";
import { type StampChange, taken } from "./account-operations.ts";

const callOptions = { timeoutMs: 4_000 };
const changeOptions = { timeoutMs: 20_000 };
const pageMax = 1_000;
const pagesMax = 5;
/** A page of a report is that of one range, and may be empty. */
const reportPagesMax = 100;
const reportRowsMax = 500;

/** Location service that the console was told of. */
export interface LocationPlace {
  readonly at: string;
  readonly client: LocationClient;
}

/** Returns the lists by path. `location`: undefined for a stamp alone. */
export function geoLists(location: LocationPlace | undefined): Readonly<Record<string, List>> {
  return {
    "/api/geo": async (): Promise<Geo> => (location === undefined ? { at: "", stamps: [], copies: [], more: false } : geoOf(location)),
    "/api/diverged": async (query) => ({ items: await reportsOf(known(location).client, query.get("account") ?? ""), next: null }),
  };
}

/** Returns the changes by path. */
export function geoOperations(location: LocationPlace | undefined): Readonly<Record<string, StampChange>> {
  return {
    "/api/fail-over": async (fields) => {
      const [account, stamp] = [wordIn(fields, "account"), wordIn(fields, "to")];
      const forced = fields.forced === true;
      if (forced && fields.acceptLoss !== true) throw new FieldError("a forced failover needs your word that writes may be lost");
      const how = { account, stamp, forced, acceptLoss: forced, anyway: false };
      return { step: stepText(taken(await known(location).client.failOverAccount(how, changeOptions))) };
    },
    "/api/give-up": async (fields) => {
      const { client } = known(location);
      const [account, step] = [wordIn(fields, "account"), wordIn(fields, "step")];
      const now = stepOf(taken(await client.getAccount({ account }, changeOptions)));
      if (now !== step)
        throw new CommandError(`the operation is ${now === "" ? "over" : `another one by now: ${now}`}; "${step}" was shown`);
      taken(await client.giveUpOperation({ account }, changeOptions));
      return {};
    },
  };
}

function known(location: LocationPlace | undefined): LocationPlace {
  if (location === undefined) throw new Error("this console knows no location service: ./stamp console --at HOST:PORT --secret-file FILE");
  return location;
}

async function geoOf({ at, client }: LocationPlace): Promise<Geo> {
  const { stamps } = taken(await client.listStamps({}, callOptions));
  const accounts: LocatedAccount[] = [];
  let more = true;
  for (let page = 0; more && page < pagesMax; page++) {
    const told = taken(await client.listAccounts({ after: accounts.at(-1)?.name ?? "", limit: pageMax }, callOptions));
    accounts.push(...told.accounts);
    more = told.more;
  }
  const shown = accounts.filter(({ secondary, kind, removals }) => secondary !== "" || kind !== "" || removals.length > 0);
  return { at, stamps: stamps.map(stampRow), copies: shown.map(copyRow), more };
}

const stampRow = ({ name, location, lost, state, answers, trouble, usedBytes, totalBytes, accounts }: LocationStamp): StampRow => ({
  name,
  location,
  state: lost ? "lost" : stateName(state),
  answers,
  trouble,
  usedBytes: Number(usedBytes),
  totalBytes: Number(totalBytes),
  accounts,
});

function copyRow(account: LocatedAccount): CopyRow {
  const { name, stamp, secondary, state, seeded, queues, trouble, shipping } = account;
  return {
    name,
    stamp,
    secondary,
    state,
    isSeeded: seeded,
    queues,
    lagSeconds: shippingFacts(account).lagSeconds,
    lag: lagText(account),
    pending: pendingText(account),
    step: stepOf(account),
    trouble: [...new Set([trouble, shipping?.trouble ?? ""])].filter((text) => text !== "").join("; "),
    loss: lossText(account),
  };
}

/** Operation that is under way, in words; empty for none. */
const stepOf = (account: LocatedAccount): string => stepText({ ...account, trouble: "" });

async function reportsOf(client: LocationClient, account: string): Promise<DivergedReport[]> {
  const found = taken(await client.getAccount({ account }, callOptions));
  const reports: DivergedReport[] = [];
  for (const stamp of reportingStamps(found)) {
    const page = await beginningOf((marker) => client.listDiverged({ account, stamp, marker }, callOptions));
    if (page.ok) {
      const { rows, complete, trouble, nextMarker } = page.value;
      const why = complete ? "" : trouble === "" ? "the stamp still makes it" : trouble;
      // A stamp that was never deposed tells a complete report without rows.
      if (why !== "" || rows.length > 0 || nextMarker !== "")
        reports.push({ stamp, trouble: why, rows: rowTexts(rows), more: nextMarker !== "" });
    } else if (page.failure.code !== "notFound") {
      reports.push({ stamp, trouble: `it does not tell its report: ${page.failure.message}`, rows: [], more: false });
    }
  }
  return reports;
}

/** Reads pages of a report up to its bounds. */
async function beginningOf(
  ask: (marker: string) => Promise<Outcome<ListDivergedResponse>>,
): Promise<Outcome<Pick<ListDivergedResponse, "rows" | "complete" | "trouble" | "nextMarker">>> {
  const rows: DivergedRow[] = [];
  for (let marker = "", pages = 1; ; pages++) {
    const page = await ask(marker);
    if (!page.ok) return page;
    rows.push(...page.value.rows);
    const { complete, trouble, nextMarker } = page.value;
    if (nextMarker === "" || rows.length >= reportRowsMax || pages === reportPagesMax)
      return { ok: true, value: { rows, complete, trouble, nextMarker } };
    marker = nextMarker;
  }
}
