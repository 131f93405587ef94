/**
 * Constants of the product that no run comes near, and that some runs have much smaller, so that what happens beyond them happens all the
 * time. The product has no switch for them: here their lines are changed while the files are loaded, in each copy of a file (programs.ts), so
 * that core, judge and checker have the same.
 */
import { registerHooks } from 'node:module';

export interface Constants {
  /** Consequences that one entry carries out at most (rule C1). */
  readonly transitionsMax: number;
  /** A leader alone writes its snapshot from a second state if its own has more records than that (ADR 28). */
  readonly onePassRecordsMax: number;
}

export const SHIPPED: Constants = { transitionsMax: 2_000, onePassRecordsMax: 10_000 };

interface Place {
  readonly file: string;
  /** Up to the value; must be in the file exactly once. */
  readonly declaration: string;
  readonly name: string;
}

const PLACES: Readonly<Record<keyof Constants, Place>> = {
  transitionsMax: {
    file: 'src/api/limits.ts',
    declaration: 'export const TRANSITIONS_PER_ENTRY_MAX = ',
    name: 'TRANSITIONS_PER_ENTRY_MAX',
  },
  onePassRecordsMax: {
    file: 'src/server/snapshots/snapshots.ts',
    declaration: 'const ONE_PASS_RECORDS_MAX = ',
    name: 'ONE_PASS_RECORDS_MAX',
  },
};
const KINDS = Object.keys(PLACES) as readonly (keyof Constants)[];

const ROOT = new URL('../../../', import.meta.url);
/** Under it lies a function for each copy of each file that was loaded, with the constant that it sets. */
const SETTERS = Symbol.for('leasehold simulator: setters of constants');

type Setters = (readonly [kind: keyof Constants, set: (value: number) => void])[];

/** What is of the process, whatever loader has loaded this file. */
const shared = globalThis as { [SETTERS]?: Setters };

/** To be called before anything that loads one of the files; again, it does nothing. */
export function hookConstants(): void {
  if (shared[SETTERS] !== undefined) return;
  shared[SETTERS] = [];
  registerHooks({
    load(url, context, nextLoad) {
      const loaded = nextLoad(url, context);
      const kind = KINDS.find((one) => url.split('?')[0] === new URL(PLACES[one].file, ROOT).href);
      return kind === undefined ? loaded : { ...loaded, source: settable(String(loaded.source), kind) };
    },
  });
}

/** For the run that begins, everywhere. */
export function setConstants(constants: Constants): void {
  const setters = shared[SETTERS] ?? [];
  for (const kind of KINDS) {
    if (setters.every(([one]) => one !== kind))
      throw new Error(`${PLACES[kind].file} was loaded before ${PLACES[kind].name} could be made settable`);
  }
  for (const [kind, set] of setters) set(constants[kind]);
}

function settable(source: string, kind: keyof Constants): string {
  const { file, declaration, name } = PLACES[kind];
  const digits = SHIPPED[kind].toString().replace(/\B(?=(\d{3})+$)/g, '_');
  const line = `${declaration}${digits};`;
  if (source.split(line).length !== 2) throw new Error(`${file} does not say ${line} once`);
  const setter = `globalThis[Symbol.for(${JSON.stringify(SETTERS.description)})].push(['${kind}', (value) => { ${name} = value; }]);`;
  return source.replace(line, `${line.replace('const ', 'let ')}\n${setter}`);
}
