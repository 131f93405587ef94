/**
 * The messages of `proto/leasehold/v1/lock.proto` that come with every operation, written and read by hand: by way of the
 * general codec they were the larger part of what an operation costs. Everything else goes that way still; which one a message
 * takes is not visible in its bytes. `frame-codec.test.ts` holds the two together.
 *
 * Each message is written out field by field, as a generator would do it: the loops are alike on purpose, and share what is no field
 * (ends, unknown fields, lists) in `proto-bytes.ts`.
 */
import type { Mode } from '../../api/config.ts';
import type { Acquire, Cancel, Identity, LockEvent, Release, RevokeCause } from '../../api/entry.ts';
import type {
  KeepaliveAnswer,
  KeepaliveRequest,
  KeepaliveStatus,
  Mark,
  Position,
  RevokingGrant,
} from '../../api/wire.ts';
import { MessageError } from './proto.ts';
import { lengthTag, numberTag, type ProtoReader, type ProtoWriter } from './proto-bytes.ts';

type Granted = Extract<LockEvent, { type: 'granted' }>;

const N1 = numberTag(1);
const N2 = numberTag(2);
const N3 = numberTag(3);
const N4 = numberTag(4);
const N5 = numberTag(5);
const N6 = numberTag(6);
const N7 = numberTag(7);
const N8 = numberTag(8);
const N9 = numberTag(9);
const N10 = numberTag(10);
const N11 = numberTag(11);
const N12 = numberTag(12);
const L1 = lengthTag(1);
const L2 = lengthTag(2);
const L3 = lengthTag(3);
const L4 = lengthTag(4);
const L5 = lengthTag(5);
const L6 = lengthTag(6);
const L7 = lengthTag(7);
const L8 = lengthTag(8);
const L9 = lengthTag(9);
const L13 = lengthTag(13);

/**
 * Requests, and sessions kept alive, in one frame: all that a client may have open at once. Two bytes of a frame can be a request, which
 * takes hundreds of bytes to refuse, and nobody else is served meanwhile: with five times as many the loop stood still for a second.
 */
export const ITEMS_PER_FRAME_MAX = 20_000;
/** Fields in one frame of a client: three times those of as many requests. To read them takes a tenth of a second. */
export const FIELDS_PER_FRAME_MAX = 1_000_000;

export function tooMany(what: 'requests' | 'sessions'): MessageError {
  return new MessageError(`a frame holds more than ${ITEMS_PER_FRAME_MAX} ${what}; send them in several`);
}

const NO_TEXTS: readonly string[] = [];
const NO_REVOKES: readonly RevokingGrant[] = [];

/** Lists that are not empty were made here. A copy for each item would let one frame with many of them stop the process. */
function added<T>(list: readonly T[], item: T): readonly T[] {
  if (list.length === 0) return [item];
  (list as T[]).push(item);
  return list;
}

export function writeAcquire(to: ProtoWriter, acquire: Acquire): void {
  to.number(N1, acquire.session);
  to.number(N2, acquire.attach);
  to.text(L3, acquire.key);
  to.text(L4, acquire.name);
  to.text(L5, acquire.mode);
  to.number(N6, acquire.permits);
  to.bool(N7, acquire.reentrant);
  to.text(L8, acquire.owner);
  to.text(L9, acquire.purpose);
  to.number(N10, acquire.waitMs);
  to.number(N11, acquire.bucket);
  to.number(N12, acquire.mapVersion);
  to.items(L13, acquire.acks);
}

export function readAcquire(from: ProtoReader): Acquire {
  const end = from.end();
  let [session, attach, permits, waitMs, bucket, mapVersion] = [0, 0, 0, 0, 0, 0];
  let [key, name, mode, owner, purpose] = ['', '', '', '', ''];
  let reentrant = false;
  let acks = NO_TEXTS;
  while (from.at < end) {
    const tag = from.tag();
    if (tag === N1) session = from.number();
    else if (tag === N2) attach = from.number();
    else if (tag === L3) key = from.text();
    else if (tag === L4) name = from.text();
    else if (tag === L5) mode = from.text();
    else if (tag === N6) permits = from.number();
    else if (tag === N7) reentrant = from.bool();
    else if (tag === L8) owner = from.text();
    else if (tag === L9) purpose = from.text();
    else if (tag === N10) waitMs = from.number();
    else if (tag === N11) bucket = from.number();
    else if (tag === N12) mapVersion = from.number();
    else if (tag === L13) acks = added(acks, from.text());
    else from.skip(tag);
  }
  from.ended(end);
  return {
    type: 'acquire',
    session,
    attach,
    key,
    name,
    mode: mode as Mode,
    permits,
    reentrant,
    owner,
    purpose,
    waitMs,
    bucket,
    mapVersion,
    acks,
  };
}

export function writeRelease(to: ProtoWriter, release: Release): void {
  to.number(N1, release.session);
  to.number(N2, release.attach);
  to.text(L3, release.name);
  to.number(N4, release.token);
  to.text(L5, release.key);
  to.items(L6, release.acks);
}

export function readRelease(from: ProtoReader): Release {
  const end = from.end();
  let [session, attach, token] = [0, 0, 0];
  let [name, key] = ['', ''];
  let acks = NO_TEXTS;
  while (from.at < end) {
    const tag = from.tag();
    if (tag === N1) session = from.number();
    else if (tag === N2) attach = from.number();
    else if (tag === L3) name = from.text();
    else if (tag === N4) token = from.number();
    else if (tag === L5) key = from.text();
    else if (tag === L6) acks = added(acks, from.text());
    else from.skip(tag);
  }
  from.ended(end);
  return { type: 'release', session, attach, name, token, key, acks };
}

export function writeCancel(to: ProtoWriter, cancel: Cancel): void {
  to.number(N1, cancel.session);
  to.number(N2, cancel.attach);
  to.text(L3, cancel.key);
  to.items(L4, cancel.acks);
}

export function readCancel(from: ProtoReader): Cancel {
  const end = from.end();
  let [session, attach] = [0, 0];
  let key = '';
  let acks = NO_TEXTS;
  while (from.at < end) {
    const tag = from.tag();
    if (tag === N1) session = from.number();
    else if (tag === N2) attach = from.number();
    else if (tag === L3) key = from.text();
    else if (tag === L4) acks = added(acks, from.text());
    else from.skip(tag);
  }
  from.ended(end);
  return { type: 'cancel', session, attach, key, acks };
}

/** A message with one number: the answers `granted` and `queued`. */
export function readOneNumber(from: ProtoReader): number {
  const end = from.end();
  let value = 0;
  while (from.at < end) {
    const tag = from.tag();
    if (tag === N1) value = from.number();
    else from.skip(tag);
  }
  from.ended(end);
  return value;
}

export function writeOneNumber(to: ProtoWriter, value: number): void {
  to.number(N1, value);
}

export function writeGrantedEvent(to: ProtoWriter, granted: Granted): void {
  to.text(L1, granted.name);
  to.number(N2, granted.session);
  to.text(L3, granted.key);
  to.number(N4, granted.token);
  to.text(L5, granted.mode);
  to.number(N6, granted.permits);
  to.text(L7, granted.owner);
  to.bool(N8, granted.fromQueue);
  to.number(N9, granted.waitedMs);
  to.bool(N10, granted.joined);
}

export function readGrantedEvent(from: ProtoReader): Granted {
  const end = from.end();
  let [session, token, permits, waitedMs] = [0, 0, 0, 0];
  let [name, key, mode, owner] = ['', '', '', ''];
  let [fromQueue, joined] = [false, false];
  while (from.at < end) {
    const tag = from.tag();
    if (tag === L1) name = from.text();
    else if (tag === N2) session = from.number();
    else if (tag === L3) key = from.text();
    else if (tag === N4) token = from.number();
    else if (tag === L5) mode = from.text();
    else if (tag === N6) permits = from.number();
    else if (tag === L7) owner = from.text();
    else if (tag === N8) fromQueue = from.bool();
    else if (tag === N9) waitedMs = from.number();
    else if (tag === N10) joined = from.bool();
    else from.skip(tag);
  }
  from.ended(end);
  return {
    type: 'granted',
    name,
    session,
    key,
    token,
    mode: mode as Mode,
    permits,
    owner,
    fromQueue,
    waitedMs,
    joined,
  };
}

export function writePosition(to: ProtoWriter, position: Position): void {
  to.text(L1, position.lineage);
  to.number(N2, position.epoch);
  to.number(N3, position.index);
}

export function readPosition(from: ProtoReader): Position {
  const end = from.end();
  let lineage = '';
  let [epoch, index] = [0, 0];
  while (from.at < end) {
    const tag = from.tag();
    if (tag === L1) lineage = from.text();
    else if (tag === N2) epoch = from.number();
    else if (tag === N3) index = from.number();
    else from.skip(tag);
  }
  from.ended(end);
  return { lineage, epoch, index };
}

export function writeIdentity(to: ProtoWriter, tag: number, { account, podUid }: Identity): void {
  const begun = to.begin(tag);
  to.text(L1, account);
  to.text(L2, podUid);
  to.end(begun);
}

export function readIdentity(from: ProtoReader): Identity {
  const end = from.end();
  let [account, podUid] = ['', ''];
  while (from.at < end) {
    const tag = from.tag();
    if (tag === L1) account = from.text();
    else if (tag === L2) podUid = from.text();
    else from.skip(tag);
  }
  from.ended(end);
  return { account, podUid };
}

export function writeMark(to: ProtoWriter, mark: Mark): void {
  writePosition(to, mark);
  to.text(L4, mark.hash);
  to.text(L5, mark.seal);
}

export function readMark(from: ProtoReader): Mark {
  const end = from.end();
  let [lineage, hash, seal] = ['', '', ''];
  let [epoch, index] = [0, 0];
  while (from.at < end) {
    const tag = from.tag();
    if (tag === L1) lineage = from.text();
    else if (tag === N2) epoch = from.number();
    else if (tag === N3) index = from.number();
    else if (tag === L4) hash = from.text();
    else if (tag === L5) seal = from.text();
    else from.skip(tag);
  }
  from.ended(end);
  return { lineage, epoch, index, hash, seal };
}

export function writeKeepaliveRequest(to: ProtoWriter, { number, sessions }: KeepaliveRequest): void {
  to.number(N1, number);
  for (const { session, attach } of sessions) {
    const begun = to.begin(L2);
    to.number(N1, session);
    to.number(N2, attach);
    to.end(begun);
  }
}

export function readKeepaliveRequest(from: ProtoReader): KeepaliveRequest {
  const end = from.end();
  let number = 0;
  const sessions: { session: number; attach: number }[] = [];
  while (from.at < end) {
    const tag = from.tag();
    if (tag === N1) number = from.number();
    else if (tag === L2) sessions.push(readKeepaliveSession(from));
    else from.skip(tag);
    if (sessions.length > ITEMS_PER_FRAME_MAX) throw tooMany('sessions');
  }
  from.ended(end);
  return { number, sessions };
}

function readKeepaliveSession(from: ProtoReader): { session: number; attach: number } {
  const end = from.end();
  let [session, attach] = [0, 0];
  while (from.at < end) {
    const tag = from.tag();
    if (tag === N1) session = from.number();
    else if (tag === N2) attach = from.number();
    else from.skip(tag);
  }
  from.ended(end);
  return { session, attach };
}

export function writeKeepaliveAnswer(to: ProtoWriter, { number, sessions }: KeepaliveAnswer): void {
  to.number(N1, number);
  for (const status of sessions) {
    const begun = to.begin(L2);
    writeStatus(to, status);
    to.end(begun);
  }
}

function writeStatus(to: ProtoWriter, status: KeepaliveStatus): void {
  to.number(N1, status.session);
  to.number(N2, status.attach);
  to.bool(N3, status.alive);
  if (!status.alive) return;
  to.number(N4, status.grants);
  to.number(N5, status.digest);
  for (const { token, cause } of status.revoking) {
    const begun = to.begin(L7);
    to.number(N1, token);
    to.text(L2, cause);
    to.end(begun);
  }
}

export function readKeepaliveAnswer(from: ProtoReader): KeepaliveAnswer {
  const end = from.end();
  let number = 0;
  const sessions: KeepaliveStatus[] = [];
  while (from.at < end) {
    const tag = from.tag();
    if (tag === N1) number = from.number();
    else if (tag === L2) sessions.push(readStatus(from));
    else from.skip(tag);
  }
  from.ended(end);
  return { number, sessions };
}

function readStatus(from: ProtoReader): KeepaliveStatus {
  const end = from.end();
  let [session, attach, grants, digest] = [0, 0, 0, 0];
  let alive = false;
  let revoking = NO_REVOKES;
  while (from.at < end) {
    const tag = from.tag();
    if (tag === N1) session = from.number();
    else if (tag === N2) attach = from.number();
    else if (tag === N3) alive = from.bool();
    else if (tag === N4) grants = from.number();
    else if (tag === N5) digest = from.number();
    else if (tag === L7) revoking = added(revoking, readRevoking(from));
    else from.skip(tag);
  }
  from.ended(end);
  return alive ? { session, attach, alive, grants, digest, revoking } : { session, attach, alive: false };
}

function readRevoking(from: ProtoReader): RevokingGrant {
  const end = from.end();
  let token = 0;
  let cause = '';
  while (from.at < end) {
    const tag = from.tag();
    if (tag === N1) token = from.number();
    else if (tag === L2) cause = from.text();
    else from.skip(tag);
  }
  from.ended(end);
  return { token, cause: cause as RevokeCause };
}
