/**
 * The `.proto` files of the package, read at run time: they are the one description of the public protocol, so there is no
 * generated code beside them that could differ. They lie at the same place relative to `src` and to `dist`.
 */
import { fileURLToPath } from 'node:url';
import type { ServiceDefinition } from '@grpc/grpc-js';
import { loadSync, type MessageTypeDefinition, type PackageDefinition } from '@grpc/proto-loader';

const FILES = [
  'leasehold/v1/lock.proto',
  'leasehold/v1/relay.proto',
  'leasehold/v1/admin.proto',
  'grpc/health/v1/health.proto',
];

/** A message as an object: fields under camel-case names, the name of the field in use under the name of its `oneof`. */
export type Message = Readonly<Record<string, unknown>>;

export interface Protocol {
  /** `name` such as `leasehold.v1.Inspect`. */
  service(name: string): ServiceDefinition;
  message(name: string): MessageTypeDefinition<Message, Message>;
}

/** Reads and resolves the files: some 50 ms, so once for each program. Throws when the installation is incomplete. */
export function loadProtocol(): Protocol {
  const definitions = loadSync(FILES, {
    includeDirs: [fileURLToPath(new URL('../../../proto/', import.meta.url))],
    // 64-bit values become numbers, rounded above 2^53; `checkIntegers` refuses those.
    longs: Number,
    enums: String,
    defaults: true,
    oneofs: true,
  });
  return {
    service: (name) => definitionOf(definitions, name) as ServiceDefinition,
    message: (name) => definitionOf(definitions, name) as unknown as MessageTypeDefinition<Message, Message>,
  };
}

function definitionOf(definitions: PackageDefinition, name: string): PackageDefinition[string] {
  const definition = definitions[name];
  if (definition === undefined) throw new RangeError(`proto/ defines no ${name}`);
  return definition;
}

/** What came over the wire does not fit the protocol: never repaired by a guess. */
export class MessageError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'MessageError';
  }
}

/** Throws MessageError when a number anywhere in `value` cannot have been sent exactly (rule C12). */
export function checkIntegers(value: unknown): void {
  if (typeof value === 'number') {
    if (!Number.isSafeInteger(value)) throw new MessageError('a number is over 2^53 - 1');
  } else if (Array.isArray(value)) {
    for (const item of value) checkIntegers(item);
  } else if (typeof value === 'object' && value !== null) {
    for (const item of Object.values(value)) checkIntegers(item);
  }
}
