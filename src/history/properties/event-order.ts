/**
 * Rule L1: entries follow each other without gap or repeat, group time never goes back, the lineage changes only
 * where the run says so, and the event hash moves exactly when there are events (rule C14).
 */
import type { Property } from '../property.ts';

/** `startsInMiddle`: the record begins with any entry. */
export function eventOrder(startsInMiddle = false): Property {
  let index = 0;
  let declared: string | null = null;
  return {
    name: 'event-order',
    rules: 'rules L1, L2, C14, S10',
    onEntry(entry, book, report) {
      const indexes = [entry.index];
      const changed = entry.lineage !== book.lineage;
      if (changed && book.lineage !== '' && entry.lineage !== declared) {
        report({ message: `lineage ${book.lineage} became ${entry.lineage} unannounced`, indexes });
      }
      const isFirst = startsInMiddle && book.lineage === '';
      const expected = isFirst ? entry.index : changed ? 1 : index + 1;
      if (entry.index !== expected) {
        report({ message: `entry ${entry.index} where ${expected} was due`, indexes });
      }
      if (!changed && entry.at < book.at) {
        report({ message: `group time went back from ${book.at} to ${entry.at}`, indexes });
      }
      const before = changed ? '' : book.eventHash;
      if (
        before !== '' &&
        entry.eventHash !== '' &&
        (entry.eventHash !== before) !== entry.events.length > 0
      ) {
        const message =
          entry.events.length > 0 ? 'events without a new event hash' : 'a new event hash without events';
        report({ message, indexes });
      }
      index = entry.index;
    },
    onRun(record) {
      if (record.type === 'newLineage') declared = record.lineage;
    },
  };
}
