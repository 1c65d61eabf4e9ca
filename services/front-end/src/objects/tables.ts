/**
 * Operations on tables and entities for both doors (HTTP and gRPC): the table's row is read, operations go to their range, queries go on
 * over ranges until their page is full.
 */
import { type Parsed, parsed } from "@stamp/azure-rest";
import { refused } from "@stamp/base";
import {
  type Entity,
  type EntityChange,
  type EntityKey,
  entityBytes,
  type ListTables,
  type LocatedTable,
  PackedEntities,
  type QueryEntities,
  queryRouteFrom,
  type Route,
  routeOf,
  type Table,
  type TableAddress,
  type TableOperation,
  tableOperations,
} from "@stamp/objects";
import type { World } from "@stamp/ports";
import type { TablePage, TableResult, EntityPage as WireEntityPage } from "@stamp/wire";
import type { CallLimits, Router } from "../routing/router.ts";
import { answeredCase } from "./answered.ts";
import { restErrorOf } from "./failures.ts";
import { ParentRows } from "./parent-rows.ts";
import { entitiesOf, entityFromWire, tableFromWire, tableOperationToWire } from "./tables-wire.ts";

type ResultOf = Exclude<TableResult["kind"], { case: undefined }>;
type ResultValue<C extends ResultOf["case"]> = Extract<ResultOf, { case: C }>["value"];

/** Bound of the bytes of one page of entities, as the service counts them. */
export const pageBytesMax: number = 4 * 1024 * 1024;
/** Time after which a page ends where it is, in milliseconds. */
const pageTimeMs = 5_000;

export interface EntitiesFound {
  /** Key behind which the next page begins; undefined: there is none. */
  readonly next: EntityKey | undefined;
}

/**
 * Takes some of the entities of a page, in order, and resolves when it has taken all that `entities` gives. An entity is made when it is asked
 * for. `storedBytes`: their size as they are stored, about.
 */
export type TakeEntities = (entities: IteratorObject<Entity>, storedBytes: number) => Promise<void>;

/** Takes the entities of a page as they are stored, and resolves when `entities` has no more and nobody looks at its bytes any more. */
export type TakePacked = (entities: PackedEntities) => Promise<void>;

export interface TablesFound {
  readonly tables: readonly Table[];
  readonly next: string | undefined;
}

export class Tables {
  readonly rows: ParentRows;
  readonly #world: World;
  readonly #router: Router;

  constructor(world: World, router: Router, options: { readonly requestTimeoutMs: number }) {
    this.#world = world;
    this.#router = router;
    const read = (account: string, table: string, limits: CallLimits) => {
      const operation = { case: "getTable", value: { account, table } } as const;
      return router
        .ask(this.#routeOf(operation), tableOperationToWire(operation), true, limits)
        .then((answer) => (answer.ok ? { ok: true as const, value: answer.value.result } : answer));
    };
    this.rows = new ParentRows(world, read, { readTimeoutMs: options.requestTimeoutMs });
  }

  async create(address: TableAddress, limits: CallLimits): Promise<Parsed<Table>> {
    const made = await this.#table({ case: "createTable", value: address }, "table", limits);
    return made.ok ? parsed(tableFromWire(made.value)) : made;
  }

  async delete(address: TableAddress, limits: CallLimits): Promise<Parsed<void>> {
    const gone = await this.#done({ case: "deleteTable", value: address }, limits);
    return gone;
  }

  setAcl(address: TableAddress, signedIdentifiers: Table["signedIdentifiers"], limits: CallLimits): Promise<Parsed<void>> {
    return this.#done({ case: "setTableAcl", value: { ...address, signedIdentifiers } }, limits);
  }

  /** Reads the table's row, by a question that is sent now or later. */
  async find({ account, table }: TableAddress, limits: CallLimits): Promise<Parsed<Table>> {
    const row = await this.rows.read(account, table, limits);
    if (!row) return { ok: false, error: restErrorOf(late.failure) };
    const result = answeredCase(row, "table");
    if (!result.ok) return result;
    const found = kindOf(result.value, "table");
    return found.ok ? parsed(tableFromWire(found.value)) : found;
  }

  async locate({ account, table }: TableAddress, limits: CallLimits): Promise<Parsed<LocatedTable>> {
    const row = await this.find({ account, table }, limits);
    return row.ok ? parsed({ account, table, incarnation: row.value.incarnation }) : row;
  }

  /** All or nothing; the new timestamps, in order. `details.index` of an error is the change that it is about. */
  async change(
    table: LocatedTable,
    partitionKey: string,
    changes: readonly EntityChange[],
    limits: CallLimits,
  ): Promise<Parsed<readonly bigint[]>> {
    const changed = await this.#table({ case: "changeEntities", value: { table, partitionKey, changes } }, "changed", limits);
    return changed.ok ? parsed(changed.value.timestamps) : changed;
  }

  async get(table: LocatedTable, key: EntityKey, select: readonly string[], limits: CallLimits): Promise<Parsed<Entity>> {
    const found = await this.#table({ case: "getEntity", value: { table, ...key, select } }, "entity", limits);
    return found.ok ? parsed(entityFromWire(found.value)) : found;
  }

  /** Reads one page, given to `take` as it is found, or to `takePacked` if that is given and the entities came as they are stored. */
  async query(question: QueryEntities, limits: CallLimits, take: TakeEntities, takePacked?: TakePacked): Promise<Parsed<EntitiesFound>> {
    let bytes = 0;
    let count = 0;
    let cut = false;
    let last = question.after;
    function* within(entities: Iterable<Entity>): Generator<Entity, void> {
      for (const entity of entities) {
        bytes += entityBytes(entity.partitionKey, entity.rowKey, entity.properties);
        cut = bytes > pageBytesMax && count > 0;
        if (cut) return;
        count++;
        last = entity;
        yield entity;
      }
    }
    const end = await this.#overRanges("entities", limits, {
      operation: () => ({ case: "queryEntities", value: { ...question, after: keyOf(last), entitiesMax: question.entitiesMax - count } }),
      take: async (page: WireEntityPage, giveBack) => {
        if (takePacked !== undefined && page.rows.length > 0) {
          const packed = new PackedEntities(page.rows, { bytesMax: pageBytesMax - bytes, isEmpty: count === 0 });
          await takePacked(packed);
          bytes += packed.countedBytes;
          count += packed.count;
          cut = packed.isCut;
          last = packed.lastKey() ?? last;
          giveBack();
        } else await take(within(entitiesOf(page)), page.rows.length);
        if (cut) return "cut";
        if (page.last) last = page.last;
        return count >= question.entitiesMax ? "full" : "room";
      },
      mayPause: () => last !== undefined,
    });
    return end.ok ? parsed({ next: end.value === "more" ? keyOf(last) : undefined }) : end;
  }

  /** Returns one page. */
  async list(question: ListTables, limits: CallLimits): Promise<Parsed<TablesFound>> {
    const tables: Table[] = [];
    let last = question.after;
    const end = await this.#overRanges("tables", limits, {
      operation: () => ({ case: "listTables", value: { ...question, after: last, tablesMax: question.tablesMax - tables.length } }),
      take: async (page: TablePage) => {
        tables.push(...page.tables.map(tableFromWire));
        if (page.last !== "") last = page.last;
        return tables.length >= question.tablesMax ? "full" : "room";
      },
      mayPause: () => last !== "",
    });
    return end.ok ? parsed({ tables, next: end.value === "more" ? last : undefined }) : end;
  }

  /** Go after go, range after range, until the page is full, the time of a page is over, or nothing follows. */
  async #overRanges<C extends "entities" | "tables">(
    expected: C,
    limits: CallLimits,
    page: {
      /** Returns the next operation, behind the last key that was looked at. */
      readonly operation: () => TableOperation;
      /** Takes a result. `cut`: the page was full before all of it was taken. `giveBack`: called when nobody has a view of it, at most once. */
      readonly take: (page: ResultValue<C>, giveBack: () => void) => Promise<"room" | "full" | "cut">;
      /** True if there is a place to go on from. */
      readonly mayPause: () => boolean;
    },
  ): Promise<Parsed<"more" | "end">> {
    const pauseMs = this.#world.clock.monotonicMs() + pageTimeMs;
    let route = this.#routeOf(page.operation());
    for (;;) {
      const operation = page.operation();
      const answer = await this.#router.ask(route, tableOperationToWire(operation), true, limits);
      if (!answer.ok) return { ok: false, error: restErrorOf(answer.failure) };
      const { result, range, giveBack } = answer.value;
      const table = answeredCase({ ok: true, value: result }, "table");
      if (!table.ok) return table;
      const found = kindOf(table.value, expected);
      if (!found.ok) return found;
      const state = await page.take(found.value as ResultValue<C>, giveBack);
      if (state === "cut") return parsed("more");
      const { more, rangeEnded } = found.value as WireEntityPage | TablePage;
      const next = more
        ? this.#routeOf(page.operation())
        : rangeEnded
          ? queryRouteFrom(this.#world.rules, operation, range.high)
          : undefined;
      if (!next) return parsed("end");
      if (state === "full" || (page.mayPause() && this.#world.clock.monotonicMs() >= pauseMs)) return parsed("more");
      route = next;
    }
  }

  async #table<C extends ResultOf["case"]>(operation: TableOperation, expected: C, limits: CallLimits): Promise<Parsed<ResultValue<C>>> {
    const answer = await this.#ask(operation, limits);
    const result = answeredCase(answer, "table");
    return result.ok ? kindOf(result.value, expected) : result;
  }

  async #done(operation: TableOperation, limits: CallLimits): Promise<Parsed<void>> {
    const result = answeredCase(await this.#ask(operation, limits), "done");
    return result.ok ? parsed(undefined) : result;
  }

  async #ask(operation: TableOperation, limits: CallLimits) {
    const answer = await this.#router.ask(
      this.#routeOf(operation),
      tableOperationToWire(operation),
      tableOperations.isRead(operation),
      limits,
    );
    return answer.ok ? { ok: true as const, value: answer.value.result } : answer;
  }

  #routeOf(operation: TableOperation): Route {
    return routeOf(this.#world.rules, { case: "table", value: operation });
  }
}

const keyOf = (key: EntityKey | undefined): EntityKey | undefined => key && { partitionKey: key.partitionKey, rowKey: key.rowKey };

const late = refused("deadlineExceeded", "timeout", "the table's row was not read in time");

function kindOf<C extends ResultOf["case"]>(result: TableResult, expected: C): Parsed<ResultValue<C>> {
  if (result.kind.case === expected) return parsed(result.kind.value as ResultValue<C>);
  const { failure } = refused("internal", "bug", `a partition server answered ${result.kind.case}, not ${expected}`);
  return { ok: false, error: restErrorOf(failure) };
}
