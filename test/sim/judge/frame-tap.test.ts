/** What the judge of the streams finds, and what it must not find. */
import { expect, it } from 'vitest';
import type { ClientFrame, ServerFrame } from '../../../src/api/wire.ts';
import { Machine } from '../world/machine.ts';
import { type Life, VirtualProcess } from '../world/process.ts';
import { World } from '../world/world.ts';
import { Findings } from './findings.ts';
import { FrameTap } from './frame-tap.ts';
import type { GroupJudge } from './group-judge.ts';

const STREAM = 7;

function tapped(): { readonly tap: FrameTap; readonly findings: Findings; readonly server: Life } {
  const world = new World(1);
  const machine = new Machine(world, { rate: 1, monotonicAtStartMs: 0, wallAtStartMs: 0 });
  const findings = new Findings(world);
  // Entry 4 was on its way to the log when the frames of these tests arrived; entry 5 is the last one.
  const judge: Pick<GroupJudge, 'builtBy' | 'heard' | 'knocked' | 'acknowledged' | 'entries'> = {
    builtBy: () => 4,
    heard: () => undefined,
    knocked: () => undefined,
    acknowledged: () => undefined,
    entries: 5,
  };
  const tap = new FrameTap(world, {
    name: 'link',
    judge: judge as GroupJudge,
    machine,
    lineage: 'lineage',
    findings,
    renewalProblem: () => null,
  });
  const process = new VirtualProcess(world, {
    name: 'server',
    machine,
    hasJitter: false,
    onError: () => undefined,
  });
  return { tap, findings, server: process.start() };
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
