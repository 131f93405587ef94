/**
 * What src/api/locknamespace/rules.ts refuses, in words for the page. Beside each stands a specification that breaks it, so
 * that a test sees that the words are about a rule that exists.
 */

interface RuleInWords {
  readonly words: string;
  /** Breaks this rule and no other. */
  readonly brokenBy: Record<string, unknown>;
  /** Where the problem is reported. */
  readonly at: string;
}

const EFFICIENCY = { safety: { class: 'Efficiency' } };
const FENCED = {
  class: 'Correctness',
  fencedResource: { kind: 'PostgreSQL', name: 'public.payouts', check: 'fence <= :token' },
};
const OPEN = { namespace: 'payments', openSet: true };

function selecting(expression: Record<string, unknown>): Record<string, unknown> {
  const namespaceSelector = { matchExpressions: [{ key: 'team', ...expression }] };
  return { ...EFFICIENCY, consumers: [{ namespaceSelector, openSet: true }] };
}

export const RULES_IN_WORDS: readonly RuleInWords[] = [
  {
    words:
      'Class `Correctness` needs `safety.fencedResource`: without somebody who checks the token, no lock service can promise it.',
    brokenBy: { safety: { class: 'Correctness' } },
    at: 'spec.safety.fencedResource',
  },
  {
    words: 'Class `Correctness` needs `group.replicas` 3 or 5.',
    brokenBy: { safety: FENCED, group: { replicas: 1 } },
    at: 'spec.group.replicas',
  },
  {
    words:
      'Class `Correctness` does not go with mode `Semaphore`: tokens of several holders fence nothing. Put the semaphores into a LockNamespace of class `Efficiency`.',
    brokenBy: { safety: FENCED, modes: ['Semaphore'], semaphores: [{ pattern: 'jobs/*', permits: 2 }] },
    at: 'spec.modes.0',
  },
  {
    words: 'Mode `Shared` needs mode `Exclusive` beside it: readers without writers exclude nobody.',
    brokenBy: { ...EFFICIENCY, modes: ['Shared'] },
    at: 'spec.modes.0',
  },
  {
    words: 'Mode `Semaphore` needs at least one item in `semaphores`.',
    brokenBy: { ...EFFICIENCY, modes: ['Exclusive', 'Semaphore'] },
    at: 'spec.modes.1',
  },
  {
    words: '`semaphores` needs mode `Semaphore`.',
    brokenBy: { ...EFFICIENCY, semaphores: [{ pattern: 'jobs/*', permits: 2 }] },
    at: 'spec.semaphores',
  },
  {
    words:
      'No pattern stands in `semaphores` twice, and each is a name: well-formed, 1 to 512 bytes of UTF-8.',
    brokenBy: {
      ...EFFICIENCY,
      modes: ['Semaphore'],
      semaphores: [
        { pattern: 'jobs/*', permits: 2 },
        { pattern: 'jobs/*', permits: 3 },
      ],
    },
    at: 'spec.semaphores.1.pattern',
  },
  {
    words:
      '`minTTL` <= `ttl` <= `maxTTL`, the defaults included: who raises `minTTL` above 15s also sets `ttl`.',
    brokenBy: { ...EFFICIENCY, lease: { minTTL: '20s' } },
    at: 'spec.lease.minTTL',
  },
  {
    words: 'In `group.resources` a request is at most the limit of the same name.',
    brokenBy: { ...EFFICIENCY, group: { resources: { requests: { cpu: 2 }, limits: { cpu: 1 } } } },
    at: 'spec.group.resources.requests.cpu',
  },
  {
    words: 'A consumer has either `namespace` or `namespaceSelector`, not both and not neither.',
    brokenBy: { ...EFFICIENCY, consumers: [{ ...OPEN, namespaceSelector: {} }] },
    at: 'spec.consumers.0',
  },
  {
    words:
      'A consumer with a `namespaceSelector`, or without `serviceAccounts`, needs `openSet: true`: such a set can grow without anybody looking here.',
    brokenBy: { ...EFFICIENCY, consumers: [{ namespace: 'payments' }] },
    at: 'spec.consumers.0.openSet',
  },
  {
    words: 'In `matchExpressions`, `In` and `NotIn` need at least one value.',
    brokenBy: selecting({ operator: 'In' }),
    at: 'spec.consumers.0.namespaceSelector.matchExpressions.0.values',
  },
  {
    words: 'In `matchExpressions`, `Exists` and `DoesNotExist` take no values.',
    brokenBy: selecting({ operator: 'Exists', values: ['payments'] }),
    at: 'spec.consumers.0.namespaceSelector.matchExpressions.0.values',
  },
  {
    words: '`consumers:` with nothing behind it is refused, because it would let in more people than before.',
    brokenBy: { ...EFFICIENCY, consumers: null },
    at: 'spec.consumers',
  },
];
