import assert from "node:assert/strict";
import { test } from "node:test";
import { changedSettings } from "./account-settings.ts";

test("console: only settings that were changed in the page are sent", () => {
  const shown = {
    ...{ name: "acme", createdMs: 5, versioning: false, publicAccess: true, containerDays: 7, blobDays: 0, defaultServiceVersion: "" },
    ...{ scopes: [], cors: [] },
  };
  assert.deepEqual(changedSettings(shown, shown), {});
  assert.deepEqual(changedSettings(shown, { ...shown, publicAccess: false, blobDays: 9 }), { publicAccess: false });
  assert.deepEqual(changedSettings(shown, { ...shown, versioning: true, containerDays: 0 }), { versioning: true, containerDays: 0 });
});
