/** Rule that makes requests fail or wait on purpose, and its schema. */
import { blobOperationNames, dataLakeOperationNames, queueOperationNames, tableOperationNames } from "@stamp/azure-rest";
import { z } from "zod";

export const faultNames = ["busy", "error-before", "error-after", "delay", "cut", "throttle", "stale-secondary"] as const;
export type FaultName = (typeof faultNames)[number];

/** Numbers that a fault needs, and optional ones. */
const numbersOf: Readonly<Record<FaultName, { readonly needs: readonly NumberName[]; readonly takes: readonly NumberName[] }>> = {
  busy: { needs: [], takes: ["retryAfterSeconds"] },
  "error-before": { needs: [], takes: [] },
  "error-after": { needs: [], takes: [] },
  delay: { needs: ["delayMs"], takes: [] },
  cut: { needs: ["afterBytes"], takes: [] },
  throttle: { needs: ["perSecond"], takes: ["retryAfterSeconds"] },
  "stale-secondary": { needs: ["behindMs"], takes: [] },
};
const numberNames = ["retryAfterSeconds", "delayMs", "afterBytes", "perSecond", "behindMs"] as const;
type NumberName = (typeof numberNames)[number];

const dayMs = 24 * 3_600_000;
/** Longest delay of a request, in milliseconds: a connection on which nothing moves for 120 s is closed. */
export const delayMaxMs = 100_000;
const whole = (min: number, max: number) => z.number().int().min(min).max(max).optional();
const operations: readonly string[] = [...blobOperationNames, ...dataLakeOperationNames, ...queueOperationNames, ...tableOperationNames];

const faultRuleSchema = z
  .strictObject({
    id: z
      .string()
      .regex(/^[\w.-]{1,64}$/, "1 to 64 letters, digits, dots, hyphens and underscores")
      .optional(),
    fault: z.enum(faultNames),
    account: z
      .string()
      .regex(/^[a-z0-9]{3,24}$/, "3 to 24 lower case letters and digits")
      .optional(),
    service: z.enum(["blob", "queue", "table"]).optional(),
    operation: z
      .string()
      .refine((name) => operations.includes(name), "the name of an operation in the REST reference, such as PutBlob")
      .optional(),
    header: z
      .string()
      .max(256)
      .regex(/^[!#$%&'*+.^`|~\w-]+(:.*)?$/, "NAME, or NAME: VALUE")
      .optional(),
    share: z.number().gt(0).max(1).optional(),
    count: whole(1, 1_000_000_000),
    startsAfterMs: whole(0, dayMs),
    endsAfterMs: whole(1, dayMs),
    retryAfterSeconds: whole(1, 3_600),
    delayMs: whole(1, delayMaxMs),
    afterBytes: whole(0, Number.MAX_SAFE_INTEGER),
    perSecond: whole(1, 1_000_000),
    behindMs: whole(1, dayMs),
  })
  .superRefine((rule, context) => {
    const { needs, takes } = numbersOf[rule.fault];
    for (const name of numberNames) {
      if (rule[name] === undefined && needs.includes(name))
        context.addIssue({ code: "custom", path: [name], message: `${rule.fault} needs it` });
      if (rule[name] !== undefined && !needs.includes(name) && !takes.includes(name))
        context.addIssue({ code: "custom", path: [name], message: `${rule.fault} takes none` });
    }
    if (rule.startsAfterMs !== undefined && rule.endsAfterMs !== undefined && rule.startsAfterMs >= rule.endsAfterMs)
      context.addIssue({ code: "custom", path: ["endsAfterMs"], message: "it has to be above startsAfterMs" });
  });

type Parsed = z.infer<typeof faultRuleSchema>;
/** Fault rule; keys whose value is undefined are left out. */
export type FaultRule = { readonly [Key in keyof Parsed]: Exclude<Parsed[Key], undefined> };

/** Returns the rule, or an error in words. Keys whose value is undefined count as absent. */
export function parseFaultRule(value: unknown): { readonly rule: FaultRule } | { readonly problem: string } {
  const { success, data, error } = faultRuleSchema.safeParse(value);
  if (success) return { rule: Object.fromEntries(Object.entries(data).filter(([, given]) => given !== undefined)) as FaultRule };
  return { problem: error.issues.map(({ path, message }) => `${path.join(".") || "the rule"}: ${message}`).join("; ") };
}
