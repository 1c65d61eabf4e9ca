/** Calls of FeatureLevels: only the leader answers. */
import { type Outcome, ok } from "@stamp/base";
import type { Handlers } from "@stamp/ports";
import type { FeatureLevels } from "@stamp/wire";
import type { StampLevel } from "./stamp-level.ts";

/** `leading` is refused while this process does not lead. */
export const featureLevelHandlers = (leading: () => Outcome<StampLevel>): Handlers<typeof FeatureLevels> => ({
  announce: async (request) => {
    const led = leading();
    if (!led.ok) return led;
    const level = led.value.announce(request);
    return level.ok ? ok({ level: level.value }) : level;
  },
  getFeatureLevel: async () => {
    const led = leading();
    return led.ok ? ok(led.value.view) : led;
  },
  setFeatureLevel: async ({ level }) => {
    const led = leading();
    if (!led.ok) return led;
    const set = await led.value.set(level);
    return set.ok ? ok(led.value.view) : set;
  },
});
