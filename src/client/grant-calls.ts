/** Calls that name a grant: renew, and a release that is repeated until its outcome is certain. */
import { errorOf, type LeaseholdError, LockLostError } from './errors.ts';
import { type Answer, NoAnswerError, type Transport } from './http.ts';
import type { GrantReference } from './requests.ts';
import { type ClientRuntime, pause } from './runtime.ts';
import type { Tasks } from './tasks.ts';

/** What all sessions of a client share. */
export interface Surroundings {
  readonly runtime: ClientRuntime;
  readonly transport: Transport;
  readonly tasks: Tasks;
}

export const CALL_MS_MAX = 5_000;
const RELEASE_AGAIN_MS = 200;

export class GrantCalls {
  readonly #around: Surroundings;
  readonly #sessionId: string;
  readonly #over: AbortSignal;

  /** `over` fires when the session is over: then nothing is left to be released. */
  constructor(around: Surroundings, sessionId: string, over: AbortSignal) {
    this.#around = around;
    this.#sessionId = sessionId;
    this.#over = over;
  }

  /** @throws NoAnswerError */
  renew({ name, token }: GrantReference): Promise<Answer> {
    return this.#call(name, 'renew', { token }, true);
  }

  /** Resolves with null when it is released, else with what it was found to be; never rejects. */
  async release({ name, token, request }: GrantReference): Promise<LeaseholdError | null> {
    let isRepeated = false;
    while (!this.#over.aborted) {
      try {
        const answer = await this.#call(name, 'release', { token, request }, isRepeated);
        if (answer.status === 200) return null;
        const error = errorOf(answer);
        if (endsGrant(error)) {
          // After a lost answer this may be the trace of our own first release.
          const reason = `found when it was released: ${error.message}`;
          return isRepeated ? null : new LockLostError(name, token, { cause: 'lost', reason });
        }
        if (error.code !== 'UNAVAILABLE') return error;
      } catch (error) {
        isRepeated ||= !(error instanceof NoAnswerError && error.kind === 'refused');
      }
      await pause(this.#around.runtime, RELEASE_AGAIN_MS, [this.#over], true);
    }
    return null;
  }

  /** Goes on by itself for as long as it takes. */
  releaseLater(grant: GrantReference): void {
    this.#around.tasks.add(this.release(grant));
  }

  #call(
    name: string,
    action: 'renew' | 'release',
    body: Readonly<Record<string, unknown>>,
    isBackground: boolean,
  ): Promise<Answer> {
    return this.#around.transport.call({
      method: 'POST',
      path: `/v1/locks/${encodeURIComponent(name)}/${action}`,
      body: { session_id: this.#sessionId, ...body },
      limitMs: CALL_MS_MAX,
      isBackground,
    });
  }
}

/** Whether a refusal says that the grant is over. */
export function endsGrant({ code }: LeaseholdError): boolean {
  return code === 'NOT_HELD' || code === 'STALE_TOKEN' || code === 'SESSION_EXPIRED';
}
