/** The files that make a group on this machine secure, written once: certificates of its members, keys of its token issuer, a first token. */
import { join } from 'node:path';
import { Authority, type Certified, TokenIssuer } from './authority.ts';

/** Below the group's folder. */
const PKI_FOLDER = 'pki';
export const ISSUER_KEY = `${PKI_FOLDER}/issuer.jwk`;
export const TOKEN_FILE = 'sidecar.token';
export const POD_UID = 'local-sidecar';
/** In the certificate of whoever administers the group from elsewhere. */
export const OPERATOR_NAME = 'operator.leasehold.local';
/** What such a caller needs: the authority that signed the servers' certificates for operators, and its own. */
export const OPERATOR_FILES = {
  ca: `${PKI_FOLDER}/admin-ca.crt`,
  cert: `${PKI_FOLDER}/operator.crt`,
  key: `${PKI_FOLDER}/operator.key`,
} as const;

const LOCAL = { dns: ['localhost'], ip: ['127.0.0.1', '::1'] } as const;

export interface SecretFile {
  readonly path: string;
  readonly text: string;
}

/** Paths below the group's folder. */
export function memberFiles(serverId: string) {
  const at = (name: string): string => `${PKI_FOLDER}/${name}`;
  return {
    group: { ca: at('group-ca.crt'), cert: at(`${serverId}.crt`), key: at(`${serverId}.key`) },
    clients: { cert: at(`${serverId}-clients.crt`), key: at(`${serverId}-clients.key`) },
    admin: { ca: OPERATOR_FILES.ca, cert: at(`${serverId}-admin.crt`), key: at(`${serverId}-admin.key`) },
    jwks: at('jwks.json'),
  };
}

export const CLIENTS_CA = `${PKI_FOLDER}/clients-ca.crt`;

/** `groupName`: as in the certificates of its members; `account`: whose token the sidecar gets. */
export async function securityFiles(
  folder: string,
  members: readonly string[],
  { groupName, account }: { readonly groupName: string; readonly account: string },
): Promise<readonly SecretFile[]> {
  const [group, clients, admin, issuer] = await Promise.all([
    Authority.make(`${groupName} group`),
    Authority.make(`${groupName} clients`),
    Authority.make(`${groupName} operators`),
    TokenIssuer.make(),
  ]);
  const files: SecretFile[] = [];
  const write = (path: string, text: string): void => void files.push({ path: join(folder, path), text });
  const writePair = ({ cert, key }: { cert: string; key: string }, certified: Certified): void => {
    write(cert, certified.cert);
    write(key, certified.key);
  };
  for (const id of members) {
    const paths = memberFiles(id);
    // etcd's members know each other by address.
    const names = { ...LOCAL, dns: [`${id}.${groupName}`, ...LOCAL.dns] };
    writePair(paths.group, await group.certify(id, names));
    writePair(paths.clients, await clients.certify(id, LOCAL));
    writePair(paths.admin, await admin.certify(id, LOCAL));
  }
  writePair(OPERATOR_FILES, await admin.certify('operator', { dns: [OPERATOR_NAME] }));
  write(OPERATOR_FILES.ca, admin.certificate);
  const { group: own, jwks } = memberFiles('any');
  write(own.ca, group.certificate);
  write(CLIENTS_CA, clients.certificate);
  write(jwks, JSON.stringify(issuer.keySet));
  write(ISSUER_KEY, JSON.stringify(issuer.secret));
  write(TOKEN_FILE, await issuer.issue({ account, podUid: POD_UID }));
  return files;
}
