/**
 * How many consequences an entry may carry out (rule C1): 2,000 in the shipped program, which no run comes near. Some runs have a few, so
 * that cursors and sliced ends are crossed all the time. It is a constant of the product, without a switch: here its line is changed while
 * the file is loaded, in each copy of it (programs.ts), so that core, judge and checker have the same bound.
 */
import { registerHooks } from 'node:module';

export const TRANSITIONS_SHIPPED = 2_000;

const LIMITS = new URL('../../../src/api/limits.ts', import.meta.url).href;
const LINE = 'export const TRANSITIONS_PER_ENTRY_MAX = 2_000;';
/** Under it lies a function for each copy that was loaded. */
const SETTERS = Symbol.for('leasehold simulator: setters of TRANSITIONS_PER_ENTRY_MAX');

type Setters = ((max: number) => void)[];

let isHooked = false;

/** To be called before anything that loads limits.ts; again, it does nothing. */
export function hookTransitions(): void {
  if (isHooked) return;
  isHooked = true;
  registerHooks({
    load(url, context, nextLoad) {
      const loaded = nextLoad(url, context);
      if (url.split('?')[0] !== LIMITS) return loaded;
      const source = String(loaded.source);
      if (!source.includes(LINE)) throw new Error(`limits.ts does not say ${LINE}`);
      return { ...loaded, source: source.replace(LINE, settable()) };
    },
  });
}

/** For the run that begins: everybody's bound. */
export function setTransitions(max: number): void {
  const setters = (globalThis as { [SETTERS]?: Setters })[SETTERS];
  if (setters === undefined) throw new Error('limits.ts was loaded before its bound could be made settable');
  for (const set of setters) set(max);
}

function settable(): string {
  return `export let TRANSITIONS_PER_ENTRY_MAX = ${TRANSITIONS_SHIPPED};
(globalThis[Symbol.for(${JSON.stringify(SETTERS.description)})] ??= []).push((max) => { TRANSITIONS_PER_ENTRY_MAX = max; });`;
}
