/**
 * Events as bytes, for the event hash only (rule C14): nobody reads them back, since replay makes them again.
 */
import type { LockEvent } from '../../api/entry.ts';
import { unreachable } from '../assert.ts';
import type { ByteWriter } from './bytes.ts';
import { canonicalJson } from './commands.ts';

const TAGS = {
  granted: 1,
  queued: 2,
  refused: 3,
  released: 4,
  cancelled: 5,
  expired: 6,
  revoking: 7,
  revoked: 8,
  delayed: 9,
  sessionOpened: 10,
  sessionEnding: 11,
  sessionEnded: 12,
  tookOver: 13,
  configured: 14,
  broken: 15,
  quarantined: 16,
  unquarantined: 17,
  fencingRejected: 18,
} as const satisfies Record<LockEvent['type'], number>;

export function writeEvent(to: ByteWriter, event: LockEvent): void {
  to.byte(TAGS[event.type]);
  switch (event.type) {
    case 'granted':
    case 'queued':
    case 'refused':
    case 'cancelled':
      writeRequestEvent(to, event);
      return;
    case 'released':
      writeGrant(to, event);
      to.string(event.key);
      to.uint(event.remaining);
      return;
    case 'expired':
      writeGrant(to, event);
      return;
    case 'revoking':
    case 'revoked':
    case 'delayed':
    case 'sessionOpened':
    case 'sessionEnding':
    case 'sessionEnded':
    case 'tookOver':
    case 'configured':
    case 'broken':
    case 'quarantined':
    case 'unquarantined':
    case 'fencingRejected':
      // Rare: their fields as JSON cost nothing that matters.
      to.string(canonicalJson(event));
      return;
    default:
      unreachable(event);
  }
}

function writeGrant(to: ByteWriter, event: Extract<LockEvent, { type: 'released' | 'expired' }>): void {
  to.string(event.name);
  to.uint(event.session);
  to.uint(event.token);
  to.string(event.cause);
}

type RequestEvent = Extract<LockEvent, { type: 'granted' | 'queued' | 'refused' | 'cancelled' }>;

function writeRequestEvent(to: ByteWriter, event: RequestEvent): void {
  to.string(event.name);
  to.uint(event.session);
  to.string(event.key);
  switch (event.type) {
    case 'granted':
      to.uint(event.token);
      to.string(event.mode);
      to.uint(event.permits);
      to.string(event.owner);
      to.bool(event.joined);
      to.bool(event.fromQueue);
      to.uint(event.waitedMs);
      return;
    case 'queued':
      to.string(event.mode);
      to.uint(event.permits);
      to.uint(event.position);
      to.uint(event.waitUntil);
      return;
    case 'refused':
      to.string(event.code);
      to.bool(event.fromQueue);
      return;
    case 'cancelled':
      to.uint(event.token);
      to.uint(event.remaining);
      return;
    default:
      unreachable(event);
  }
}
