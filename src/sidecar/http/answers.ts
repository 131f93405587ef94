/** What callers get back, as schemas: handlers are typed by them, tests check the server's answers against them. */
import * as z from 'zod';
import { MODES } from '../../api/config.ts';
import { REVOKE_CAUSES } from '../../api/entry.ts';
import { ERRORS, type ErrorCode } from '../../api/errors.ts';
import { token } from './fields.ts';

const milliseconds = (description: string) => z.number().int().meta({ description });

const revokeCause = z.enum(REVOKE_CAUSES);

const deadlineFields = {
  deadline_in_ms: milliseconds(
    'How long the grant may be trusted from now on; 0 or less = no more, or after a restart of the sidecar not yet.',
  ),
  deadline_monotonic_ns: z
    .string()
    .regex(/^-?[0-9]+$/)
    .meta({ description: "The same moment on this machine's CLOCK_MONOTONIC, in nanoseconds." }),
};

export const openAnswer = z.strictObject({
  session_id: z.string(),
  ttl_s: z.number().meta({
    description:
      'How long the session outlives its last keepalive at the least, in seconds: without a choice, the shortest ttl of the ' +
      'LockNamespaces served here.',
  }),
  keepalive_every_s: z.number().meta({ description: 'Call keepalive at least so often, in seconds.' }),
});
export const deadlineAnswer = z.strictObject(deadlineFields);
export const closedAnswer = z.strictObject({ closed: z.literal(true) });

const revoking = revokeCause
  .exactOptional()
  .meta({ description: 'It is being taken away, and why: the deadline does not move any more.' });
export const grant = z.strictObject({
  session_id: z.string(),
  token,
  lease_ttl_ms: milliseconds('TTL of the session in this LockNamespace.'),
  ...deadlineFields,
  revoking,
});
export const acquiredAnswer = z.strictObject({ acquired: z.literal(true), ...grant.shape });
export const renewedAnswer = z.strictObject({ renewed: z.literal(true), ...grant.shape });
export const releasedAnswer = z.strictObject({
  released: z.literal(true),
  already: z.literal(true).exactOptional().meta({ description: 'This token had been released before.' }),
});
export const recordedAnswer = z.strictObject({ recorded: z.literal(true) });
export const heldAnswer = z.strictObject({
  held: z.boolean(),
  deadline_in_ms: deadlineFields.deadline_in_ms.exactOptional(),
  deadline_monotonic_ns: deadlineFields.deadline_monotonic_ns.exactOptional(),
  revoking,
});

const shownSession = z.number().int().meta({ description: 'Number of the session within its lock group.' });

export const holder = z.strictObject({
  session: shownSession,
  client: z.string(),
  owner: z.string(),
  purpose: z.string(),
  token,
  mode: z.enum(MODES),
  permits: z.number().int().meta({ description: '1, except for semaphores.' }),
  held_for_ms: milliseconds('Since the grant.'),
  revoking: revokeCause
    .nullable()
    .meta({ description: 'Why the grant is being taken away; null while it is not.' }),
});
export const waiter = z.strictObject({
  session: shownSession,
  client: z.string(),
  owner: z.string(),
  mode: z.enum(MODES),
  permits: z.number().int(),
  waited_ms: milliseconds('Since the acquire.'),
});
export const lock = z.strictObject({
  name: z.string().meta({ description: 'Full name: <alias>/<rest>.' }),
  mode: z.enum(MODES).nullable().meta({ description: 'In which it is held; null while nobody holds it.' }),
  holders: z.array(holder).meta({ description: 'Who holds it, by rising token; the first 100.' }),
  holder_count: z.number().int().meta({ description: 'How many hold it.' }),
  holder: holder.nullable().meta({ description: 'The first of `holders`, whose fields are repeated below.' }),
  token: token.nullable(),
  owner: z.string().nullable(),
  purpose: z.string().nullable(),
  held_for_ms: milliseconds('Since the grant.').nullable(),
  waiters: z.number().int().meta({ description: 'How many wait.' }),
  queue: z
    .array(waiter)
    .meta({ description: 'The first waiters, in the order in which they will be granted.' }),
  lock_delay_ms: milliseconds('What is left of the lock-delay; 0 = none runs.'),
  quarantined: z.boolean(),
});
export const listAnswer = z.strictObject({
  locks: z.array(lock),
  continue: z.string().exactOptional().meta({ description: 'There is more: send it as `continue`.' }),
});

const eventDeadline = { deadline_in_ms: deadlineFields.deadline_in_ms };
const eventName = { name: z.string().meta({ description: 'Full name of the lock.' }) };
const eventRequest = { request: z.string().exactOptional() };

/** One line of the event stream. */
export const eventLine = z.discriminatedUnion('event', [
  z.strictObject({ event: z.literal('alive') }),
  z.strictObject({
    event: z.literal('queued'),
    ...eventName,
    position: z.number().int().meta({ description: 'Counts from 1.' }),
    ...eventRequest,
  }),
  z.strictObject({ event: z.literal('granted'), ...eventName, token, ...eventRequest, ...eventDeadline }),
  z.strictObject({ event: z.literal('jeopardy'), ...eventDeadline }),
  z.strictObject({ event: z.literal('restored'), ...eventDeadline }),
  z.strictObject({
    event: z.literal('revoking'),
    ...eventName,
    token,
    cause: revokeCause,
    ...eventDeadline,
  }),
  z.strictObject({ event: z.literal('lost'), ...eventName, token, reason: z.string() }),
  z.strictObject({ event: z.literal('session_lost'), reason: z.string() }),
]);

export const liveAnswer = z.strictObject({ live: z.literal(true) });
export const readyAnswer = z.strictObject({
  ready: z.literal(true),
  problems: z.array(z.string()).optional(),
});

const problem = z.strictObject({
  field: z.string(),
  limit: z.union([z.number(), z.string()]),
  reason: z.string(),
});
const code = z.enum(Object.keys(ERRORS) as [ErrorCode, ...ErrorCode[]]);

/** Every refusal. Further details may be added; callers ignore what they do not know. */
export const errorAnswer = z.looseObject({
  code,
  message: z.string().meta({ description: 'For people; may change.' }),
  field: z.string().exactOptional().meta({ description: 'INVALID: the first field that is wrong.' }),
  limit: z.union([z.number(), z.string()]).exactOptional().meta({ description: 'What would be right.' }),
  reason: z.string().exactOptional(),
  problems: z.array(problem).exactOptional().meta({ description: 'INVALID: everything that is wrong.' }),
  name: z.string().exactOptional().meta({ description: 'The lock in question.' }),
  retry_after_ms: z
    .number()
    .int()
    .exactOptional()
    .meta({ description: 'Wait so long before the next try; also as Retry-After, in seconds.' }),
});

/** The refusal of an acquire: nothing is held. */
export const notAcquiredAnswer = errorAnswer.extend({
  acquired: z.literal(false),
  holder: holder.nullable().exactOptional().meta({ description: 'Who holds the lock, where that is known.' }),
  queue_position: z
    .number()
    .int()
    .exactOptional()
    .meta({ description: 'The place it would have had in the queue.' }),
  lock_delay_ms: z.number().int().exactOptional(),
});
