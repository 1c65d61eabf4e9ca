/** Schema of an init file (docs/guides/init.md): accounts and what is in them. */
import { checkContainerName, fromBase64, isAccountName, parseIso } from "@stamp/azure-rest";
import { z } from "zod";

const text = z.string().regex(/\S/, "a text that is not empty");
const metadata = z.record(z.string().regex(/^[a-z_][a-z0-9_]*$/i, "names of metadata are letters, digits and _"), z.string());
const overwrite = z.boolean().default(false);

const time = z.string().refine((text) => parseIso(text) !== undefined, "no time: 2026-11-29T00:00:00Z");

const policy = z.strictObject({
  id: text.max(64),
  permissions: z.string().optional(),
  startsOn: time.optional(),
  expiresOn: time.optional(),
});
const policies = z
  .array(policy)
  .max(5)
  .refine((all) => isUnique(all.map(({ id }) => id)), "an id stands there twice")
  .optional();

const corsRule = z.strictObject({
  allowedOrigins: z.array(text).min(1).max(64),
  allowedMethods: z.array(z.enum(["DELETE", "GET", "HEAD", "MERGE", "PATCH", "POST", "OPTIONS", "PUT"])).min(1),
  allowedHeaders: z.array(text).max(64).default([]),
  exposedHeaders: z.array(text).max(64).default([]),
  maxAgeSeconds: z.number().int().min(0).max(2_147_483_647).default(0),
});
const corsRules = z.array(corsRule).max(5).optional();

/** True for a path with a step in the tree. Clients and some systems take a backslash for a slash. */
export const climbs = (path: string): boolean => path.split(/[/\\]/).some((part) => part === "." || part === "..");

const container = z.strictObject({
  name: z.string().refine((name) => checkContainerName(name).ok, "no name of a container: 3 to 63 lower case letters, digits and single -"),
  publicAccess: z.enum(["none", "blob", "container"]).default("none"),
  metadata: metadata.default({}),
  policies,
  /** Folder whose files become blobs, named by their paths. */
  files: text.optional(),
  /** Goes before the path of each file. */
  prefix: z
    .string()
    .refine((prefix) => !climbs(prefix), 'no "." or ".." between slashes')
    .default(""),
  /** Content types by the ending of the name, dot included. */
  contentTypes: z.record(z.string().startsWith("."), text).default({}),
  overwrite,
});

const table = z.strictObject({
  name: z.string().regex(/^[a-z][a-z0-9]{2,62}$/i, "no name of a table: 3 to 63 letters and digits, a letter first"),
  policies,
  /** JSON lines: an entity each, as the REST API takes it. */
  entities: text.optional(),
  overwrite,
});

const queue = z.strictObject({
  name: z.string().regex(/^(?=.{3,63}$)[a-z0-9]+(-[a-z0-9]+)*$/, "no name of a queue: 3 to 63 lower case letters, digits and single -"),
  metadata: metadata.default({}),
  policies,
  /** Texts, or a file of JSON lines: a text each. */
  messages: z.union([z.array(z.string()).max(1_000), text], "a list of texts, or the name of a file of JSON lines").default([]),
  /** True to send messages in base64, as many clients expect. */
  base64: z.boolean().default(false),
  overwrite,
});

const account = z.strictObject({
  name: z.string().refine(isAccountName, "no name of an account: 3 to 24 lower case letters and digits"),
  keys: z
    .array(z.string().refine((key) => (fromBase64(key)?.length ?? 0) > 0, "no key in base64"))
    .min(1)
    .max(2)
    .optional(),
  hierarchicalNamespace: z.boolean().default(false),
  cors: z.strictObject({ blob: corsRules, queue: corsRules, table: corsRules, overwrite }).optional(),
  containers: z.array(container).max(10_000).refine(isNamedOnce, { error: twice }).default([]),
  tables: z
    .array(table)
    .max(10_000)
    .refine((all) => isUnique(all.map(({ name }) => name.toLowerCase())), { error: twice })
    .default([]),
  queues: z.array(queue).max(10_000).refine(isNamedOnce, { error: twice }).default([]),
});

export const initSchema = z.strictObject({
  $schema: z.string().optional(),
  accounts: z.array(account).max(1_000).refine(isNamedOnce, { error: twice }),
});

export type InitAccount = z.infer<typeof account>;
export type InitContainer = z.infer<typeof container>;
export type InitTable = z.infer<typeof table>;
export type InitQueue = z.infer<typeof queue>;
export type InitPolicies = z.infer<typeof policies>;
export type InitCorsRule = z.infer<typeof corsRule>;

function isUnique(names: readonly string[]): boolean {
  return new Set(names).size === names.length;
}

function isNamedOnce(all: readonly { readonly name: string }[]): boolean {
  return isUnique(all.map(({ name }) => name));
}

function twice({ input }: { readonly input?: unknown }): string {
  const names = (input as { readonly name: string }[]).map(({ name }) => String(name).toLowerCase());
  return `${names.find((name, at) => names.indexOf(name) !== at)} stands there twice`;
}
