/** Number of items of a list that are shown. */
const shownMax = 3;

export const fewNames = (all: readonly string[]): string =>
  all.length <= shownMax ? all.join(", ") : `${all.slice(0, shownMax).join(", ")} and ${all.length - shownMax} more`;
