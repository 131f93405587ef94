// Whole files: many errors at once, what is skipped, lists, JSON, YAML as Kubernetes reads it, and the bounds.
import { describe, expect, it } from 'vitest';
import { findingsToJson, formatFindings } from './format.ts';
import { changed, minimal, VALID } from './manifest.fixture.ts';
import { FINDINGS_PER_FILE_MAX, parseManifests } from './parse.ts';
import { FILE_BYTES_MAX } from './yaml-source.ts';

const names = (text: string | Uint8Array) =>
  parseManifests(text, 'f.yaml').namespaces.map(({ lockNamespace }) => lockNamespace.metadata.name);
const report = (text: string | Uint8Array) => formatFindings(parseManifests(text, 'f.yaml').errors);

const MANY_ERRORS = `# A file in which nearly everything is wrong.
apiVersion: leasehold.dev/v1alpha1
kind: LockNamespace
metadata:
  name: Payouts
spec:
  saftey:
    class: Efficiency
  lease:
    ttl: 30
    minTTL: 20s
    maxTTL: 10s
    maxTTL: 2m
  modes: [exclusive, Semaphore]
  queue: {maxWaiters: many}
  consumers:
    - serviceAccounts: [payout-worker]
---
---
apiVersion: v1
kind: ConfigMap
---
apiVersion: leasehold.dev/v1alpha1
kind: LockNamespace
metadata: {name: payouts}
spec:
  safety: {class: Correctness}
  group: {replicas: 1}
  ttl: 10s
---
apiVersion: leasehold.dev/v1alpha1
kind: Mutex
---
just text
`;

describe('a file with many errors', () => {
  it('is reported whole, in order', () => {
    expect(report(MANY_ERRORS).split('\n')).toEqual([
      'f.yaml:5:9 metadata.name: name must be a name such as payouts (a letter, then a-z, 0-9 and - inside), at most 40 characters; got "Payouts"',
      'f.yaml:7:3 spec.saftey: saftey is not a field of spec: did you mean safety?',
      'f.yaml:10:10 spec.lease.ttl: ttl must be a duration from 5s to 60s, in whole h, m, s or ms; got the number 30: add the unit, for example 30s',
      'f.yaml:13:5 spec.lease.maxTTL: "maxTTL" is given more than once in one mapping: remove one',
      'f.yaml:13:13 spec.lease.maxTTL: maxTTL must be a duration from 5s to 60s, in whole h, m, s or ms; got "2m"',
      'f.yaml:14:11 spec.modes[0]: modes[0] must be one of Exclusive, Shared, Semaphore; got "exclusive": did you mean Exclusive?',
      'f.yaml:15:23 spec.queue.maxWaiters: maxWaiters must be a whole number from 0 to 10000; got "many"',
      'f.yaml:17:7 spec.consumers[0]: consumers[0] must have either namespace or namespaceSelector; got neither',
      'f.yaml:27:3 spec.safety.fencedResource: fencedResource is missing: class Correctness needs kind, name and check of the resource that refuses older tokens; where nothing checks them, the class is Efficiency',
      'f.yaml:28:21 spec.group.replicas: replicas must be 3 or 5 with class Correctness; got 1',
      'f.yaml:29:3 spec.ttl: ttl is not a field of spec: did you mean spec.lease.ttl?',
      'f.yaml:32:7 kind: kind must be a kind of leasehold.dev; got "Mutex": use one of LockNamespace, SafetyApproval, LockGroup, TokenLedger',
      'f.yaml:34:1 a manifest must be a mapping with apiVersion, kind, metadata and spec',
    ]);
  });

  it('numbers its documents, and has the same findings as JSON', () => {
    const { errors, namespaces, notices } = parseManifests(MANY_ERRORS, 'f.yaml');
    expect(errors.map(({ document }) => document)).toEqual([1, 1, 1, 1, 1, 1, 1, 1, 4, 4, 4, 5, 6]);
    expect(JSON.parse(findingsToJson(errors))).toEqual(errors);
    expect(notices.map(({ document, line }) => [document, line])).toEqual([[3, 21]]);
    expect(namespaces).toEqual([]);
  });

  it('still gives the documents that are right', () => {
    expect(names(`${minimal('a')}---\n${minimal('B')}---\n${minimal('c')}`)).toEqual(['a', 'c']);
  });
});

describe('what is not a LockNamespace', () => {
  it('is empty documents and comments', () => {
    expect(parseManifests('', 'f')).toEqual({ namespaces: [], errors: [], notices: [] });
    expect(parseManifests('# nothing\n---\n---\n# here\n', 'f').errors).toEqual([]);
    expect(names(`---\n---\n${minimal('a')}---\n`)).toEqual(['a']);
  });

  it.each([
    ['v1', 'ConfigMap'],
    ['apps/v1', 'Deployment'],
    ['leasehold.dev/v1alpha1', 'SafetyApproval'],
    ['leasehold.dev/v1alpha1', 'LockGroup'],
    ['leasehold.dev/v1', 'TokenLedger'],
  ])('is skipped with a notice: %s %s', (apiVersion, kind) => {
    const { errors, notices } = parseManifests(
      `apiVersion: ${apiVersion}\nkind: ${kind}\nspec: 1\n`,
      'f.yaml',
    );
    expect(errors).toEqual([]);
    expect(notices).toMatchObject([{ line: 2, column: 1, path: 'kind' }]);
    expect(notices[0]?.message).toContain(kind);
  });

  it.each(['a: 1', 'apiVersion: v1', 'kind: ConfigMap', 'apiVersion: 1\nkind: 2', '- a', 'text', '7'])(
    'is an error when it is no Kubernetes object: %j',
    (text) => {
      expect(report(text)).toMatch(
        /^f\.yaml:1:1 (apiVersion and kind must be given|a manifest must be a mapping)/,
      );
    },
  );
});

describe('lists, as kubectl prints them', () => {
  const item = minimal('a').replaceAll(/^/gm, '  ').replace('  ', '- ').trimEnd();

  it.each(['apiVersion: v1\nkind: List', 'apiVersion: leasehold.dev/v1alpha1\nkind: LockNamespaceList'])(
    'are read: %j',
    (head) => {
      const { namespaces, errors } = parseManifests(`${head}\nmetadata: {}\nitems:\n${item}\n`, 'f.yaml');
      expect(errors).toEqual([]);
      expect(namespaces.map(({ source }) => source)).toEqual([
        { file: 'f.yaml', document: 1, line: 7, column: 20 },
      ]);
    },
  );

  it('have their errors at the item', () => {
    const text = `apiVersion: v1\nkind: List\nitems:\n${item.replace('Efficiency', 'Speed')}\n- 7\n`;
    expect(report(text)).toBe(
      'f.yaml:7:26 items[0].spec.safety.class: class must be one of Efficiency, Correctness; got "Speed"\n' +
        'f.yaml:8:3 items[1]: a manifest must be a mapping with apiVersion, kind, metadata and spec',
    );
  });

  it('may hold what a server adds to an object', () => {
    const served =
      'uid: x, resourceVersion: "7", generation: 1, creationTimestamp: 2026-01-01T00:00:00Z, finalizers: [a], managedFields: [{}]';
    expect(names(`${minimal('a').replace('name: a', `name: a, ${served}`)}status: {epoch: 3}\n`)).toEqual([
      'a',
    ]);
  });
});

describe('YAML', () => {
  it('means what it means to Kubernetes: yes is true, 010 is 8, a bare time is text', () => {
    const text = changed('paused: false', 'paused: yes').replace('sessions: 5000', 'sessions: 010');
    const { namespaces } = parseManifests(text, 'f');
    expect(namespaces[0]?.lockNamespace.spec).toMatchObject({ paused: true, limits: { sessions: 8 } });
    expect(report(changed('payments-oncall', '2026-01-01'))).toBe('');
  });

  it('takes a field without a value for one that is not written', () => {
    const text = changed('semaphores: []', 'semaphores:')
      .replace('{team: payments}', '')
      .replace('ttl: 15s', 'ttl: ~');
    const { namespaces } = parseManifests(text, 'f');
    expect(namespaces[0]?.lockNamespace).toMatchObject({
      metadata: { labels: {} },
      spec: { semaphores: [], lease: { ttl: '15s' } },
    });
  });

  it('may use anchors, aliases and merge keys', () => {
    const first = minimal('a').replace('spec: ', 'spec: &common ');
    const text = `${first}---\n${minimal('b').replace('{safety: {class: Efficiency}}', '{safety: &s {class: Efficiency}, lease: &l {ttl: 20s}, limits: {perClient: {<<: {locks: 7}}}}')}`;
    const { namespaces, errors } = parseManifests(text, 'f');
    expect(errors).toEqual([]);
    expect(namespaces[1]?.lockNamespace.spec.limits.perClient.locks).toBe(7);
  });

  it('may be JSON, also with tabs', () => {
    const object = { apiVersion: 'leasehold.dev/v1alpha1', kind: 'LockNamespace', metadata: { name: 'a' } };
    const text = JSON.stringify({ ...object, spec: { safety: { class: 'Efficiency' } } }, null, '\t');
    expect(names(text)).toEqual(['a']);
    expect(report(text.replace('Efficiency', 'x'))).toMatch(/^f\.yaml:9:13 spec\.safety\.class: /);
  });

  it('may begin with a byte order mark and end its lines as Windows does', () => {
    const text = new TextEncoder().encode(`\ufeff${VALID.replaceAll('\n', '\r\n').replace('15s', '3s')}`);
    expect(report(text)).toMatch(/^f\.yaml:17:10 spec\.lease\.ttl: /);
  });

  it('shows nothing that could move the cursor', () => {
    const { errors } = parseManifests(
      '"a\\u001b[2Jb\\u202e": 1\nkind: "\\u001b[2J"\napiVersion: leasehold.dev/v1\n',
      '\u001b]0;x',
    );
    expect(errors.length).toBeGreaterThan(0);
    expect(formatFindings(errors)).not.toMatch(/\p{Cc}|\u202e/u);
  });
});

describe('bounds', () => {
  it('takes a file of the largest size and refuses one byte more', () => {
    const padding = (size: number) => `${minimal('a')}#${'x'.repeat(size - minimal('a').length - 1)}`;
    expect(names(padding(FILE_BYTES_MAX))).toEqual(['a']);
    expect(report(padding(FILE_BYTES_MAX + 1))).toBe(
      'f.yaml:1:1 a manifest file must be at most 262144 bytes: split it',
    );
  });

  it('refuses what is not UTF-8, at its line', () => {
    const bytes = new TextEncoder().encode(VALID);
    bytes[VALID.indexOf('15s')] = 0xff;
    expect(report(bytes)).toBe('f.yaml:17:10 a manifest must be UTF-8 text: save it as UTF-8');
  });

  it('stops at aliases that expand to too much', () => {
    const rows = Array.from(
      { length: 8 },
      (_, i) => `b${i}: &b${i} [${Array(7).fill(i === 0 ? 'x' : `*b${i - 1}`)}]`,
    );
    expect(report(rows.join('\n'))).toMatch(/^f\.yaml:2:\d+ cannot be read: Excessive alias count/);
    const many = Array.from({ length: 65 }, () => '- *a').join('\n');
    expect(report(`- &a x\n${many}\n`)).toMatch(/^f\.yaml:66:3 a document must have at most 64 aliases/);
    expect(report(`- &a [${'x,'.repeat(2_000)}]\n${'- *a\n'.repeat(40)}`)).toMatch(/at most 50000 values/);
    expect(report(`a: &a [[*a]]`)).toMatch(/at most 50000 values/);
  });

  it('stops at nesting that is too deep', () => {
    expect(report('['.repeat(63) + ']'.repeat(63))).toMatch(/a manifest must be a mapping/);
    expect(report('['.repeat(70) + ']'.repeat(70))).toMatch(/at most 64 levels deep/);
    expect(report('['.repeat(100_000))).toMatch(/^f\.yaml:1:\d+ this is not valid YAML/);
  });

  it('shows a bounded number of findings', () => {
    const { errors } = parseManifests(minimal('A').concat('---\n').repeat(300), 'f');
    expect(errors.length).toBe(FINDINGS_PER_FILE_MAX + 1);
    expect(errors.at(-1)?.message).toContain('not shown');
    const unknown = Array.from({ length: 5_000 }, (_, i) => `zebra${i}: 1`).join(', ');
    expect(parseManifests(minimal('a').replace('{safety', `{${unknown}, safety`), 'f').errors.length).toBe(
      200,
    );
  });
});
