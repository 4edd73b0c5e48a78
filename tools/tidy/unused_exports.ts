/**
 * Exported functions, classes and values in `src/` that no other file imports. Types are exempt:
 * they are exported because the signatures of exported functions use them.
 */
import { join } from "node:path";

const DECLARATION = /^export (?:abstract )?(?:async )?(?:function\*? ?|const |let |class )(\w+)/gm;
const LIST = /^(?:import|export) (?:type )?\{([^}]*)\} from "(\.[^"]+)"/gm;
/** Matches an import of everything: a namespace import, `export *` or a dynamic import. */
const WHOLE = /(?:^export \* from |^import \* as \w+ from |import\()"(\.[^"]+)"/gm;

/** Returns the names that a module imports from the tree: `path#name`, or `path#*` for all. */
function takenBy(path: string, text: string): string[] {
  const target = (specifier: string) => join(path, "..", specifier);
  const named = [...text.matchAll(LIST)].flatMap(([, names, from]) =>
    namesIn(names!).map((name) => `${target(from!)}#${name}`)
  );
  return [...named, ...[...text.matchAll(WHOLE)].map(([, from]) => `${target(from!)}#*`)];
}

/** Returns the names in a braced import list, as exported by their module. */
function namesIn(list: string): string[] {
  return list.split(",").map((item) => item.trim().replace(/^type /, "").split(" as ")[0]!)
    .filter((name) => name !== "");
}

/**
 * @param files paths of all modules in the tree.
 * @param read returns the source of a module.
 */
export function findUnusedExports(files: string[], read: (path: string) => string): string[] {
  const taken = new Set(files.flatMap((path) => takenBy(path, read(path))));
  return files.filter((path) => path.startsWith("src/")).flatMap((path) => {
    if (taken.has(`${path}#*`)) return [];
    const names = [...read(path).matchAll(DECLARATION)].map(([, name]) => name!);
    return names.filter((name) => !taken.has(`${path}#${name}`))
      .map((name) => `${path}: exports ${name}, which no other file imports`);
  });
}
