/**
 * Rules L1, S5: an epoch belongs to one leader. It begins with one take-over in its first entry, and once it has begun
 * no entry of an older one is committed. The run may also say which server won which epoch.
 */
import type { Property } from '../property.ts';

/** Epochs whose winner is remembered. */
const WINNERS_MAX = 10_000;

/** `startsInMiddle`: the epoch of the first entry may have begun before it. */
export function oneWriterPerEpoch(startsInMiddle = false): Property {
  const winners = new Map<string, string>();
  let begins = 0;
  let taken = false;
  let isFirst = false;
  return {
    name: 'one-writer-per-epoch',
    rules: 'rules L1, S5',
    onEntry(entry, book, report) {
      const epochBefore = entry.lineage === book.lineage ? book.epoch : 0;
      begins = entry.epoch > epochBefore ? entry.epoch : 0;
      taken = false;
      isFirst = startsInMiddle && book.lineage === '';
      if (entry.epoch >= epochBefore) return;
      report({
        message: `an entry of epoch ${entry.epoch} after epoch ${epochBefore} began`,
        indexes: [entry.index],
        shows: [book.takeOver],
      });
    },
    onEvent(placed, book, report) {
      const { event } = placed;
      if (event.type !== 'tookOver') return;
      if (begins === event.epoch && placed.epoch === event.epoch && !taken) {
        taken = true;
        return;
      }
      report({
        message: `epoch ${event.epoch} was taken over in an entry that is not its first`,
        shows: [book.takeOver, placed],
      });
    },
    onEntryEnd(book, report) {
      if (begins === 0 || taken || isFirst) return;
      report({ message: `epoch ${begins} began without a take-over`, indexes: [book.index] });
    },
    onRun(record, report) {
      if (record.type !== 'epochLed') return;
      const epoch = `${record.epoch} of ${record.lineage}`;
      const winner = winners.get(epoch);
      if (winner !== undefined && winner !== record.server) {
        report({ message: `epoch ${epoch} was led by ${winner} and by ${record.server}` });
      }
      winners.set(epoch, record.server);
      const [oldest] = winners.keys();
      if (winners.size > WINNERS_MAX && oldest !== undefined) winners.delete(oldest);
    },
  };
}
