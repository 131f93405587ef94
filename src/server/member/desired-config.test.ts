/** Manifests of several replicas are replaced one after the other: which of them may be brought into force by a new leader. */
import { expect, test } from 'vitest';
import { namespaceConfig } from '../../../test/support/core.ts';
import { VirtualRuntime } from '../../../test/support/virtual-runtime.ts';
import { createState } from '../../core/index.ts';
import type { Leader } from '../leader/leader.ts';
import { DesiredConfig } from './desired-config.ts';

const { logger } = new VirtualRuntime();

const OLD = namespaceConfig({ maxWaitersPerName: 1 });
const NEW = namespaceConfig({ maxWaitersPerName: 2 });

test('a file that says what was replaced meanwhile is behind, until it changes too', () => {
  const desired = new DesiredConfig(OLD, logger);
  desired.saw(OLD);
  expect(desired.isBehind).toBe(false);
  desired.saw(NEW);
  expect(desired.isBehind).toBe(true);
  desired.want(NEW);
  expect(desired.isBehind).toBe(false);
});

test('whoever sets its file back means it', () => {
  const desired = new DesiredConfig(NEW, logger);
  desired.saw(OLD);
  desired.saw(NEW);
  desired.want(OLD);
  expect(desired.isBehind).toBe(false);
  desired.saw(OLD);
  expect(desired.isBehind).toBe(false);
});

test('a file that says something new is not behind, and what is remembered is bounded', () => {
  const desired = new DesiredConfig(namespaceConfig({ maxWaitersPerName: 9_999 }), logger);
  for (let at = 0; at < 100; at++) desired.saw(namespaceConfig({ maxWaitersPerName: 100 + at }));
  expect(desired.isBehind).toBe(false);
  desired.saw(OLD);
  desired.saw(NEW);
  const behind = new DesiredConfig(OLD, logger);
  behind.saw(OLD);
  behind.saw(NEW);
  expect(behind.isBehind).toBe(true);
});

test.each([
  { isLeading: true, logged: ['the configuration is not in force'] },
  { isLeading: false, logged: [] },
])(
  'what a leader could not bring into force is told while it leads ($isLeading)',
  async ({ isLeading, logged }) => {
    const runtime = new VirtualRuntime();
    const desired = new DesiredConfig(NEW, runtime.logger);
    const submit = () => Promise.reject(new Error('this server has stopped leading'));
    const leader: Pick<Leader, 'isLeading' | 'submit' | 'state'> = {
      isLeading,
      submit,
      state: createState('l'),
    };
    await desired.bringIntoForce(leader as Leader);
    expect(runtime.logged).toEqual(logged);
  },
);
