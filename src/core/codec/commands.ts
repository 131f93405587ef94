/**
 * Commands as bytes: a tag, then the fields in the order written here. Tags and field order are format version 1 and never
 * change; a new field means a new tag (rule L6).
 */
import { MODES, type Mode, type NamespaceConfig } from '../../api/config.ts';
import type { Command, Identity } from '../../api/entry.ts';
import { unreachable } from '../assert.ts';
import { type ByteReader, type ByteWriter, FormatError } from './bytes.ts';

const TAGS = {
  configure: 1,
  openSession: 2,
  attach: 3,
  closeSession: 4,
  expireSessions: 5,
  acquire: 6,
  release: 7,
  cancel: 8,
  break: 9,
  takeOver: 10,
  resign: 11,
  raiseBehaviour: 12,
  quarantine: 13,
  unquarantine: 14,
  reportStale: 15,
} as const satisfies Record<Command['type'], number>;

export function writeCommand(to: ByteWriter, command: Command): void {
  to.byte(TAGS[command.type]);
  switch (command.type) {
    case 'acquire':
      to.uint(command.session);
      to.uint(command.attach);
      to.string(command.key);
      to.string(command.name);
      writeMode(to, command.mode);
      to.uint(command.permits);
      to.bool(command.reentrant);
      to.string(command.owner);
      to.string(command.purpose);
      to.uint(command.waitMs);
      to.uint(command.bucket);
      to.uint(command.mapVersion);
      to.strings(command.acks);
      return;
    case 'release':
      to.uint(command.session);
      to.uint(command.attach);
      to.string(command.name);
      to.uint(command.token);
      to.string(command.key);
      to.strings(command.acks);
      return;
    case 'cancel':
      to.uint(command.session);
      to.uint(command.attach);
      to.string(command.key);
      to.strings(command.acks);
      return;
    default:
      writeSessionCommand(to, command);
  }
}

type SessionCommand = Exclude<Command, { type: 'acquire' | 'release' | 'cancel' }>;

function writeSessionCommand(to: ByteWriter, command: SessionCommand): void {
  switch (command.type) {
    case 'openSession':
      to.string(command.client);
      writeIdentity(to, command.identity);
      to.uint(command.ttlMs);
      to.uint(command.maxHoldMs);
      to.string(command.secretHash);
      return;
    case 'attach':
      to.uint(command.session);
      to.uint(command.attach);
      to.string(command.secretHash);
      return;
    case 'closeSession':
      to.uint(command.session);
      to.uint(command.attach);
      to.bool(command.clean);
      return;
    case 'expireSessions':
      to.byte(command.cause === 'expired' ? 0 : 1);
      to.uint(command.sessions.length);
      for (const session of command.sessions) to.uint(session);
      return;
    case 'reportStale':
      to.uint(command.session);
      to.string(command.name);
      to.uint(command.token);
      to.string(command.resource);
      return;
    default:
      writeAdminCommand(to, command);
  }
}

type AdminCommand = Exclude<
  SessionCommand,
  { type: 'openSession' | 'attach' | 'closeSession' | 'expireSessions' | 'reportStale' }
>;

function writeAdminCommand(to: ByteWriter, command: AdminCommand): void {
  switch (command.type) {
    case 'configure':
      to.uint(command.version);
      // Rare, read by people in dumps, and its shape grows with the manifest: JSON, with the keys in a fixed order.
      to.string(canonicalJson(command.config));
      return;
    case 'break':
      to.string(command.name);
      to.uint(command.token);
      to.bool(command.now);
      to.string(command.reason);
      to.string(command.by);
      return;
    case 'takeOver':
      to.uint(command.epoch);
      to.uint(command.unixSeconds);
      to.uint(command.tokenFloor);
      to.string(command.reason);
      return;
    case 'resign':
      to.uint(command.epoch);
      return;
    case 'raiseBehaviour':
      to.uint(command.level);
      return;
    case 'quarantine':
      to.string(command.name);
      to.string(command.reason);
      return;
    case 'unquarantine':
      to.string(command.name);
      to.string(command.by);
      return;
    default:
      unreachable(command);
  }
}

export function readCommand(from: ByteReader): Command {
  const tag = from.byte();
  switch (tag) {
    case TAGS.acquire:
      return {
        type: 'acquire',
        session: from.uint(),
        attach: from.uint(),
        key: from.string(),
        name: from.string(),
        mode: readMode(from),
        permits: from.uint(),
        reentrant: from.bool(),
        owner: from.string(),
        purpose: from.string(),
        waitMs: from.uint(),
        bucket: from.uint(),
        mapVersion: from.uint(),
        acks: from.strings(),
      };
    case TAGS.release:
      return {
        type: 'release',
        session: from.uint(),
        attach: from.uint(),
        name: from.string(),
        token: from.uint(),
        key: from.string(),
        acks: from.strings(),
      };
    case TAGS.cancel:
      return {
        type: 'cancel',
        session: from.uint(),
        attach: from.uint(),
        key: from.string(),
        acks: from.strings(),
      };
    default:
      return readSessionCommand(from, tag);
  }
}

function readSessionCommand(from: ByteReader, tag: number): Command {
  switch (tag) {
    case TAGS.openSession:
      return {
        type: 'openSession',
        client: from.string(),
        identity: { account: from.string(), podUid: from.string() },
        ttlMs: from.uint(),
        maxHoldMs: from.uint(),
        secretHash: from.string(),
      };
    case TAGS.attach:
      return { type: 'attach', session: from.uint(), attach: from.uint(), secretHash: from.string() };
    case TAGS.closeSession:
      return { type: 'closeSession', session: from.uint(), attach: from.uint(), clean: from.bool() };
    case TAGS.expireSessions: {
      const cause = from.bool() ? 'threw' : 'expired';
      const count = from.uint();
      const sessions: number[] = [];
      for (let i = 0; i < count; i++) sessions.push(from.uint());
      return { type: 'expireSessions', sessions, cause };
    }
    case TAGS.reportStale:
      return {
        type: 'reportStale',
        session: from.uint(),
        name: from.string(),
        token: from.uint(),
        resource: from.string(),
      };
    default:
      return readAdminCommand(from, tag);
  }
}

function readAdminCommand(from: ByteReader, tag: number): Command {
  switch (tag) {
    case TAGS.configure:
      return { type: 'configure', version: from.uint(), config: readConfig(from) };
    case TAGS.break:
      return {
        type: 'break',
        name: from.string(),
        token: from.uint(),
        now: from.bool(),
        reason: from.string(),
        by: from.string(),
      };
    case TAGS.takeOver:
      return {
        type: 'takeOver',
        epoch: from.uint(),
        unixSeconds: from.uint(),
        tokenFloor: from.uint(),
        reason: from.string(),
      };
    case TAGS.resign:
      return { type: 'resign', epoch: from.uint() };
    case TAGS.raiseBehaviour:
      return { type: 'raiseBehaviour', level: from.uint() };
    case TAGS.quarantine:
      return { type: 'quarantine', name: from.string(), reason: from.string() };
    case TAGS.unquarantine:
      return { type: 'unquarantine', name: from.string(), by: from.string() };
    default:
      throw new FormatError(`unknown command tag ${tag}`);
  }
}

/** Only JSON as `canonicalJson` writes it, so that an entry read back is written again as the same bytes. */
function readConfig(from: ByteReader): NamespaceConfig | null {
  const text = from.string();
  let value: NamespaceConfig | null;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new FormatError('a configuration is not JSON', { cause: error });
  }
  if (canonicalJson(value) !== text) throw new FormatError('a configuration is not in canonical form');
  return value;
}

function writeMode(to: ByteWriter, mode: Mode): void {
  const place = MODES.indexOf(mode);
  if (place === -1) throw new FormatError(`unknown mode ${mode}`);
  to.byte(place);
}

function readMode(from: ByteReader): Mode {
  const mode = MODES[from.byte()];
  if (mode === undefined) throw new FormatError('unknown mode');
  return mode;
}

function writeIdentity(to: ByteWriter, identity: Identity): void {
  to.string(identity.account);
  to.string(identity.podUid);
}

/** JSON with object keys sorted, so that equal values give equal bytes. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(withSortedKeys(value));
}

/** Beforehand: a replacer, called for every value, makes `JSON.stringify` several times slower. */
function withSortedKeys(value: unknown): unknown {
  if (value === null || typeof value !== 'object') return value;
  if (Array.isArray(value)) return value.map(withSortedKeys);
  const fields = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(fields.map(([key, inner]) => [key, withSortedKeys(inner)]));
}
