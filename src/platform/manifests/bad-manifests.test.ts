// One mistake each: where it is shown, and that the message says how to mend it.
import { describe, expect, it } from 'vitest';
import { changed, VALID } from './manifest.fixture.ts';
import { parseManifests } from './parse.ts';

/** What is replaced in the valid manifest, by what, the places `line:column path` shown, and a part of a message. */
type Row = readonly [from: string, to: string, places: readonly string[], message: string];

const fields: readonly Row[] = [
  ['leasehold.dev/v1alpha1', 'leasehold.dev/v1', ['1:13 apiVersion'], 'must be leasehold.dev/v1alpha1; got'],
  ['apiVersion: leasehold.dev/v1alpha1\n', '', ['1:1 apiVersion'], 'is missing: give leasehold.dev/v1alpha1'],
  ['kind: LockNamespace', 'kind: LockNamspace', ['2:7 kind'], 'did you mean LockNamespace?'],
  ['kind: LockNamespace', 'kind: Mutex', ['2:7 kind'], 'use one of LockNamespace, SafetyApproval'],
  ['kind: LockNamespace\n', '', ['1:1 kind'], 'is missing: give LockNamespace'],
  ['name: payouts', 'name: Payouts', ['4:9 metadata.name'], 'a letter, then a-z, 0-9 and - inside'],
  ['name: payouts', 'name: 1payouts', ['4:9 metadata.name'], 'a letter, then a-z'],
  ['name: payouts', `name: ${'a'.repeat(41)}`, ['4:9 metadata.name'], 'at most 40 characters'],
  [
    'name: payouts',
    'generateName: payouts',
    ['3:1 metadata.name', '4:3 metadata.generateName'],
    'is missing',
  ],
  ['name: payouts', 'name: yes', ['4:9 metadata.name'], 'got the boolean true: put it in quotes'],
  ['namespace: payments', 'namespace: a_b', ['5:14 metadata.namespace'], 'a DNS label'],
  ['team: payments', 'team: 7', ['6:18 metadata.labels.team'], 'the number 7: put it in quotes'],
  ['{team: payments}', '{a/b/c: x}', ['6:12 metadata.labels["a/b/c"]'], '[DNS name/]name'],
  ['payments-oncall}', 'true}', ['7:36 metadata.annotations["example.com/owner"]'], 'put it in quotes'],
  ['class: Correctness', 'class: correctness', ['10:12 spec.safety.class'], 'did you mean Correctness?'],
  ['    class: Correctness\n', '', ['9:3 spec.safety.class'], 'give one of Efficiency, Correctness'],
  ['class:', 'clas:', ['10:5 spec.safety.clas'], 'did you mean class?'],
  ['a merchant is paid twice', '" "', ['11:18 spec.safety.failureCost'], '1 to 1024 bytes'],
  ['PostgreSQL', 'postgres', ['13:13 spec.safety.fencedResource.kind'], 'PostgreSQL, HTTP, ObjectStore'],
  ['public.payout_batches', 'x'.repeat(513), ['14:13 spec.safety.fencedResource.name'], '1 to 512 bytes'],
  [
    '      check: UPDATE',
    '      checks: UPDATE',
    ['15:7 spec.safety.fencedResource.checks'],
    'did you mean check?',
  ],
  [
    'ttl: 15s',
    'ttl: 4999ms',
    ['17:10 spec.lease.ttl'],
    'from 5s to 60s, in whole h, m, s or ms; got "4999ms"',
  ],
  ['ttl: 15s', 'ttl: 15', ['17:10 spec.lease.ttl'], 'add the unit, for example 15s'],
  ['ttl: 15s', 'ttl: "15"', ['17:10 spec.lease.ttl'], 'add the unit, for example 15s'],
  ['ttl: 15s', 'ttl: 2000000000s', ['17:10 spec.lease.ttl'], 'from 5s to 60s'],
  ['ttl: 15s', 'ttl: 1.5m', ['17:10 spec.lease.ttl'], 'in whole h, m, s or ms'],
  ['ttl: 15s', 'ttl: 0:15', ['17:10 spec.lease.ttl'], 'got "0:15"'],
  ['ttl: 15s', 'ttl: [15s]', ['17:10 spec.lease.ttl'], 'got a list of 1'],
  ['minTTL: 5s', 'minTTL: 5s1ms1ms1ms', ['18:13 spec.lease.minTTL'], 'a duration from 5s to 60s'],
  ['maxTTL: 60s', 'maxTTL: 61s', ['19:13 spec.lease.maxTTL'], 'from 5s to 60s'],
  ['lockDelay: 0s', 'lockDelay: -1s', ['20:16 spec.lease.lockDelay'], 'from 0s to 10m'],
  ['lockDelay: 0s', 'lockDelay: 10m1ms', ['20:16 spec.lease.lockDelay'], 'from 0s to 10m'],
  ['maxHold: 24h', 'maxHold: 999ms', ['21:14 spec.lease.maxHold'], 'from 1s to 720h'],
  ['maxHold: 24h', 'maxHold: 721h', ['21:14 spec.lease.maxHold'], 'from 1s to 720h'],
  ['[Exclusive]', '[exclusive]', ['22:11 spec.modes[0]'], 'did you mean Exclusive?'],
  ['[Exclusive]', '[]', ['22:10 spec.modes'], 'got an empty list: leave the field out instead'],
  ['[Exclusive]', '[Exclusive, Exclusive]', ['22:22 spec.modes[1]'], 'stands in this list already'],
  ['[Exclusive]', 'Exclusive', ['22:10 spec.modes'], 'a list of 1 to 3 modes; got "Exclusive"'],
  [
    'maxWaiters: 500',
    'maxWaiters: 10001',
    ['24:17 spec.queue.maxWaiters'],
    'from 0 to 10000; got the number 10001',
  ],
  ['maxWaiters: 500', 'maxWaiters: 1.5', ['24:17 spec.queue.maxWaiters'], 'a whole number'],
  ['maxWaiters: 500', 'maxWaiters: .nan', ['24:17 spec.queue.maxWaiters'], 'a whole number'],
  ['maxWait: 10m', 'maxWait: 24h1ms', ['25:14 spec.queue.maxWait'], 'from 0s to 24h'],
  ['sessions: 5000', 'sessions: 0', ['27:15 spec.limits.sessions'], 'from 1 to 20000'],
  ['heldLocks: 200000', 'heldLocks: "200000"', ['28:16 spec.limits.heldLocks'], 'got "200000"'],
  ['waiters: 50000', 'waiters: 1000001', ['29:14 spec.limits.waiters'], 'from 1 to 1000000'],
  [
    'operationsPerSecond: 5000',
    'operationsPerSecond: 1e9',
    ['30:26 spec.limits.operationsPerSecond'],
    'from 1 to',
  ],
  ['locks: 1000', 'locks: -1', ['31:24 spec.limits.perClient.locks'], 'from 1 to 100000'],
  ['locks: 1000', 'lock: 1000', ['31:17 spec.limits.perClient.lock'], 'did you mean locks?'],
  ['replicas: 3', 'replicas: 2', ['34:15 spec.group.replicas'], 'must be 1, 3 or 5; got the number 2'],
  ['size: 4Gi', 'size: 4GB', ['35:21 spec.group.storage.size'], 'a quantity from 1Gi to 1Ti'],
  ['size: 4Gi', 'size: 1023Mi', ['35:21 spec.group.storage.size'], 'a quantity from 1Gi to 1Ti'],
  ['size: 4Gi', 'storageClassName: Fast', ['35:33 spec.group.storage.storageClassName'], 'a DNS name'],
  ['cpu: 500m', 'cpu: 0.5', ['36:33 spec.group.resources.requests.cpu'], 'a quantity from 10m to 128'],
  ['topology: Zone', 'topology: Rack', ['37:15 spec.group.topology'], 'one of Zone, Node'],
  ['Retain', 'retain', ['38:21 spec.group.deletionPolicy'], 'did you mean Retain?'],
  [
    'namespace: payments\n      s',
    'namespace: "*"\n      s',
    ['40:18 spec.consumers[0].namespace'],
    'a DNS label',
  ],
  ['[payout-worker]', '[]', ['41:24 spec.consumers[0].serviceAccounts'], 'leave the field out instead'],
  ['[payout-worker]', '[a, b, a]', ['41:31 spec.consumers[0].serviceAccounts[2]'], 'already: remove one'],
  ['paused: false', 'paused: "false"', ['42:11 spec.paused'], 'must be true or false; got "false"'],
  ['paused: false', 'pause: false', ['42:3 spec.pause'], 'did you mean paused?'],
  ['paused: false', 'ttl: 15s', ['42:3 spec.ttl'], 'did you mean spec.lease.ttl?'],
  ['paused: false', 'zebra: 1', ['42:3 spec.zebra'], 'remove it, or use one of safety, lease'],
  [
    'paused: false',
    '"\\x1b[31m": 1',
    ['42:3 spec["?"]'.replace('?', '\\u001b[31m')],
    'is not a field of spec',
  ],
];

const acrossFields: readonly Row[] = [
  [
    'class: Correctness\n    failureCost: a merchant is paid twice\n    fencedResource:\n',
    'class: Correctness\n    fencedresource:\n',
    ['11:5 spec.safety.fencedresource'],
    'did you mean fencedResource?',
  ],
  [
    'replicas: 3',
    'replicas: 1',
    ['34:15 spec.group.replicas'],
    'must be 3 or 5 with class Correctness; got 1',
  ],
  [
    'ttl: 15s\n    minTTL: 5s',
    'ttl: 9s\n    minTTL: 10s',
    ['17:10 spec.lease.ttl'],
    'got minTTL 10s above ttl 9s',
  ],
  ['ttl: 15s', 'ttl: 60s', [], ''],
  ['maxTTL: 60s', 'maxTTL: 14s', ['19:13 spec.lease.maxTTL'], 'got ttl 15s above maxTTL 14s; change one'],
  [
    'ttl: 15s\n    minTTL: 5s',
    'minTTL: 20s',
    ['17:13 spec.lease.minTTL'],
    'got minTTL 20s above ttl 15s (the default)',
  ],
  ['[Exclusive]', '[Shared]', ['22:11 spec.modes[0]'], 'add Exclusive'],
  [
    'modes: [Exclusive]',
    'modes: [Exclusive, Semaphore]',
    ['22:22 spec.modes[1]', '22:22 spec.modes[1]'],
    'with class Correctness',
  ],
  [
    'semaphores: []',
    'semaphores: [{pattern: a, permits: 1}]',
    ['32:15 spec.semaphores'],
    'add Semaphore to spec.modes or remove them',
  ],
  ['cpu: 500m', 'cpu: 3', ['36:33 spec.group.resources.requests.cpu'], 'must not exceed the limit 2'],
  [
    '    - namespace: payments\n      s',
    '    - s',
    ['40:7 spec.consumers[0]'],
    'namespace or namespaceSelector',
  ],
  [
    '\n      serviceAccounts: [payout-worker]',
    '',
    ['40:7 spec.consumers[0].openSet'],
    'must be true, because consumers[0] lists no serviceAccounts',
  ],
  [
    'serviceAccounts: [payout-worker]',
    'openSet: false',
    ['41:16 spec.consumers[0].openSet'],
    'set it, or name the accounts',
  ],
  ['serviceAccounts: [payout-worker]', 'openSet: true', [], ''],
  [
    'namespace: payments\n      s',
    'namespaceSelector: {}\n      s',
    ['40:7 spec.consumers[0].openSet'],
    'has a namespaceSelector',
  ],
  [
    '- namespace: payments\n',
    '- namespace: payments\n      openSet: true\n      namespaceSelector: {}\n',
    ['40:7 spec.consumers[0]'],
    'got both',
  ],
  [
    '- namespace: payments\n',
    '- openSet: true\n      namespaceSelector: {matchExpressions: [{key: a, operator: In}, {key: a, operator: Exists, values: [b]}]}\n',
    [
      '41:46 spec.consumers[0].namespaceSelector.matchExpressions[0].values',
      '41:105 spec.consumers[0].namespaceSelector.matchExpressions[1].values',
    ],
    'must have at least one value with operator In',
  ],
  [
    '\n    - namespace: payments\n      serviceAccounts: [payout-worker]',
    '',
    ['39:3 spec.consumers'],
    'would let in all accounts of its own namespace',
  ],
];

const efficiency = VALID.replace('class: Correctness', 'class: Efficiency').replace(
  '[Exclusive]',
  '[Exclusive, Semaphore]',
);
const patterns: readonly Row[] = [
  ['[]', '[{pattern: "exports/*", permits: 10}, {pattern: "*", permits: 1}]', [], ''],
  [
    '[]',
    '[{pattern: "a*b", permits: 1}]',
    ['32:26 spec.semaphores[0].pattern'],
    'followed by one * at the end',
  ],
  ['[]', '[{pattern: "a**", permits: 1}]', ['32:26 spec.semaphores[0].pattern'], 'one * at the end'],
  ['[]', '[{pattern: "", permits: 1}]', ['32:26 spec.semaphores[0].pattern'], 'the name must not be empty'],
  ['[]', '[{pattern: "\\ud800", permits: 1}]', ['32:26 spec.semaphores[0].pattern'], 'lone surrogate'],
  [
    '[]',
    `[{pattern: ${'é'.repeat(257)}, permits: 1}]`,
    ['32:26 spec.semaphores[0].pattern'],
    'at most 512 bytes',
  ],
  ['[]', '[{pattern: a, permits: 0}]', ['32:38 spec.semaphores[0].permits'], 'from 1 to 10000'],
  ['[]', '[{pattern: a}]', ['32:16 spec.semaphores[0].permits'], 'is missing: give a whole number'],
  [
    '[]',
    '[{pattern: a, permits: 1}, {pattern: a, permits: 2}]',
    ['32:52 spec.semaphores[1].pattern'],
    'stands in spec.semaphores[0] already',
  ],
  ['semaphores: []', 'semaphores: []', ['22:22 spec.modes[1]'], 'add a pattern with its permits'],
];

const syntax: readonly Row[] = [
  ['ttl: 15s', 'ttl: 15s\n    ttl: 16s', ['18:5 spec.lease.ttl'], '"ttl" is given more than once'],
  ['paused: false', 'lease: {ttl: 20s}', ['42:3 spec.lease'], 'remove one'],
  ['ttl: 15s', '\tttl: 15s', ['17:5 '], 'not valid YAML'],
  ['name: payouts', 'name: "payouts', ['4:9 '], 'not valid YAML: Missing closing'],
  ['[Exclusive]', '[Exclusive', ['23:3 '], 'not valid YAML'],
  ['name: payouts', 'name: *payouts', ['4:9 '], 'Unresolved alias'],
  ['name: payouts', 'name: !!binary cGF5b3V0cw==', ['4:9 '], 'Unresolved tag'],
  ['spec:', 'spec: &spec\n  again: *spec', ['1:1 '], 'at most 50000 values'],
];

function check(text: string, places: readonly string[], message: string): void {
  const { errors, namespaces } = parseManifests(text, 'payouts.yaml');
  expect(errors.map(({ line, column, path }) => `${line}:${column} ${path}`)).toEqual(places);
  expect(errors.map((error) => error.message).join('\n')).toContain(message);
  expect(namespaces.length).toBe(places.length === 0 ? 1 : 0);
}

describe('a manifest with one mistake', () => {
  it('is otherwise valid', () => {
    check(VALID, [], '');
  });
  it.each(fields)('in a field: %j -> %j', (from, to, places, message) => {
    check(changed(from, to), places, message);
  });
  it.each(acrossFields)('across fields: %j -> %j', (from, to, places, message) => {
    check(changed(from, to), places, message);
  });
  it.each(patterns)('in semaphores: %j -> %j', (from, to, places, message) => {
    check(
      efficiency.replace(from, () => to),
      places,
      message,
    );
  });
  it.each(syntax)('in the text: %j -> %j', (from, to, places, message) => {
    check(changed(from, to), places, message);
  });
});
