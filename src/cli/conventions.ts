/**
 * What all sub-commands share: exit codes (design of `leasehold run` included) and where `leasehold dev` keeps its data.
 */

/** What was read is there, but wrong: a damaged log, a broken promise. */
export const EXIT_WRONG = 1;
export const EXIT_UNAVAILABLE = 123;
export const EXIT_USAGE = 125;

export const DATA_FOLDER_DEFAULT = '.leasehold';
