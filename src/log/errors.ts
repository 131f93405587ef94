/**
 * Errors of the log that the port does not name: they say whether the caller may try again, must open the log again,
 * or needs a person. A caller tells them apart by class, never by text.
 */

/**
 * The storage did not answer after a bounded number of tries (disk full, I/O error). What was asked may or may not have happened.
 * The same call with the same arguments may be made again, any number of times; for an append no other entry may take its
 * index before that is settled (rule L2). Meanwhile work pauses (rule S11).
 */
export class LogUnavailableError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'LogUnavailableError';
  }
}

/** This handle is finished: it was closed, or its worker thread died. An append under way has an unknown outcome. Open the log again. */
export class LogClosedError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'LogClosedError';
  }
}

/** Another process (or another handle of this one) serves this directory. */
export class LogInUseError extends Error {
  readonly directory: string;
  /** Process id of the owner as it recorded it; undefined when it could not be read. */
  readonly pid: number | undefined;
  constructor(directory: string, options: ErrorOptions & { readonly pid: number | undefined }) {
    const owner = options.pid === undefined ? 'another process' : `process ${options.pid}`;
    super(`${directory} is in use by ${owner}; stop it first, or choose another data directory`, options);
    this.name = 'LogInUseError';
    this.directory = directory;
    this.pid = options.pid;
  }
}

/** What was found is not a log this program can open. Nothing was changed. */
export class LogFormatError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'LogFormatError';
  }
}
