/**
 * What tests expect of the checker. A bad history is refused for one property and no other, and the verdict names the tokens and
 * the log indexes of the events that show it. Index 1 opens the sessions; the first `entry` after it has index 2.
 */
import { describe, expect, it } from 'vitest';
import type { CheckerOptions } from './checker.ts';
import { begun, ended, ending, expired, granted, type History } from './history.fixture.ts';
import type { FinishOptions } from './property.ts';
import type { PropertyName, Verdict } from './verdict.ts';

interface Bad {
  readonly history: History;
  readonly tokens: readonly number[];
  readonly indexes: readonly number[];
  readonly options?: CheckerOptions;
  readonly finish?: FinishOptions;
}

export function refuses(property: PropertyName, cases: Readonly<Record<string, () => Bad>>): void {
  describe(property, () => {
    it.each(Object.entries(cases))('refuses %s', (_title, make) => {
      const { history, tokens, indexes, options, finish } = make();
      const verdict = history.check(options, finish);
      expect(verdict.ok).toBe(false);
      expect(verdict.violations.map((violation) => violation.property)).toEqual(
        verdict.violations.map(() => property),
      );
      expect(verdict.violations[0]).toMatchObject({ property, tokens, indexes });
      expect(verdict.violations[0]?.rules).toMatch(/rule|promise/);
      expect(verdict.counts.violations).toBe(verdict.violations.length);
    });
  });
}

/** The grant most histories are about, and its report to the client. */
export const ofGrant = { session: 1, name: 'a', token: 1_001 };
export const reported = { type: 'grantReported', ...ofGrant, key: 'key-1001', at: 10 } as const;
/** Session 1 holds `a` from index 2 on, and expires at 15 s, index 62. */
export const expiry = (): History =>
  begun().entry(granted(1_001, 1)).pass(15_000).entry(ending(1), expired(1_001, 1), ended(1));
/** The index of the latest entry. */
export const last = (history: History): number => history.index;

/** The checker has nothing to say against the history. */
export function expectAccepted(verdict: Verdict): void {
  expect(verdict.violations).toEqual([]);
  expect(verdict.ok).toBe(true);
}
