/**
 * Which callers from elsewhere may do what: by the names in their certificates, which the authority of the operators has signed. Looked at
 * before any method is, so that a method that somebody adds is closed until it is named here.
 */
import {
  ServerInterceptingCall,
  type ServerInterceptor,
  ServerListenerBuilder,
  type ServerMethodDefinition,
} from '@grpc/grpc-js';
import { LeaseholdError } from '../../api/errors.ts';
import type { Logger } from '../../platform/runtime.ts';
import { provesName } from '../security/tls.ts';
import { toServiceError } from './status.ts';

/** DNS names and URIs, as they stand in certificates. */
export interface Operators {
  /** They may call everything. */
  readonly administrators: readonly string[];
  /** They may call Inspect and History. */
  readonly readers: readonly string[];
}

const OF_READERS = /^\/leasehold\.v1\.(Inspect|History)\//;
const OF_ADMINISTRATORS = /^\/leasehold\.v1\.(Inspect|History|Admin)\//;
const CHANGES = /^\/leasehold\.v1\.Admin\//;
/** Says nothing but whether the process answers: for whoever has a certificate of the authority. */
const OF_ALL = /^\/grpc\.health\.v1\.Health\//;

export type Admission =
  | { readonly isAdmitted: true; readonly identity: string }
  | { readonly isAdmitted: false; readonly why: string };

/** `path` of the method, as `/leasehold.v1.Admin/Break`; `subjectAltName` of the caller's certificate as Node.js shows it. */
export function admission(
  path: string,
  subjectAltName: string | undefined,
  { administrators, readers }: Operators,
): Admission {
  const proves = (name: string): boolean => provesName(subjectAltName, name);
  const administrator = administrators.find(proves);
  if (administrator !== undefined && OF_ADMINISTRATORS.test(path)) {
    return { isAdmitted: true, identity: administrator };
  }
  const reader = readers.find(proves);
  if (reader !== undefined && OF_READERS.test(path)) return { isAdmitted: true, identity: reader };
  const shown = subjectAltName ?? '';
  if (shown !== '' && OF_ALL.test(path)) return { isAdmitted: true, identity: shown };
  const who = shown === '' ? 'the certificate shows no name' : `the certificate is for ${shown}`;
  const listed = reader === undefined ? 'which is no operator of this lock server' : 'which may only read';
  const wayOut = reader === undefined ? 'admin.administrators or admin.readers' : 'admin.administrators';
  return { isAdmitted: false, why: `${who}, ${listed}: list it under ${wayOut} of its configuration` };
}

/** Refuses with FORBIDDEN, saying what the certificate shows. Who changes something is logged. */
export function admitOperators(operators: Operators, logger: Logger): ServerInterceptor {
  return ({ path }: ServerMethodDefinition<unknown, unknown>, call) => {
    const names = call.getAuthContext().sslPeerCertificate?.subjectaltname;
    const admitted = admission(path, names, operators);
    const listener = new ServerListenerBuilder().withOnReceiveMetadata((metadata, next) => {
      if (admitted.isAdmitted) {
        if (CHANGES.test(path))
          logger.info({ identity: admitted.identity, method: path }, 'an operator calls');
        next(metadata);
        return;
      }
      const { why } = admitted;
      logger.warn({ method: path, peer: call.getPeer(), reason: why }, 'a call of no operator is refused');
      call.sendStatus(toServiceError(new LeaseholdError('FORBIDDEN', why)));
    });
    return new ServerInterceptingCall(call, { start: (next) => next(listener.build()) });
  };
}
