/**
 * The messages of `proto/leasehold/v1/lock.proto` that come with every operation, written and read by hand: by way of the
 * general codec they were the larger part of what an operation costs. Everything else goes that way still; which one a message
 * takes is not visible in its bytes. `frame-codec.test.ts` holds the two together.
 *
 * Each message is written out field by field, as a generator would do it: the loops are alike on purpose, and share what is no field
 * (ends, unknown fields, lists) in `proto-bytes.ts`.
 */
import type { Mode } from '../../api/config.ts';
import type { Acquire, Cancel, LockEvent, Release } from '../../api/entry.ts';
import { added, lengthTag, numberTag, type ProtoReader, type ProtoWriter } from './proto-bytes.ts';

// Of this file's own: what is imported is looked up each time, which costs a sixth of the writing.
const N1 = numberTag(1);
const N2 = numberTag(2);
const N4 = numberTag(4);
const N6 = numberTag(6);
const N7 = numberTag(7);
const N8 = numberTag(8);
const N9 = numberTag(9);
const N10 = numberTag(10);
const N11 = numberTag(11);
const N12 = numberTag(12);
const L1 = lengthTag(1);
const L3 = lengthTag(3);
const L4 = lengthTag(4);
const L5 = lengthTag(5);
const L6 = lengthTag(6);
const L7 = lengthTag(7);
const L8 = lengthTag(8);
const L9 = lengthTag(9);
const L13 = lengthTag(13);

type Granted = Extract<LockEvent, { type: 'granted' }>;

const NO_TEXTS: readonly string[] = [];

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
