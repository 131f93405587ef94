/** Plants a bug: changes source files on their way into this process. Must run before they are loaded. */
import { registerHooks } from 'node:module';
import { pathToFileURL } from 'node:url';
import { type Change, changesOf, type PlantedBug } from './bug.ts';

const ROOT = new URL('../../../', import.meta.url);

class NoLongerApplies extends Error {
  constructor(name: string, { file }: Change, count: number) {
    super(`planted bug "${name}": its text is in ${file} ${count} times, not once; it wants a new place`);
    this.name = 'NoLongerApplies';
  }
}

/** Returns how to find out whether all of it was loaded. */
export function plant(bug: PlantedBug): () => boolean {
  const changes = new Map(
    changesOf(bug).map((change) => [new URL(change.file, pathToFileURL(ROOT.pathname)).href, change]),
  );
  const planted = new Set<Change>();
  registerHooks({
    load(url, context, nextLoad) {
      const loaded = nextLoad(url, context);
      // With the query of the older program too (nodes/programs.ts).
      const change = changes.get(url.split('?')[0] as string);
      if (change === undefined) return loaded;
      const source = String(loaded.source);
      const count = source.split(change.from).length - 1;
      if (count !== 1) throw new NoLongerApplies(bug.name, change, count);
      planted.add(change);
      return { ...loaded, source: source.replace(change.from, () => change.to) };
    },
  });
  return () => planted.size === changes.size;
}
