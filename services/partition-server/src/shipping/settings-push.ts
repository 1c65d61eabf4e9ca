/**
 * Gives an account's keys and settings to its copy, as the owner of the account's first range: again and again, so that the copy knows that they are
 * in force (docs/design/geo.md "Keys and settings"). The settings themselves go only if the copy says that it has others.
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
  { epoch, paired = 0 }: AccountRole,
  signal: AbortSignal,
): Promise<Outcome<void>> {
  const ask = (asked: { readonly whole?: boolean; readonly confirmed?: Uint8Array }): Promise<Outcome<GetCopySettingsResponse>> =>
    manager.call(
      timeoutMs,
      (address, leftMs) => world.transport.client(address, Accounts).getCopySettings({ account, ...asked }, { timeoutMs: leftMs }),
      { idempotent: true, mayLackMethod: true },
    );
  // Settings go only when the copy has said which ones they replace: a word that is late finds others there.
  let replaces: Uint8Array | undefined;
  for (const whole of [false, true]) {
    const asked = await ask({ whole });
    if (!asked.ok) return asked;
    const { tag, settings } = asked.value;
    if (tag.length === 0 || signal.aborted) return ok();
    const word = {
      account,
      epoch: toWire(epoch),
      paired: toWire(paired),
      tag,
      ...(whole && settings && replaces && { settings, replaces }),
    };
    const told = await link.pushSettings(word, { timeoutMs, signal });
    if (!told.ok) return told;
    replaces = told.value;
    if (replaces !== undefined) continue;
    const noted = await ask({ confirmed: tag });
    return noted.ok ? ok() : noted;
  }
  return ok();
}
