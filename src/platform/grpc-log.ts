/** What the gRPC library writes to standard error by itself; how much of it is up to its own variable `GRPC_VERBOSITY`. */
import { setLogger } from '@grpc/grpc-js';

/** It is also the error that the program gets, and tells in its own words. */
const TOLD_ANYWAY = /^No address added/;

/** Keeps out that an address could not be had: a second, stray line beside the program's own. */
export function quietGrpcLog(): void {
  setLogger({
    error: (...words: readonly unknown[]) => {
      if (!TOLD_ANYWAY.test(String(words[0]))) console.error('gRPC:', ...words);
    },
  });
}
