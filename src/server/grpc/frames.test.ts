import type { Buffer } from 'node:buffer';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { COMMANDS } from '../../../test/support/core-arbitraries.ts';
import {
  anyClientFrame,
  anyHistoryEntry,
  anyLeaderFrame,
  anyRelayFrame,
  anyServerFrame,
} from '../../../test/support/frame-arbitraries.ts';
import type { NamespaceConfig } from '../../api/config.ts';
import type { ServerFrame } from '../../api/wire.ts';
import { decodeConfig, encodeConfig } from './config.ts';
import { decodeHistoryEntry, encodeHistoryEntry } from './events.ts';
import { encodeClientFrame, encodeLeaderFrame, encodeServerFrame } from './general-frames.fixture.ts';
import { loadProtocol, type Message } from './proto.ts';
import { decodeRelayFrame, encodeRelayFrame } from './relay-frames.ts';

const protocol = loadProtocol();

function bytesOf(name: string, message: Message): Buffer {
  return protocol.message(`leasehold.v1.${name}`).serialize(message);
}

function messageOf(name: string, bytes: Buffer): Message {
  return protocol.message(`leasehold.v1.${name}`).deserialize(bytes);
}

/** What arrives at the other end. To be compared with a structuredClone: fast-check's objects have no prototype. */
function sent(name: string, message: Message): Message {
  return messageOf(name, bytesOf(name, message));
}

const FRAME: ServerFrame = {
  position: { lineage: 'l', epoch: 1, index: 1 },
  leading: true,
  answers: [],
  notices: [],
};

describe('by way of protobuf bytes everything arrives as it was sent', () => {
  test('entries of the history', () => {
    fc.assert(
      fc.property(anyHistoryEntry, (entry) => {
        expect(decodeHistoryEntry(sent('HistoryEntry', encodeHistoryEntry(entry)))).toStrictEqual(
          structuredClone(entry),
        );
      }),
      { numRuns: 300 },
    );
  });

  test('configurations', () => {
    const configs = COMMANDS.configure
      .map(({ config }) => config)
      .filter((config): config is NamespaceConfig => config !== null);
    fc.assert(
      fc.property(configs, (config) => {
        expect(decodeConfig(sent('NamespaceConfig', encodeConfig(config)))).toStrictEqual(
          structuredClone(config),
        );
      }),
      { numRuns: 300 },
    );
  });
});

describe('what does not fit is refused, never guessed at', () => {
  test('a number over 2^53 - 1, wherever it is', () => {
    const event = { type: 'delayed' as const, name: 'n', until: 2 ** 60 };
    const entry = { lineage: 'l', epoch: 1, index: 1, at: 0, wallMs: 0, eventHash: '', events: [event] };
    expect(() => decodeHistoryEntry(sent('HistoryEntry', encodeHistoryEntry(entry)))).toThrow(/2\^53/);
  });

  test('a relayed request of an unknown kind, or one that opens a session for nobody', () => {
    const relayed = (request: Message) =>
      sent('RelayFrame', { format: 1, groups: [{ client: 1, requests: [request] }] });
    expect(() => decodeRelayFrame(relayed({ id: 7 }))).toThrow(/request 7/);
    expect(() => decodeRelayFrame(relayed({ id: 8, openSession: { client: 'c' } }))).toThrow(/request 8/);
  });

  test('an unknown event is an error in a history', () => {
    const entry = sent('HistoryEntry', { index: 3, events: [{}] });
    expect(() => decodeHistoryEntry(entry)).toThrow(/entry 3/);
  });

  test('bytes that end too early', () => {
    const bytes = bytesOf('ServerFrame', encodeServerFrame(FRAME));
    expect(() => messageOf('ServerFrame', bytes.subarray(0, bytes.length - 3))).toThrow(RangeError);
  });
});

interface FieldDescriptor {
  readonly name: string;
  readonly number: number;
  readonly label: string;
  readonly type: string;
  readonly typeName: string;
}

function fieldsOf(name: string): readonly FieldDescriptor[] {
  return (protocol.message(`leasehold.v1.${name}`).type as { field: FieldDescriptor[] }).field;
}

/** Names of all messages that can be part of `root`, itself first. */
function closure(root: string): readonly string[] {
  const names = new Set([root]);
  for (const name of names)
    for (const { typeName } of fieldsOf(name)) if (typeName !== '') names.add(typeName);
  return [...names];
}

/** `Message.field` for each field that the TypeScript frames fill, whether `proto/` knows it or not. */
class FieldsInUse {
  readonly paths = new Set<string>();
  readonly #fields = new Map<string, ReadonlyMap<string, FieldDescriptor>>();

  /** `value`: an encoded message. */
  note(name: string, value: object): void {
    const fields = this.#fields.get(name) ?? new Map(fieldsOf(name).map((field) => [field.name, field]));
    this.#fields.set(name, fields);
    for (const [key, part] of Object.entries(value)) {
      // The kind of a variant is the name of its field one level up.
      if (key === 'type' || part === undefined || part === null) continue;
      this.paths.add(`${name}.${key}`);
      const { typeName = '' } = fields.get(key) ?? {};
      if (typeName !== '') for (const item of Array.isArray(part) ? part : [part]) this.note(typeName, item);
    }
  }
}

test('each variant and field of the TypeScript frames has its twin in proto/, and the other way round', () => {
  const inUse = new FieldsInUse();
  // So many that none is left out by chance; always the same.
  const frames = { seed: 1, numRuns: 500 };
  for (const frame of fc.sample(anyClientFrame, frames)) inUse.note('ClientFrame', encodeClientFrame(frame));
  for (const frame of fc.sample(anyServerFrame, frames)) inUse.note('ServerFrame', encodeServerFrame(frame));
  for (const frame of fc.sample(anyRelayFrame, frames)) inUse.note('RelayFrame', encodeRelayFrame(frame));
  for (const frame of fc.sample(anyLeaderFrame, frames)) inUse.note('LeaderFrame', encodeLeaderFrame(frame));
  for (const entry of fc.sample(anyHistoryEntry, frames))
    inUse.note('HistoryEntry', encodeHistoryEntry(entry));
  for (const { config } of fc.sample(COMMANDS.configure, frames)) {
    if (config !== null) inUse.note('NamespaceConfig', encodeConfig(config));
  }
  const roots = [
    'ClientFrame',
    'ServerFrame',
    'RelayFrame',
    'LeaderFrame',
    'HistoryEntry',
    'NamespaceConfig',
  ];
  const messages = new Set(roots.flatMap(closure));
  const inProto = [...messages].flatMap((name) => fieldsOf(name).map((field) => `${name}.${field.name}`));
  expect([...inUse.paths].sort()).toEqual(inProto.sort());
  expect(inProto.length).toBeGreaterThan(200);
});

test('field numbers are for ever: this list may only grow', async () => {
  const roots = ['ClientFrame', 'ServerFrame', 'RelayFrame', 'LeaderFrame'];
  const methods = Object.values({
    ...protocol.service('leasehold.v1.Inspect'),
    ...protocol.service('leasehold.v1.History'),
    ...protocol.service('leasehold.v1.Admin'),
  }) as unknown as readonly { requestType: { type: object }; responseType: { type: object } }[];
  for (const { requestType, responseType } of methods) {
    for (const { type } of [requestType, responseType]) roots.push((type as { name: string }).name);
  }
  const names = new Set(roots.flatMap(closure));
  const lines = [...names].sort().flatMap((name) =>
    fieldsOf(name).map(({ name: field, number, label, type, typeName }) => {
      const repeated = label === 'LABEL_REPEATED' ? 'repeated ' : '';
      return `${name}.${field} = ${number}: ${repeated}${typeName || type.slice('TYPE_'.length).toLowerCase()}`;
    }),
  );
  await expect(`${lines.join('\n')}\n`).toMatchFileSnapshot('field-numbers.txt');
});
