/**
 * The codec that is written by hand and the general one, which reads `proto/` itself, are one format: what either writes the other
 * reads as the same frame.
 */
import { Buffer } from 'node:buffer';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  anyClientFrame,
  anyLeaderFrame,
  anyRelayFrame,
  anyServerFrame,
} from '../../../test/support/frame-arbitraries.ts';
import type { ServerFrame } from '../../api/wire.ts';
import { requestProblem } from '../front-end/validate.ts';
import { type Codec, frameCodecs } from './frame-codec.ts';
import {
  decodeClientFrame,
  decodeLeaderFrame,
  decodeServerFrame,
  encodeClientFrame,
  encodeLeaderFrame,
  encodeServerFrame,
} from './general-frames.fixture.ts';
import { loadProtocol, type Message, MessageError } from './proto.ts';
import { ProtoWriter } from './proto-bytes.ts';
import { decodeRelayFrame, encodeRelayFrame } from './relay-frames.ts';
import { FIELDS_PER_FRAME_MAX, ITEMS_PER_FRAME_MAX } from './stream-messages.ts';

const protocol = loadProtocol();
const codecs = frameCodecs(protocol);

function bytesOf(name: string, message: Message): Buffer {
  return protocol.message(`leasehold.v1.${name}`).serialize(message);
}

/** The same frames by way of the general codec. */
function general<Frame>(
  name: string,
  encode: (frame: Frame) => Message,
  decode: (message: Message) => Frame,
): Codec<Frame> {
  const message = protocol.message(`leasehold.v1.${name}`);
  return {
    encode: (frame) => message.serialize(encode(frame)),
    decode: (bytes) => decode(message.deserialize(bytes)),
  };
}

function expectOneFormat<Frame>(
  arbitrary: fc.Arbitrary<Frame>,
  byHand: Codec<Frame>,
  byDescription: Codec<Frame>,
): void {
  fc.assert(
    fc.property(arbitrary, (frame) => {
      // fast-check's objects have no prototype.
      const expected = structuredClone(frame);
      expect(byHand.decode(byHand.encode(frame))).toStrictEqual(expected);
      expect(byDescription.decode(byHand.encode(frame))).toStrictEqual(expected);
      expect(byHand.decode(byDescription.encode(frame))).toStrictEqual(expected);
    }),
    { numRuns: 400 },
  );
}

describe('both codecs write and read one format', () => {
  test('frames of clients', () => {
    expectOneFormat(
      anyClientFrame,
      codecs.client,
      general('ClientFrame', encodeClientFrame, decodeClientFrame),
    );
  });

  test('frames of servers', () => {
    expectOneFormat(
      anyServerFrame,
      codecs.server,
      general('ServerFrame', encodeServerFrame, decodeServerFrame),
    );
  });

  test('frames of front ends', () => {
    expectOneFormat(anyRelayFrame, codecs.relay, general('RelayFrame', encodeRelayFrame, decodeRelayFrame));
  });

  test('frames of leaders', () => {
    expectOneFormat(
      anyLeaderFrame,
      codecs.leader,
      general('LeaderFrame', encodeLeaderFrame, decodeLeaderFrame),
    );
  });
});

const FRAME: ServerFrame = {
  position: { lineage: 'l', epoch: 1, index: 1 },
  leading: true,
  answers: [{ id: 1, body: { type: 'granted', token: 7 } }],
  notices: [],
};

describe('lengths', () => {
  test('of texts, messages and lists around each number of bytes that a length may take', () => {
    for (const length of [0, 1, 40, 41, 127, 128, 129, 16_383, 16_384, 70_000, 3_000_000]) {
      const purpose = 'x'.repeat(length);
      const body = {
        type: 'cancel',
        session: 1,
        attach: 1,
        key: purpose,
        acks: [`é${purpose}`, '', 'k'],
      } as const;
      const frame = {
        format: 1,
        requests: [
          { id: 1, body },
          { id: 2, body },
        ],
      };
      expect(codecs.client.decode(codecs.client.encode(frame))).toStrictEqual(frame);
      const closed = Array.from({ length: Math.min(length, 20_000) }, (_, at) => at * 1_000);
      const relayed = { format: 1, groups: [], closed };
      expect(codecs.relay.decode(codecs.relay.encode(relayed))).toStrictEqual(relayed);
    }
  });

  test('a list of numbers may also come one by one', () => {
    const bytes = Buffer.from([0x08, 1, 0x18, 5, 0x18, 6]);
    expect(codecs.relay.decode(bytes).closed).toEqual([5, 6]);
  });
});

describe('what is not known is passed over, where the general codec does so', () => {
  /** Fields 100 to 103, of each kind that the format has. */
  const UNKNOWN = Buffer.from([
    ...[0xa0, 0x06, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
    ...[0xa9, 0x06, 1, 2, 3, 4, 5, 6, 7, 8],
    ...[0xb2, 0x06, 3, 1, 2, 3],
    ...[0xbd, 0x06, 1, 2, 3, 4],
  ]);

  test('a newer field of a frame', () => {
    const bytes = Buffer.concat([UNKNOWN, codecs.server.encode(FRAME), UNKNOWN]);
    expect(codecs.server.decode(bytes)).toStrictEqual(FRAME);
  });

  test('a newer field within a request', () => {
    const release = Buffer.concat([
      UNKNOWN,
      bytesOf('Release', { session: 1, name: 'n', token: 5 }),
      UNKNOWN,
    ]);
    const request = Buffer.concat([Buffer.from([0x08, 9, 0x1a, release.length]), release, UNKNOWN]);
    const frame = codecs.client.decode(
      Buffer.concat([Buffer.from([0x08, 1, 0x12, request.length]), request]),
    );
    const body = { type: 'release', session: 1, attach: 0, name: 'n', token: 5, key: '', acks: [] };
    expect(frame).toEqual({ format: 1, requests: [{ id: 9, body: expect.objectContaining(body) }] });
  });

  test('a notice of an unknown event', () => {
    const known = { session: 1, attach: 1, event: { delayed: { name: 'n', until: 1 } } };
    const notices = [{ session: 1, attach: 1, event: {} }, { session: 1, attach: 1 }, known];
    const bytes = bytesOf('ServerFrame', { ...encodeServerFrame(FRAME), notices });
    expect(codecs.server.decode(bytes).notices).toEqual([
      { session: 1, attach: 1, event: { type: 'delayed', name: 'n', until: 1 } },
    ]);
  });
});

describe('what does not fit is refused, never guessed at', () => {
  test('a number over 2^53 - 1', () => {
    const keepalive = { number: 1, sessions: [{ session: 2 ** 53, attach: 1 }] };
    const frame = bytesOf('ClientFrame', { format: 1, requests: [], keepalive });
    expect(() => codecs.client.decode(frame)).toThrow(/2\^53/);
    const acquire = { session: 2 ** 60, name: 'n' };
    expect(() =>
      codecs.client.decode(bytesOf('ClientFrame', { format: 1, requests: [{ id: 1, acquire }] })),
    ).toThrow(MessageError);
    expect(() =>
      codecs.server.encode({ ...FRAME, answers: [{ id: 2 ** 53, body: { type: 'done' } }] }),
    ).toThrow(MessageError);
  });

  test('an answer about a lock without the lock', () => {
    const answers = [{ id: 7, lock: {} }];
    const bytes = bytesOf('ServerFrame', { ...encodeServerFrame(FRAME), answers });
    expect(() => codecs.server.decode(bytes)).toThrow(MessageError);
  });

  test('very many requests or sessions, two bytes each, in one frame', () => {
    const many = Buffer.alloc(2 * (ITEMS_PER_FRAME_MAX + 1));
    for (let at = 0; at < many.length; at += 2) many[at] = 0x12;
    expect(() => codecs.client.decode(Buffer.concat([Buffer.from([0x08, 1]), many]))).toThrow(
      /more than 20000 requests/,
    );
    const keepalive = Buffer.concat([Buffer.from([0x08, 1, 0x1a, 0xc2, 0xb8, 0x02]), many]);
    expect(() => codecs.client.decode(keepalive)).toThrow(/more than 20000 sessions/);
  });

  test('very many fields in one frame, which may have come as a few kilobytes, compressed', () => {
    const fields = (tag: number, count = FIELDS_PER_FRAME_MAX): Buffer =>
      Buffer.alloc(2 * count, Buffer.from([tag, 0]));
    const format = Buffer.from([0x08, 1]);
    const inRequest = (content: Buffer): Buffer => {
      const to = new ProtoWriter();
      to.message(0x12, content);
      return Buffer.concat([format, to.copy()]);
    };
    const inAcquire = new ProtoWriter();
    inAcquire.message(0x12, fields(0x08));
    for (const bytes of [
      // A field that nobody knows; one that is known, again and again; the same within a request, and within a rare one.
      Buffer.concat([format, fields(0x78)]),
      Buffer.concat([fields(0x08), format]),
      inRequest(inAcquire.copy()),
      inRequest(Buffer.concat([Buffer.from([0x4a, 0]), fields(0x78, 2 * FIELDS_PER_FRAME_MAX)])),
    ]) {
      expect(() => codecs.client.decode(bytes)).toThrow(/more than 1000000 fields/);
    }
  });

  test('very many acknowledgements, two bytes each, are read in time that grows with their number only', () => {
    const acks = Array.from({ length: 300_000 }, () => '');
    const requests = (['acquire', 'release', 'cancel'] as const).map((type) => ({ id: 1, [type]: { acks } }));
    const bytes = bytesOf('ClientFrame', { format: 1, requests });
    const { requests: read } = codecs.client.decode(bytes);
    expect(read.map(({ body }) => 'acks' in body && body.acks.length)).toEqual([300_000, 300_000, 300_000]);
  });

  test('another format, a frame without a place in the log, an unknown answer or request', () => {
    expect(() => codecs.client.decode(bytesOf('ClientFrame', { format: 2, requests: [] }))).toThrow(
      /format 2/,
    );
    const { position: _, ...placeless } = encodeServerFrame(FRAME);
    expect(() => codecs.server.decode(bytesOf('ServerFrame', placeless))).toThrow(/where in the log/);
    const otherFormat = bytesOf('ServerFrame', { ...encodeServerFrame(FRAME), format: 0 });
    expect(() => codecs.server.decode(otherFormat)).toThrow(/format 0/);
    const { position: __, ...leaderless } = encodeLeaderFrame({ position: FRAME.position, groups: [] });
    expect(() => codecs.leader.decode(bytesOf('LeaderFrame', leaderless))).toThrow(/where in the log/);
    const answers = [{ id: 7 }];
    const answered = bytesOf('ServerFrame', { ...encodeServerFrame(FRAME), answers });
    expect(() => codecs.server.decode(answered)).toThrow(/answer 7/);
    const groups = [{ client: 1, requests: [{ id: 8, openSession: { client: 'c' } }] }];
    expect(() => codecs.relay.decode(bytesOf('RelayFrame', { format: 1, groups }))).toThrow(/request 8/);
    const unknown = [{ client: 1, requests: [{ id: 7 }] }];
    const relayed = bytesOf('RelayFrame', { format: 1, groups: unknown });
    expect(() => codecs.relay.decode(relayed)).toThrow(/request 7/);
  });

  test('a client request of an unknown kind reaches the front end, which refuses it under its id', () => {
    const { requests } = codecs.client.decode(bytesOf('ClientFrame', { format: 1, requests: [{ id: 7 }] }));
    expect(requests).toEqual([{ id: 7, body: { type: 'none' } }]);
    expect(requestProblem(requests[0]!.body)?.field).toBe('type');
  });

  test('frames that were cut off or altered: an error or another frame, never anything else', () => {
    const each = [
      [anyClientFrame, codecs.client],
      [anyServerFrame, codecs.server],
      [anyRelayFrame, codecs.relay],
      [anyLeaderFrame, codecs.leader],
    ] as const;
    let refused = 0;
    for (const [frames, codec] of each) {
      const altered = fc.tuple(frames as fc.Arbitrary<never>, fc.nat(), fc.nat(255), fc.boolean());
      fc.assert(
        fc.property(altered, ([frame, place, byte, isCut]) => {
          const bytes = codec.encode(frame);
          const at = place % bytes.length;
          bytes[at] = byte;
          try {
            codec.decode(isCut ? bytes.subarray(0, at) : bytes);
          } catch (error) {
            refused++;
            expect(error).toBeInstanceOf(Error);
            expect(error).not.toBeInstanceOf(TypeError);
          }
        }),
        { numRuns: 500 },
      );
    }
    expect(refused).toBeGreaterThan(200);
  });
});
