/**
 * Two versions of the lock server side by side (rule C15): the shipped one, and the same sources loaded a second time as a program that
 * knows one behaviour level less. What versions differ in is loaded twice: the core, the server and the limits. Log and platform are the
 * machine that both run on.
 */
import { registerHooks } from 'node:module';
import { BEHAVIOUR_LEVEL_MAX } from '../../../src/api/limits.ts';
import { Member } from '../../../src/server/member/member.ts';

export type Program = 'shipped' | 'older';

/** Highest behaviour level that each can apply. */
export const LEVELS: Readonly<Record<Program, number>> = {
  shipped: BEHAVIOUR_LEVEL_MAX,
  older: BEHAVIOUR_LEVEL_MAX - 1,
};

const OLDER = '?program=older';
const LOADED_TWICE = /\/src\/(core|server)\/|\/src\/api\/limits\.ts$/;
const LEVEL_LINE = `BEHAVIOUR_LEVEL_MAX = ${LEVELS.shipped};`;
const MEMBER = new URL('../../../src/server/member/member.ts', import.meta.url).href;

let older: typeof Member | null = null;

/** To be called before a run in which somebody runs the older program: nothing is loaded while virtual time passes. */
export async function loadOlder(): Promise<void> {
  if (older !== null) return;
  hookOlder();
  older = ((await import(MEMBER + OLDER)) as { readonly Member: typeof Member }).Member;
}

export function memberOf(program: Program): typeof Member {
  if (program === 'shipped') return Member;
  if (older === null) throw new Error('the older program is not loaded');
  return older;
}

function hookOlder(): void {
  registerHooks({
    resolve(specifier, context, nextResolve) {
      const found = nextResolve(specifier, context);
      const isPart = context.parentURL?.endsWith(OLDER) === true && LOADED_TWICE.test(found.url);
      return isPart ? { ...found, url: found.url + OLDER } : found;
    },
    load(url, context, nextLoad) {
      const loaded = nextLoad(url, context);
      if (!url.endsWith(`/src/api/limits.ts${OLDER}`)) return loaded;
      const source = String(loaded.source);
      if (!source.includes(LEVEL_LINE)) throw new Error(`limits.ts does not say ${LEVEL_LINE}`);
      return { ...loaded, source: source.replace(LEVEL_LINE, `BEHAVIOUR_LEVEL_MAX = ${LEVELS.older};`) };
    },
  });
}
