/**
 * gRPC's own health service. "Serving" means that this process answers, not that a namespace can commit: a probe that restarts
 * processes because a quorum is missing would make things worse.
 */
import {
  type ServerUnaryCall,
  type ServerWritableStream,
  type sendUnaryData,
  status,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js';
import type { Message } from './proto.ts';
import { CallError, toServiceError } from './status.ts';

interface HealthCheckRequest {
  readonly service: string;
}

type Watch = ServerWritableStream<HealthCheckRequest, Message>;

export class HealthService {
  readonly implementation: UntypedServiceImplementation = {
    Check: (call: ServerUnaryCall<HealthCheckRequest, Message>, callback: sendUnaryData<Message>) =>
      this.#check(call.request.service, callback),
    Watch: (call: Watch) => this.#watch(call),
  };
  readonly #services: ReadonlySet<string>;
  readonly #watches = new Set<Watch>();
  #isServing = true;

  /** `services`: their full names. */
  constructor(services: readonly string[]) {
    this.#services = new Set(['', ...services]);
  }

  /** It does not serve any more, and says so to everybody who watches. */
  stopServing(): void {
    this.#isServing = false;
    for (const call of this.#watches) {
      if (this.#services.has(call.request.service)) call.write(this.#answer());
    }
  }

  /** Says so, and ends their calls. */
  close(): void {
    if (this.#isServing) this.stopServing();
    for (const call of this.#watches) call.end();
    this.#watches.clear();
  }

  #check(service: string, callback: sendUnaryData<Message>): void {
    if (this.#services.has(service)) callback(null, this.#answer());
    else callback(toServiceError(new CallError(status.NOT_FOUND, `no service ${service}`)));
  }

  #watch(call: Watch): void {
    this.#watches.add(call);
    call.on('cancelled', () => this.#watches.delete(call));
    call.write(this.#services.has(call.request.service) ? this.#answer() : { status: 'SERVICE_UNKNOWN' });
  }

  #answer(): Message {
    return { status: this.#isServing ? 'SERVING' : 'NOT_SERVING' };
  }
}
