/** Sends the entities of a file to the service, part by part. */
import type { DataSource } from "./data-model.ts";
import type { FileEntity } from "./entity-file.ts";

export interface Imported {
  /** Entities that were written. */
  readonly written: number;
  /** Entities that were there already, and stayed. */
  readonly kept: number;
}

const entitiesMax = 500;
/** Characters of a part: a change has 4 MiB, and each character has up to three bytes. */
const charactersMax = 1_024 * 1_024;

interface ImportInto {
  readonly account: string;
  readonly table: string;
  /** True: an entity of the file takes the place of one that is there. */
  readonly replace: boolean;
}

/** Yields the sums after each part. Throws with the lines of the part that failed: the parts before it stay written. */
export async function* importEntities(
  source: Pick<DataSource, "change">,
  into: ImportInto,
  entities: AsyncIterable<FileEntity>,
  signal: AbortSignal,
): AsyncGenerator<Imported, undefined> {
  let sum: Imported = { written: 0, kept: 0 };
  for await (const part of partsOf(entities)) {
    signal.throwIfAborted();
    const lines = `lines ${part[0]?.line} to ${part.at(-1)?.line}`;
    const sent = part.map(({ line: _, ...entity }) => entity);
    const told = await source.change("import-entities", { ...into, entities: sent }).catch((error: unknown) => {
      throw new Error(`${lines}: ${(error as Error).message}`);
    });
    sum = { written: sum.written + Number(told.number), kept: sum.kept + Number(told.kept) };
    yield sum;
  }
}

async function* partsOf(entities: AsyncIterable<FileEntity>): AsyncGenerator<readonly FileEntity[]> {
  let part: FileEntity[] = [];
  let characters = 0;
  for await (const entity of entities) {
    const { length } = JSON.stringify(entity);
    if (part.length === entitiesMax || (part.length > 0 && characters + length > charactersMax)) {
      yield part;
      [part, characters] = [[], 0];
    }
    part.push(entity);
    characters += length;
  }
  if (part.length > 0) yield part;
}
