/** What a command may fail with apart from a refusal of the service (`LeaseholdError`); each ends it with its own exit code. */

/** How a command failed. */
export interface Failure {
  readonly message: string;
  readonly exitCode: number;
}

/** Something that the caller can mend by calling differently. */
export class UsageError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'UsageError';
  }
}

/** The lock server that was asked is not there, or does not answer. */
export class UnavailableError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'UnavailableError';
  }
}
