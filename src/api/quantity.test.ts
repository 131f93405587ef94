// Quantities: which texts Kubernetes would take, and what they are worth.
import { describe, expect, it } from 'vitest';
import { parseQuantity } from './quantity.ts';

describe('parseQuantity', () => {
  it.each([
    ['0', 0],
    ['4Gi', 4 * 2 ** 30],
    ['1.5Gi', 1.5 * 2 ** 30],
    ['.5Ki', 512],
    ['5.', 5],
    ['1Ti', 2 ** 40],
    ['64Mi', 64 * 2 ** 20],
    ['500m', 0.5],
    ['2k', 2_000],
    ['3G', 3e9],
    ['1e3', 1_000],
    ['1E3', 1_000],
    ['1E', 1e18],
    ['12e-1', 1.2],
    ['-1', -1],
    [4_294_967_296, 4_294_967_296],
    [0, 0],
  ])('reads %j', (quantity, value) => {
    expect(parseQuantity(quantity)).toBeCloseTo(value, 9);
  });

  it.each([
    '',
    '4gi',
    '4GB',
    '4 Gi',
    'Gi',
    '4Gi ',
    '0x10',
    '1e',
    '--1',
    'NaN',
    'Infinity',
    '12345678901',
    0.5,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    2 ** 60,
  ])('refuses %j', (quantity) => {
    expect(parseQuantity(quantity)).toBeNull();
  });
});
