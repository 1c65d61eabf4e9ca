/**
 * Gives an account's keys and settings to its copy, as the owner of the account's first range: again and again, so that the copy knows that they are
 * in force (docs/design/geo.md "Keys and settings"). The settings themselves go only if the copy has not confirmed them.
 */
import { type Outcome, ok } from "@stamp/base";
import type { AccountRole } from "@stamp/geo";
import type { LeaderCalls } from "@stamp/metadata-store";
import type { World } from "@stamp/ports";
import { Accounts, type GetCopySettingsResponse, toWire } from "@stamp/wire";
import type { GeoLink } from "./geo-link.ts";

const timeoutMs = 5_000;

export async function pushSettings(
  world: World,
  manager: LeaderCalls,
  link: GeoLink,
  account: string,
  { epoch }: AccountRole,
  signal: AbortSignal,
): Promise<Outcome<void>> {
  const ask = (asked: { readonly whole?: boolean; readonly confirmed?: Uint8Array }): Promise<Outcome<GetCopySettingsResponse>> =>
    manager.call(
      timeoutMs,
      (address, leftMs) => world.transport.client(address, Accounts).getCopySettings({ account, ...asked }, { timeoutMs: leftMs }),
      { idempotent: true, mayLackMethod: true },
    );
  // The second time the copy wants to have them: its manager is a new one, or its row was changed since.
  for (const whole of [false, true]) {
    const asked = await ask({ whole });
    if (!asked.ok) return asked;
    const { tag, settings } = asked.value;
    if (tag.length === 0 || signal.aborted) return ok();
    const word = { account, epoch: toWire(epoch), tag, ...(settings && { settings }) };
    const wanted = await link.pushSettings(word, { timeoutMs, signal });
    if (!wanted.ok) return wanted;
    if (wanted.value) continue;
    const noted = await ask({ confirmed: tag });
    return noted.ok ? ok() : noted;
  }
  return ok();
}
