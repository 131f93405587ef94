/**
 * Builders for the fields of the schema. Each takes its bounds once and makes three things of them: the check, the
 * message (what is expected, what was given, and often the way out) and the JSON Schema keywords for the CRD.
 * A message here starts behind the field's name ("must be ..."); validate.ts puts the name in front.
 */
import * as z from 'zod';
import { DURATION_CHARS_MAX, DURATION_PATTERN, formatDuration, parseDuration } from '../duration.ts';
import { nearest } from '../nearest.ts';
import { parseQuantity, QUANTITY_CHARS_MAX } from '../quantity.ts';
import { utf8Length } from '../text.ts';
import { DNS_LABEL_CHARS_MAX, DNS_SUBDOMAIN_CHARS_MAX } from './bounds.ts';

/** Characters of a given value that a message repeats. */
const SHOWN_CHARS_MAX = 60;

const DNS_LABEL = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
const DNS_SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

/** A value as a message shows it: short, on one line, without control characters. */
export function show(value: unknown): string {
  if (typeof value === 'string') {
    const cut = value.length > SHOWN_CHARS_MAX ? `${value.slice(0, SHOWN_CHARS_MAX)}...` : value;
    return JSON.stringify(cut).replace(/[\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g, '?');
  }
  if (Array.isArray(value)) return value.length === 0 ? 'an empty list' : `a list of ${value.length}`;
  if (typeof value === 'object' && value !== null) return 'a mapping';
  return `the ${typeof value} ${String(value)}`;
}

type Hint = (input: unknown) => string | undefined;

/** The message of every problem of one field: `expected` is a noun phrase that names the limit. */
function explain(expected: string, hint: Hint = () => undefined) {
  return ({ input }: { readonly input?: unknown }): string => {
    if (input === undefined) return `is missing: give ${expected}`;
    const wayOut = hint(input);
    return `must be ${expected}; got ${show(input)}${wayOut === undefined ? '' : `: ${wayOut}`}`;
  };
}

const quoteIt: Hint = (input) =>
  typeof input === 'number' || typeof input === 'boolean' ? 'put it in quotes' : undefined;

/** A field that is accepted, whatever it holds, and not used; messages do not offer it. */
export function ignored() {
  return z.unknown().optional();
}

/** The names of the fields of `shape` that people write. */
export function fieldNames(shape: z.core.$ZodLooseShape): readonly string[] {
  return Object.keys(shape).filter((name) => {
    const schema = shape[name];
    return !(schema instanceof z.ZodOptional && schema.unwrap() instanceof z.ZodUnknown);
  });
}

/** A mapping with exactly these fields. */
export function mapping<Shape extends z.ZodRawShape>(shape: Shape, noun: string) {
  return z.strictObject(shape, {
    error: explain(`${noun} (a mapping with ${fieldNames(shape).join(', ')})`),
  });
}

export function boolean() {
  return z.boolean({ error: explain('true or false') });
}

export function wholeNumber(min: number, max: number) {
  const error = explain(`a whole number from ${min} to ${max}`);
  return z.int({ error }).min(min, { error }).max(max, { error });
}

export function oneOf<const Values extends readonly [string, ...string[]]>(values: Values) {
  const error = explain(values.length === 1 ? values[0] : `one of ${values.join(', ')}`, (input) => {
    const near = typeof input === 'string' ? nearest(input, values) : undefined;
    return near === undefined ? undefined : `did you mean ${near}?`;
  });
  return z.enum(values, { error });
}

/** Text for people: not blank, well-formed, bounded in bytes of UTF-8. */
export function text(bytesMax: number) {
  const error = explain(`text of 1 to ${bytesMax} bytes of UTF-8`, quoteIt);
  return z
    .string({ error })
    .refine((value) => value.trim() !== '' && value.isWellFormed() && utf8Length(value) <= bytesMax, {
      error,
    })
    .meta({ minLength: 1, maxLength: bytesMax });
}

/** Text of a fixed form; `what` says which, with an example. */
export function matching(pattern: RegExp, charsMax: number, what: string) {
  const error = explain(`${what}, at most ${charsMax} characters`, quoteIt);
  return z.string({ error }).regex(pattern, { error }).max(charsMax, { error });
}

export function dnsLabel() {
  return matching(DNS_LABEL, DNS_LABEL_CHARS_MAX, 'a DNS label (a-z, 0-9 and - inside)');
}

export function dnsSubdomain() {
  return matching(DNS_SUBDOMAIN, DNS_SUBDOMAIN_CHARS_MAX, 'a DNS name (a-z, 0-9, - and . inside)');
}

/** A duration as text, see ../duration.ts. A bare number is refused: its unit would be a guess (case E03). */
export function duration(minMs: number, maxMs: number) {
  const range = `a duration from ${formatDuration(minMs)} to ${formatDuration(maxMs)}`;
  const error = explain(`${range}, in whole h, m, s or ms`, (input) =>
    typeof input === 'number' || (typeof input === 'string' && /^[0-9]+$/.test(input))
      ? `add the unit, for example ${input}s`
      : undefined,
  );
  const inRange = (value: string): boolean => {
    const valueMs = parseDuration(value);
    return valueMs !== null && valueMs >= minMs && valueMs <= maxMs;
  };
  return z
    .string({ error })
    .regex(DURATION_PATTERN, { error })
    .refine(inRange, { error })
    .meta({ maxLength: DURATION_CHARS_MAX });
}

/** A Kubernetes quantity, as text or as a whole number of the base unit. */
export function quantity(min: string, max: string) {
  const error = explain(`a quantity from ${min} to ${max}, at most ${QUANTITY_CHARS_MAX} characters`);
  const inRange = (value: string | number): boolean => {
    const amount = parseQuantity(value);
    return (
      amount !== null && amount >= (parseQuantity(min) ?? Infinity) && amount <= (parseQuantity(max) ?? 0)
    );
  };
  return z
    .union([z.string(), z.int()], { error })
    .refine(inRange, { error })
    .meta({ 'x-kubernetes-int-or-string': true, maxLength: QUANTITY_CHARS_MAX });
}

/** A list with bounds. An empty one is refused where `min` is 1, because it could be read as "all" or as "none". */
export function list<Item extends z.ZodType>(item: Item, min: number, max: number, noun: string) {
  const error = explain(`a list of ${min} to ${max} ${noun}`, (input) =>
    Array.isArray(input) && input.length < min ? 'leave the field out instead' : undefined,
  );
  return z.array(item, { error }).min(min, { error }).max(max, { error });
}

/** A list in which no item occurs twice, as `x-kubernetes-list-type: set`. */
export function set<Item extends z.ZodType<string>>(item: Item, min: number, max: number, noun: string) {
  return list(item, min, max, noun)
    .check((context) => {
      for (const [index, value] of context.value.entries()) {
        if (context.value.indexOf(value) === index) continue;
        const message = `${show(value)} stands in this list already: remove one`;
        context.issues.push({ code: 'custom', input: value, path: [index], message });
      }
    })
    .meta({ 'x-kubernetes-list-type': 'set' });
}

/** Labels or annotations: text by key, where every key has the form `[prefix/]name`. */
export function keyed<Value extends z.ZodType<string>>(value: Value, max: number, noun: string) {
  const error = explain(`a mapping of at most ${max} ${noun}`);
  return z.record(z.string(), value, { error }).check((context) => {
    const keys = Object.keys(context.value);
    if (keys.length > max) {
      const message = `must be a mapping of at most ${max} ${noun}; got ${keys.length}`;
      context.issues.push({ code: 'custom', input: context.value, path: [], message });
    }
    for (const key of keys) {
      if (isLabelKey(key)) continue;
      const message = `must have a key of the form [DNS name/]name, the name of at most 63 of A-Z a-z 0-9 - _ .`;
      context.issues.push({ code: 'custom', input: key, path: [key], params: { at: 'key' }, message });
    }
  });
}

const LABEL_NAME = /^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;

function isLabelKey(key: string): boolean {
  const slash = key.indexOf('/');
  if (slash === -1) return LABEL_NAME.test(key);
  const prefix = key.slice(0, slash);
  const prefixIsName = prefix.length <= DNS_SUBDOMAIN_CHARS_MAX && DNS_SUBDOMAIN.test(prefix);
  return prefixIsName && LABEL_NAME.test(key.slice(slash + 1));
}

/** The key of a label, as a field of its own (in a selector). */
export function labelKey() {
  const error = explain('a label key of the form [DNS name/]name');
  return z
    .string({ error })
    .refine(isLabelKey, { error })
    .meta({ maxLength: DNS_SUBDOMAIN_CHARS_MAX + 1 + DNS_LABEL_CHARS_MAX });
}

export function labelValue() {
  const form = 'a label value (empty, or A-Z a-z 0-9 with - _ . inside)';
  return matching(/^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$/, DNS_LABEL_CHARS_MAX, form);
}

export function annotationValue(bytesMax: number) {
  const error = explain(`text of at most ${bytesMax} bytes of UTF-8`, quoteIt);
  return z.string({ error }).refine((value) => utf8Length(value) <= bytesMax, { error });
}
