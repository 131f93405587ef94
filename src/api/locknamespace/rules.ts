/**
 * The rules that span fields of a LockNamespace; each becomes a CEL rule of the CRD.
 * They read the manifest as written, through the schema of just the fields they need: so a broken field elsewhere never
 * hides a broken rule, and one run reports everything. A rule whose own fields are broken stays silent.
 */
import type * as z from 'zod';
import { parseDuration } from '../duration.ts';
import { nameProblem } from '../names.ts';
import { parseQuantity } from '../quantity.ts';
import { CORRECTNESS_REPLICAS_MIN } from './bounds.ts';
import { show } from './fields.ts';
import { specFields } from './schema.ts';

/** Where in a manifest: keys of mappings and indexes of lists, from the top. */
export type FieldPath = readonly (string | number)[];

/** `key`: the field's name is wrong; `value`: what it holds is; `missing`: it is not there. */
export interface Problem {
  readonly at: 'key' | 'value' | 'missing';
  readonly path: FieldPath;
  /** A sentence that names the field, the limit and the way out. */
  readonly message: string;
}

type Rule = (spec: Record<string, unknown>) => readonly Problem[];

/** All rules broken by `manifest` (any value, nulls already dropped). */
export function brokenRules(manifest: unknown): Problem[] {
  const spec = mappingAt(manifest, 'spec');
  if (spec === undefined) return [];
  const rules: readonly Rule[] = [
    correctnessNamesItsResource,
    correctnessNeedsQuorum,
    correctnessIsExclusive,
    sharedNeedsExclusive,
    semaphoresAndModeGoTogether,
    patternsAreNamesAndUnique,
    ttlsAreOrdered,
    requestsFitLimits,
    consumersAreClear,
    selectorsAreComplete,
  ];
  return rules.flatMap((rule) => rule(spec));
}

function correctnessNamesItsResource(spec: Record<string, unknown>): readonly Problem[] {
  const safety = mappingAt(spec, 'safety');
  if (safetyClass(spec) !== 'Correctness' || safety?.fencedResource !== undefined) return [];
  const message =
    'fencedResource is missing: class Correctness needs kind, name and check of the resource that refuses older tokens; ' +
    'where nothing checks them, the class is Efficiency';
  return [{ at: 'missing', path: ['spec', 'safety', 'fencedResource'], message }];
}

function correctnessNeedsQuorum(spec: Record<string, unknown>): readonly Problem[] {
  const replicas = read(specFields.group.unwrap().shape.replicas, mappingAt(spec, 'group')?.replicas);
  if (safetyClass(spec) !== 'Correctness' || replicas === undefined || replicas >= CORRECTNESS_REPLICAS_MIN)
    return [];
  const message = `replicas must be 3 or 5 with class Correctness; got ${replicas}`;
  return [{ at: 'value', path: ['spec', 'group', 'replicas'], message }];
}

function correctnessIsExclusive(spec: Record<string, unknown>): readonly Problem[] {
  const index = modes(spec).indexOf('Semaphore');
  if (safetyClass(spec) !== 'Correctness' || index === -1) return [];
  const message =
    'modes must not hold Semaphore with class Correctness: tokens of several holders fence nothing; ' +
    'move the semaphores to a LockNamespace of class Efficiency';
  return [{ at: 'value', path: ['spec', 'modes', index], message }];
}

/** Semaphores alone are useful; a shared lock without writers to keep out is not a lock. */
function sharedNeedsExclusive(spec: Record<string, unknown>): readonly Problem[] {
  const index = modes(spec).indexOf('Shared');
  if (index === -1 || modes(spec).includes('Exclusive')) return [];
  const message =
    'modes must hold Exclusive beside Shared: readers without writers exclude nobody; add Exclusive';
  return [{ at: 'value', path: ['spec', 'modes', index], message }];
}

function semaphoresAndModeGoTogether(spec: Record<string, unknown>): readonly Problem[] {
  const written = spec.semaphores;
  const modesAreRead = read(specFields.modes, spec.modes) !== undefined;
  if (!modesAreRead || (written !== undefined && !Array.isArray(written))) return [];
  const index = modes(spec).indexOf('Semaphore');
  const isEmpty = written === undefined || written.length === 0;
  if (index === -1 && !isEmpty) {
    const message =
      'semaphores must be empty without mode Semaphore: add Semaphore to spec.modes or remove them';
    return [{ at: 'value', path: ['spec', 'semaphores'], message }];
  }
  if (index !== -1 && isEmpty) {
    const message =
      'modes must not hold Semaphore without spec.semaphores: add a pattern with its permits or remove Semaphore';
    return [{ at: 'value', path: ['spec', 'modes', index], message }];
  }
  return [];
}

function patternsAreNamesAndUnique(spec: Record<string, unknown>): readonly Problem[] {
  const problems: Problem[] = [];
  const firstAt = new Map<string, number>();
  for (const [index, item] of listAt(spec, 'semaphores').entries()) {
    const pattern = mappingOf(item)?.pattern;
    if (typeof pattern !== 'string') continue;
    const path = ['spec', 'semaphores', index, 'pattern'];
    const first = firstAt.get(pattern);
    const wrong = nameProblem(pattern);
    if (wrong !== null) problems.push({ at: 'value', path, message: `pattern must be a name: ${wrong}` });
    if (first === undefined) firstAt.set(pattern, index);
    else {
      const message = `pattern ${show(pattern)} stands in spec.semaphores[${first}] already: remove one`;
      problems.push({ at: 'value', path, message });
    }
  }
  return problems;
}

function ttlsAreOrdered(spec: Record<string, unknown>): readonly Problem[] {
  const lease = spec.lease === undefined ? {} : mappingAt(spec, 'lease');
  if (lease === undefined) return [];
  return [...ordered(lease, 'minTTL', 'ttl'), ...ordered(lease, 'ttl', 'maxTTL')];
}

function ordered(
  lease: Record<string, unknown>,
  lower: 'minTTL' | 'ttl',
  upper: 'ttl' | 'maxTTL',
): readonly Problem[] {
  const shape = specFields.lease.unwrap().shape;
  const [low, high] = [read(shape[lower], lease[lower]), read(shape[upper], lease[upper])];
  if (low === undefined || high === undefined || (parseDuration(low) ?? 0) <= (parseDuration(high) ?? 0))
    return [];
  // The fault is shown at a field that somebody wrote, never at a default.
  const name = lease[upper] === undefined ? lower : upper;
  const written = (field: string, value: string) =>
    lease[field] === undefined ? `${field} ${value} (the default)` : `${field} ${value}`;
  const message = `${name} breaks minTTL <= ttl <= maxTTL: got ${written(lower, low)} above ${written(upper, high)}`;
  return [{ at: 'value', path: ['spec', 'lease', name], message: `${message}; change one of them` }];
}

function requestsFitLimits(spec: Record<string, unknown>): readonly Problem[] {
  const resources = mappingAt(mappingAt(spec, 'group'), 'resources');
  const [requests, limits] = [mappingAt(resources, 'requests'), mappingAt(resources, 'limits')];
  if (requests === undefined || limits === undefined) return [];
  return ['cpu', 'memory'].flatMap((name) => {
    const [request, limit] = [requests[name], limits[name]];
    if (!isQuantityText(request) || !isQuantityText(limit)) return [];
    const [requested, limited] = [parseQuantity(request), parseQuantity(limit)];
    if (requested === null || limited === null || requested <= limited) return [];
    const message = `${name} must not exceed the limit ${limit}; got the request ${request}: lower it or raise the limit`;
    return [{ at: 'value' as const, path: ['spec', 'group', 'resources', 'requests', name], message }];
  });
}

function consumersAreClear(spec: Record<string, unknown>): readonly Problem[] {
  return listAt(spec, 'consumers').flatMap((item, index) => {
    const consumer = mappingOf(item);
    if (consumer === undefined) return [];
    const path = ['spec', 'consumers', index];
    const problems: Problem[] = [];
    const bySelector = consumer.namespaceSelector !== undefined;
    if (bySelector === (consumer.namespace !== undefined)) {
      const message = `consumers[${index}] must have either namespace or namespaceSelector; got ${bySelector ? 'both' : 'neither'}`;
      problems.push({ at: 'value', path, message });
    }
    const isOpen = bySelector || consumer.serviceAccounts === undefined;
    if (isOpen && (consumer.openSet === undefined || consumer.openSet === false)) {
      const why = bySelector ? 'has a namespaceSelector' : 'lists no serviceAccounts';
      const message = `openSet must be true, because consumers[${index}] ${why} and so can grow unseen; set it, or name the accounts`;
      const isWritten = consumer.openSet === false;
      problems.push({ at: isWritten ? 'value' : 'missing', path: [...path, 'openSet'], message });
    }
    return problems;
  });
}

/** As Kubernetes reads selectors: In and NotIn need values, Exists and DoesNotExist take none. */
function selectorsAreComplete(spec: Record<string, unknown>): readonly Problem[] {
  return listAt(spec, 'consumers').flatMap((consumer, consumerIndex) => {
    const selector = mappingAt(consumer, 'namespaceSelector');
    return listAt(selector, 'matchExpressions').flatMap((item, index) => {
      const expression = mappingOf(item);
      const operator = expression?.operator;
      const takesValues = operator === 'In' || operator === 'NotIn';
      const takesNone = operator === 'Exists' || operator === 'DoesNotExist';
      const values = expression?.values;
      const count = Array.isArray(values) ? values.length : 0;
      if (
        !(takesValues && count === 0 && (values === undefined || Array.isArray(values))) &&
        !(takesNone && count > 0)
      )
        return [];
      const path = [
        'spec',
        'consumers',
        consumerIndex,
        'namespaceSelector',
        'matchExpressions',
        index,
        'values',
      ];
      const message = takesValues ? `must have at least one value` : `must be left out`;
      const at = values === undefined ? 'missing' : 'value';
      return [{ at, path, message: `values ${message} with operator ${operator}` } as const];
    });
  });
}

function safetyClass(spec: Record<string, unknown>): string | undefined {
  return read(specFields.safety.shape.class, mappingAt(spec, 'safety')?.class);
}

/** The modes that can be read; broken ones are the schema's business. */
function modes(spec: Record<string, unknown>): readonly unknown[] {
  return spec.modes === undefined ? ['Exclusive'] : listAt(spec, 'modes');
}

function read<T>(schema: z.ZodType<T>, value: unknown): T | undefined {
  const result = schema.safeParse(value);
  return result.success ? result.data : undefined;
}

function isQuantityText(value: unknown): value is string | number {
  return typeof value === 'string' || typeof value === 'number';
}

function mappingOf(value: unknown): Record<string, unknown> | undefined {
  const isMapping = typeof value === 'object' && value !== null && !Array.isArray(value);
  return isMapping ? (value as Record<string, unknown>) : undefined;
}

function mappingAt(parent: unknown, key: string): Record<string, unknown> | undefined {
  return mappingOf(mappingOf(parent)?.[key]);
}

function listAt(parent: unknown, key: string): readonly unknown[] {
  const value = mappingOf(parent)?.[key];
  return Array.isArray(value) ? value : [];
}
