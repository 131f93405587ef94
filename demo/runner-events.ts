/** What a runner tells the demo: one JSON object a line on its standard output. */
export type RunnerEvent =
  | { readonly event: 'waiting'; readonly holder: string }
  | { readonly event: 'granted'; readonly token: number }
  | { readonly event: 'fenceRaised'; readonly token: number }
  /** Read as pending, not yet paid. Told of the slow batch only. */
  | { readonly event: 'inHand'; readonly batch: string; readonly token: number; readonly paidSoFar: number }
  | { readonly event: 'paid'; readonly batch: string; readonly token: number }
  | {
      readonly event: 'refused';
      readonly batch: string;
      readonly token: number;
      /** What the table compared the token with. */
      readonly fence: number;
    }
  /** `answer`: what Leasehold said to the release of that token. */
  | {
      readonly event: 'reported';
      readonly token: number;
      readonly answer: string;
      readonly holder: string;
    }
  | { readonly event: 'lost'; readonly token: number; readonly paidSoFar: number }
  | { readonly event: 'done'; readonly token: number; readonly paidSoFar: number };

export type RunnerEventName = RunnerEvent['event'];

/** The runner stopped because it no longer holds the lock; not a fault of its own. */
export const EXIT_LOST = 3;
