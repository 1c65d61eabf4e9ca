/** Operations on the tree of a request. */
import type { TreeName } from "@stamp/objects";
import type { Machine, MachineContext, Result } from "@stamp/tree";
import type { Exchange } from "../exchange.ts";

/** Runs an operation on the tree. Of a caller who was judged, it touches nothing but what was looked at (judge.ts). */
export function runInTree<T>(
  { objects, admitted, limits }: Pick<Exchange, "objects" | "admitted" | "limits">,
  tree: TreeName,
  make: (context: MachineContext) => Machine<T>,
): Promise<Result<T>> {
  const admits = admitted && ((id: string) => admitted.has(id));
  return objects.parts.trees.run(tree, (context) => make({ ...context, admits }), limits());
}
