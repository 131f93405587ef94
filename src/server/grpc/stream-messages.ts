/**
 * The messages that a stream needs besides its operations: who is at its end, where its log is, and that its sessions live. They come
 * with nearly every frame, and are written and read by hand as those of hot-messages.ts are.
 */
import type { Identity, RevokeCause } from '../../api/entry.ts';
import type {
  KeepaliveAnswer,
  KeepaliveRequest,
  KeepaliveStatus,
  Mark,
  Position,
  RevokingGrant,
} from '../../api/wire.ts';
import { MessageError } from './proto.ts';
import { added, lengthTag, numberTag, type ProtoReader, type ProtoWriter } from './proto-bytes.ts';

const N1 = numberTag(1);
const N2 = numberTag(2);
const N3 = numberTag(3);
const N4 = numberTag(4);
const N5 = numberTag(5);
const L1 = lengthTag(1);
const L2 = lengthTag(2);
const L4 = lengthTag(4);
const L5 = lengthTag(5);
const L7 = lengthTag(7);

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

const NO_REVOKES: readonly RevokingGrant[] = [];

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
