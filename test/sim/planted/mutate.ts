/** Plants a bug: changes one source file on its way into this process. Must run before that file is loaded. */
import { registerHooks } from 'node:module';
import { pathToFileURL } from 'node:url';
import type { PlantedBug } from './bug.ts';

const ROOT = new URL('../../../', import.meta.url);

class NoLongerApplies extends Error {
  constructor({ name, file }: PlantedBug, count: number) {
    super(`planted bug "${name}": its text is in ${file} ${count} times, not once; it wants a new place`);
    this.name = 'NoLongerApplies';
  }
}

/** Returns how to find out whether the file was loaded. */
export function plant(bug: PlantedBug): () => boolean {
  const target = new URL(bug.file, pathToFileURL(ROOT.pathname)).href;
  let isPlanted = false;
  registerHooks({
    load(url, context, nextLoad) {
      const loaded = nextLoad(url, context);
      // With the query of the older program too (nodes/programs.ts).
      if (url.split('?')[0] !== target) return loaded;
      const source = String(loaded.source);
      const count = source.split(bug.from).length - 1;
      if (count !== 1) throw new NoLongerApplies(bug, count);
      isPlanted = true;
      return { ...loaded, source: source.replace(bug.from, () => bug.to) };
    },
  });
  return () => isPlanted;
}
