/**
 * Calls from elsewhere end with the certificate under which they came. TLS looks at it once, when the connection is made, and a connection
 * may be open for weeks.
 */
import {
  ResponderBuilder,
  ServerInterceptingCall,
  type ServerInterceptor,
  ServerListenerBuilder,
} from '@grpc/grpc-js';
import { LeaseholdError } from '../../api/errors.ts';
import type { Clock, Timer, Timers } from '../../platform/runtime.ts';
import { toServiceError } from './status.ts';

/** How long one timer waits at most: what is years away is looked at again. */
const LOOK_MS_MAX = 3_600_000;

interface CertificateEndPorts {
  readonly clock: Clock;
  readonly timers: Timers;
}

/** Refuses with UNAUTHENTICATED once the caller's certificate has ended, and ends what it follows then. */
export function untilCertificateEnds({ clock, timers }: CertificateEndPorts): ServerInterceptor {
  return (_method, call) => {
    const validTo = call.getAuthContext().sslPeerCertificate?.valid_to ?? '';
    const endMs = Date.parse(validTo);
    let timer: Timer | null = null;
    /** False: it has ended, and so has the call. */
    const isValid = (): boolean => {
      const leftMs = endMs - clock.wallMs();
      if (leftMs > 0) {
        timer = timers.after(Math.min(leftMs, LOOK_MS_MAX), isValid);
        return true;
      }
      const error = new LeaseholdError(
        'UNAUTHENTICATED',
        `the certificate of this connection ended at ${validTo}`,
      );
      call.sendStatus(toServiceError(error));
      return false;
    };
    const listener = new ServerListenerBuilder()
      .withOnReceiveMetadata((metadata, next) => {
        if (isValid()) next(metadata);
      })
      .withOnCancel(() => timer?.cancel())
      .build();
    const responder = new ResponderBuilder()
      .withStart((next) => next(listener))
      .withSendStatus((status, next) => {
        timer?.cancel();
        next(status);
      })
      .build();
    return new ServerInterceptingCall(call, responder);
  };
}
