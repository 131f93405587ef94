/** Which signals end a serving process in order. */

/**
 * `stop` is called again for each further SIGINT or SIGTERM: somebody is in a hurry. SIGHUP, of a closed terminal or of somebody who wants
 * files read again (which needs no signal), asks once: it comes in bursts, and must not end a leader that has not handed over.
 */
export function onStopSignals(stop: () => void): void {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, stop);
  let isAsked = false;
  process.on('SIGHUP', () => {
    if (isAsked) return;
    isAsked = true;
    stop();
  });
}
