/**
 * Assertions of the state machine. They stay on in production: a state that contradicts itself must stop being served,
 * not be repaired silently (rule C13).
 */

/** Where in an entry the state machine was when an assertion failed. */
export type FaultStep =
  | { readonly kind: 'entry' }
  | { readonly kind: 'command'; readonly position: number }
  | { readonly kind: 'consequence'; readonly name: string };

/** The state machine threw; the state it threw on must not be used again. `cause` is what was thrown. */
export class CoreFault extends Error {
  readonly step: FaultStep;

  constructor(step: FaultStep, { cause }: { readonly cause: unknown }) {
    super(cause instanceof Error ? cause.message : String(cause), { cause });
    this.name = 'CoreFault';
    this.step = step;
  }
}

export class AssertionError extends Error {
  constructor(message: string) {
    super(`assertion failed: ${message}`);
    this.name = 'AssertionError';
  }
}

export function assert(condition: boolean, message: string): asserts condition {
  if (!condition) throw new AssertionError(message);
}

/** The default branch of an exhaustive switch. */
export function unreachable(value: never): never {
  throw new AssertionError(`unexpected value ${JSON.stringify(value)}`);
}
