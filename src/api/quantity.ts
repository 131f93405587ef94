/**
 * Kubernetes quantities (`4Gi`, `500m`, `1e3`), as far as a manifest needs them: to check that one is well-formed and
 * within bounds. The manifest keeps the text as written; the kube-apiserver's own reading of it is what counts in the end.
 */

/** Characters of a quantity, so that the CRD can bound the cost of its rules. */
export const QUANTITY_CHARS_MAX = 10;

const QUANTITY =
  /^([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(?:([eE][+-]?[0-9]+)|(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE]))?$/;

const MULTIPLIERS: Readonly<Record<string, number>> = {
  n: 1e-9,
  u: 1e-6,
  m: 1e-3,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  E: 1e18,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
  Ei: 2 ** 60,
};

/**
 * The value of `quantity` in its base unit (bytes, cores), or null when it is not one. A bare number must be whole,
 * as for every int-or-string field of a CRD. Rounded to a double, which is enough to compare with bounds.
 */
export function parseQuantity(quantity: string | number): number | null {
  if (typeof quantity === 'number') return Number.isSafeInteger(quantity) ? quantity : null;
  if (quantity.length > QUANTITY_CHARS_MAX) return null;
  const match = QUANTITY.exec(quantity);
  if (match === null) return null;
  const [, digits, exponent, suffix] = match;
  if (exponent !== undefined) return Number(`${digits}${exponent}`);
  return Number(digits) * (suffix === undefined ? 1 : (MULTIPLIERS[suffix] ?? Number.NaN));
}
