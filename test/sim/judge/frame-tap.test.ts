/** What the judge of the streams finds, and what it must not find. */
import { expect, it } from 'vitest';
import type { ClientFrame, ServerFrame } from '../../../src/api/wire.ts';
import type { ClientRecord } from '../../../src/history/records.ts';
import { Machine } from '../world/machine.ts';
import { VirtualProcess } from '../world/process.ts';
import { US_PER_MS, World } from '../world/world.ts';
import { Findings } from './findings.ts';
import { FrameTap } from './frame-tap.ts';
import type { GroupJudge } from './group-judge.ts';
import { LineageWatch } from './lineage-watch.ts';

const STREAM = 7;

const REVOKED_AT_MS = 1_000;
const TTL_MS = 10_000;

function tapped() {
  const world = new World(1);
  const records: ClientRecord[] = [];
  const machine = new Machine(world, { rate: 1, monotonicAtStartMs: 0, wallAtStartMs: 0 });
  const findings = new Findings(world);
  // Entry 4 was on its way to the log when the frames of these tests arrived; entry 5 is the last one.
  const judge: Pick<
    GroupJudge,
    | 'builtBy'
    | 'heard'
    | 'knocked'
    | 'acknowledged'
    | 'entries'
    | 'client'
    | 'ttlOf'
    | 'revokedAtUs'
    | 'lineages'
  > = {
    builtBy: () => 4,
    heard: () => undefined,
    knocked: () => undefined,
    acknowledged: () => undefined,
    entries: 5,
    client: (record) => void records.push(record),
    ttlOf: () => TTL_MS,
    lineages: new LineageWatch(world, findings, 'locks'),
    revokedAtUs: (token) => (token === 7 ? REVOKED_AT_MS * US_PER_MS : undefined),
  };
  const tap = new FrameTap(world, {
    name: 'link',
    judge: judge as GroupJudge,
    machine,
    lineage: () => 'lineage',
    findings,
    renewalProblem: () => null,
    leads: () => true,
  });
  const process = new VirtualProcess(world, {
    name: 'server',
    machine,
    hasJitter: false,
    onError: () => undefined,
  });
  return { world, tap, findings, records, server: process.start() };
}

function keepalive(number: number): ClientFrame {
  return { format: 1, requests: [], keepalive: { number, sessions: [{ session: 1, attach: 1 }] } };
}

function answer(number: number, index: number): ServerFrame {
  const position = { lineage: 'lineage', epoch: 1, index };
  return { position, leading: true, answers: [], notices: [], keepalive: { number, sessions: [] } };
}

it('an answer after a commit that began after the question arrived is right', () => {
  const { tap, findings, server } = tapped();
  tap.clientSent(STREAM, keepalive(1));
  tap.serverReceived(STREAM, keepalive(1), server);
  tap.serverSent(STREAM, answer(1, 5));
  expect(findings.all).toEqual([]);
});

it.each([
  { what: 'with an entry that was on its way when it arrived', number: 1, index: 4, rule: 'rule S1' },
  { what: 'with an entry that the log does not have', number: 1, index: 6, rule: 'rule S1' },
  { what: 'though it never arrived', number: 2, index: 5, rule: 'rule S2' },
])('a keepalive that is answered $what is found', ({ number, index, rule }) => {
  const { tap, findings, server } = tapped();
  tap.clientSent(STREAM, keepalive(1));
  tap.serverReceived(STREAM, keepalive(1), server);
  tap.serverSent(STREAM, answer(number, index));
  expect(findings.all).toMatchObject([{ property: rule }]);
});

// Seed 1212262482, 2 h: the server was stopped while the client went to another stream.
it('what arrives behind a client that has left is answered to nobody, and so is what came before', () => {
  const { tap, findings, server } = tapped();
  tap.clientSent(STREAM, keepalive(1));
  tap.serverReceived(STREAM, keepalive(1), server);
  tap.clientSent(STREAM, keepalive(2));
  tap.ended(STREAM);
  tap.serverReceived(STREAM, keepalive(2), server);
  tap.serverSent(STREAM, answer(1, 5));
  expect(findings.all).toEqual([]);
  expect(() => tap.clientReceived(STREAM, answer(1, 5))).toThrow('has ended');
});

it.each([
  { what: 'of a re-entrant grant says which acquire it gave back', key: 'k-1', told: { key: 'k-1' } },
  { what: 'of any other grant says only its token', key: '', told: {} },
])('a confirmed release $what', ({ key, told }) => {
  const { tap, records, server } = tapped();
  const body = { type: 'release', session: 1, attach: 1, name: 'job', token: 7, key, acks: [] } as const;
  const frame: ClientFrame = { format: 1, requests: [{ id: 3, body }] };
  tap.clientSent(STREAM, frame);
  tap.serverReceived(STREAM, frame, server);
  const answers = [{ id: 3, body: { type: 'done' } }] as const;
  const position = { lineage: 'lineage', epoch: 1, index: 5 };
  tap.clientReceived(STREAM, { position, leading: true, answers, notices: [] });
  const expected = { lineage: 'lineage', session: 1, name: 'job', token: 7, at: 0, ...told };
  expect(records).toEqual([{ type: 'releaseConfirmed', ...expected }]);
});

it.each([
  { what: 'a grant under a revoke is told what it had', token: 7, lateMs: 0, found: [] },
  { what: 'a grant under a revoke is told more', token: 7, lateMs: 5, found: [{ property: 'rule C9' }] },
  { what: 'another grant of the same session is told more', token: 8, lateMs: 5, found: [] },
])('$what', ({ token, lateMs, found }) => {
  const { world, tap, findings } = tapped();
  // The last keepalive was sent and acknowledged after the revoke: it extends every grant but that one.
  world.nowUs = (REVOKED_AT_MS + 50) * US_PER_MS;
  tap.clientSent(STREAM, keepalive(1));
  const sessions = [{ session: 1, attach: 1, alive: true, grants: 2, digest: 0, revoking: [] }] as const;
  tap.clientReceived(STREAM, { ...answer(1, 5), keepalive: { number: 1, sessions } });
  const deadlineMs = REVOKED_AT_MS + TTL_MS - TTL_MS / 5 + lateMs;
  tap.checkDeadline(1, token, { deadlineInMs: 0, deadlineMonotonicNs: BigInt(deadlineMs * 1e6) });
  expect(findings.all).toMatchObject(found);
});
