/** Who calls, as people see it in `ls` and in the records: claimed, not proven. */
import { hostname, userInfo } from 'node:os';

export function caller(): string {
  return `${userName()}@${hostname()}`;
}

/** A user id in a container need not have a name. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid-${process.getuid?.() ?? 'unknown'}`;
  }
}
