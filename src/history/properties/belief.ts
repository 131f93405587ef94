/**
 * Promise 5: no client believes that it holds a name at a moment when a grant was already given that its own excludes, nor
 * before its own grant, nor after it was told that the grant is lost. Readers may believe side by side; of a semaphore those
 * who hold and those who only believe it may not have more permits together than there are. The moment of a grant is that of
 * its entry, in run time.
 */
import { areCompatible, type GrantBook, usedPermits } from '../book/subjects.ts';
import type { Property, Report } from '../property.ts';
import type { PlacedEvent } from '../verdict.ts';

/** A grant as the earlier beliefs meet it. */
interface Later
  extends Pick<GrantBook, 'name' | 'token' | 'mode' | 'permits' | 'granted' | 'used' | 'allowed'> {
  /** Those of whom a client still believes, at that moment, that it holds, though it does not. */
  readonly ghosts: readonly GrantBook[];
}

export function belief(): Property {
  return {
    name: 'belief',
    rules: 'promise 5, rules A1, C2, S2',
    onEvent(placed, book, report) {
      const { event } = placed;
      if (event.type !== 'granted' || event.joined) return;
      const holds = book.names.get(event.name)?.holds ?? [];
      const believers = book.believersAt(event.name, placed.runAt);
      const ghosts = believers.filter((grant) => grant.ended !== null);
      const used = usedPermits(holds) + event.permits;
      const later = { ...event, granted: placed, used, allowed: book.permitsOf(event.name), ghosts };
      for (const grant of believers) judge(grant, later, report);
    },
    onClient(record, { grant }, report) {
      if (grant === null || (record.type !== 'heldInterval' && record.type !== 'lost')) return;
      const { granted, believedUntil, lostAt } = grant;
      const ofGrant = { name: record.name, tokens: [record.token], shows: [granted] };
      const who = `session ${record.session} believed`;
      if (record.type === 'heldInterval' && record.from < granted.runAt) {
        report({
          message: `${who} from ${record.from} that it holds, the grant came at ${granted.runAt}`,
          ...ofGrant,
        });
      }
      if (believedUntil > lostAt) {
        report({
          message: `${who} until ${believedUntil} that it holds, though told lost at ${lostAt}`,
          ...ofGrant,
        });
      }
      if (record.type === 'heldInterval') judgeLater(grant, report);
    },
  };
}

/** The first grant after this one that its belief meets wrongly. */
function judgeLater(grant: GrantBook, report: Report): void {
  for (let next = grant.next; next !== null; next = next.next) {
    if (next.granted.runAt >= grant.believedUntil) return;
    const { order } = next;
    const ghosts = [...next.believers].filter(({ endedOrder }) => endedOrder < order);
    if (judge(grant, { ...next, ghosts }, report)) return;
  }
}

/** True: reported. */
function judge(grant: GrantBook, later: Later, report: Report): boolean {
  if (later.token <= grant.token || !excludes(grant, later)) return false;
  const until: PlacedEvent = later.granted;
  report({
    message:
      `session ${grant.session.id} believed until ${grant.believedUntil} that it holds with token ${grant.token}, ` +
      `token ${later.token} was granted at ${until.runAt} (run time)`,
    name: grant.name,
    tokens: [grant.token, later.token],
    shows: [grant.granted, until],
  });
  return true;
}

/** Whether the later grant is one that this client's belief cannot stand beside. */
function excludes(grant: GrantBook, later: Later): boolean {
  if (!areCompatible(grant.mode, later.mode)) return true;
  if (later.mode !== 'semaphore' || later.allowed == null || !later.ghosts.includes(grant)) return false;
  return later.used + usedPermits(later.ghosts) > later.allowed;
}
