// Suggestions: near misses are named, anything else is not.
import { describe, expect, it } from 'vitest';
import { nearest } from './nearest.ts';

const fields = ['ttl', 'minTTL', 'maxTTL', 'lockDelay', 'maxHold', 'fencedResource', 'wait_ms'];

describe('nearest', () => {
  it.each([
    ['TTL', 'ttl'],
    ['maxTtl', 'maxTTL'],
    ['maxhold', 'maxHold'],
    ['lokcDelay', 'lockDelay'],
    ['lockdelays', 'lockDelay'],
    ['fencedResouce', 'fencedResource'],
    ['tl', 'ttl'],
    ['waitMs', 'wait_ms'],
    ['wait_', 'wait_ms'],
  ])('takes %s for %s', (word, meant) => {
    expect(nearest(word, fields)).toBe(meant);
  });

  it.each(['', 'a', 'name', 'timeout', 'holdMax', 'x'.repeat(5_000)])('has no suggestion for %j', (word) => {
    expect(nearest(word, fields)).toBeUndefined();
  });
});
