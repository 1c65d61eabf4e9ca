/** Changes of entities: one at a time, or those of a file. The audit log has no values of theirs. */
import type { DataClients } from "../clients.ts";
import { FieldError, type Fields, listIn, objectsIn, shown, textIn, wordIn } from "../fields.ts";

const tableIn = (clients: DataClients, fields: Fields) => clients.table(wordIn(fields, "account"), wordIn(fields, "table"));

/** The service takes no more. */
const propertiesMax = 252;
/** Names that the SDK takes for something else than a property of the person's, or drops without a word. */
const namesOfSdk = ["partitionkey", "rowkey", "timestamp", "etag", "__proto__", ""];

/** Entity that the page sends, as the SDK takes it. */
function entityIn(fields: Fields) {
  const properties = listIn(fields, "properties", ["name", "type", "value"], propertiesMax);
  const known = new Set<string>();
  for (const { name } of properties) {
    // "a@odata.type" would be the type of "a".
    if (namesOfSdk.includes(name.toLowerCase()) || name.startsWith("odata.") || name.includes("@"))
      throw new FieldError(`a property can't be named ${shown(name)}: choose another name`);
    if (known.has(name)) throw new FieldError(`${shown(name)} is there twice: take one out`);
    known.add(name);
  }
  return {
    ...Object.fromEntries(properties.map(({ name, type, value }) => [name, typedFor(name, type, value)])),
    partitionKey: textIn(fields, "partitionKey"),
    rowKey: textIn(fields, "rowKey"),
  };
}

/** Without an ETag the entity is new. `removed`: the person took a property out, so that the others take the place of all. */
export async function putEntity(clients: DataClients, fields: Fields, abortSignal: AbortSignal): Promise<object> {
  const entity = entityIn(fields);
  const table = await tableIn(clients, fields);
  const { etag, removed } = fields;
  if (etag === undefined) await table.createEntity(entity, { abortSignal });
  else await table.updateEntity(entity, removed === true ? "Replace" : "Merge", { abortSignal, etag: wordIn(fields, "etag") });
  return {};
}

const passedOn = ["String", "Int64", "DateTime", "Guid", "Binary"];

/** Value as the SDK sends it with its type. Throws if the text is none of the type. The service looks at what is passed on as text. */
function typedFor(name: string, type: string, value: string): unknown {
  const wrong = (expected: string): Error => new FieldError(`${shown(name)} is ${shown(value)}: ${expected}`);
  if (type === "Boolean") {
    if (value !== "true" && value !== "false") throw wrong("a Boolean is true or false");
    return { type, value: value === "true" };
  }
  if (type === "Int32") {
    const number = Number(value);
    if (!/^-?\d+$/.test(value) || (number | 0) !== number) throw wrong("an Int32 is a whole number, -2147483648 to 2147483647");
    return { type, value: number };
  }
  if (type === "Int64" && !/^-?\d{1,19}$/.test(value)) throw wrong("an Int64 is a whole number of up to 19 digits");
  if (type === "Double") {
    if (["NaN", "Infinity", "-Infinity"].includes(value)) return { type, value };
    const number = Number(value);
    if (value.trim() === "" || !Number.isFinite(number)) throw wrong("a Double is a number, NaN, Infinity or -Infinity");
    return { type, value: number };
  }
  if (!passedOn.includes(type)) throw new FieldError(`${shown(name)} has the type ${shown(type)}, which the service does not know`);
  return { type, value };
}

export async function deleteEntity(clients: DataClients, fields: Fields, abortSignal: AbortSignal): Promise<object> {
  const table = await tableIn(clients, fields);
  await table.deleteEntity(textIn(fields, "partitionKey"), textIn(fields, "rowKey"), { abortSignal, etag: wordIn(fields, "etag") });
  return {};
}

const importedMax = 500;
const writersMax = 16;

/**
 * Writes a part of a file. `replace`: an entity that is there already is replaced; else it is kept. Returns how many were written and kept. An
 * entity that the service refuses ends the part; what others of it were written stays.
 */
export async function importEntities(clients: DataClients, fields: Fields, abortSignal: AbortSignal): Promise<object> {
  const entities = objectsIn(fields, "entities", importedMax).map(entityIn);
  const table = await tableIn(clients, fields);
  const told = { number: 0, kept: 0 };
  const rest = entities.values();
  const writer = async (): Promise<void> => {
    for (const entity of rest) {
      try {
        if (fields.replace === true) await table.upsertEntity(entity, "Replace", { abortSignal });
        else await table.createEntity(entity, { abortSignal });
        told.number++;
      } catch (error) {
        if ((error as { readonly details?: { readonly errorCode?: string } }).details?.errorCode !== "EntityAlreadyExists") throw error;
        told.kept++;
      }
    }
  };
  await Promise.all(Array.from({ length: writersMax }, writer));
  return told;
}
