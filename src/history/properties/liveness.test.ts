/** Histories that the property must refuse. */
import {
  begun,
  ending,
  granted,
  History,
  opened,
  quarantined,
  queued,
  refused,
  released,
  tookOver,
} from '../history.fixture.ts';
import { last, refuses } from '../verdicts.fixture.ts';

refuses('liveness', {
  'a free name with a waiter (case B15)': () => ({
    history: begun()
      .entry(granted(1_001, 1), queued('q2', 2, 1))
      .entry(released(1_001, 1)),
    tokens: [],
    indexes: [2],
  }),
  'a queue on a free name': () => ({
    history: begun().entry(queued('q1', 1, 1)),
    tokens: [],
    indexes: [2],
  }),
  'a wait that is not ended at its limit (case B09)': () => {
    const history = begun()
      .entry(granted(1_001, 1), queued('q2', 2, 1, { waitUntil: 5_000 }))
      .pass(6_500);
    return { history: history.entry(refused('q2', 2)), tokens: [], indexes: [2, last(history)] };
  },
  'a wait that is never ended': () => ({
    history: begun()
      .entry(granted(1_001, 1), queued('q2', 2, 1, { waitUntil: 5_000 }))
      .pass(20_000)
      .entry(),
    tokens: [],
    indexes: [2],
  }),
  'a wait left when all is quiet': () => ({
    history: begun().entry(granted(1_001, 1), queued('q2', 2, 1)),
    tokens: [],
    indexes: [2],
    finish: { quiet: true },
  }),
  'a hold and a session left when all clients are gone (case G14)': () => ({
    history: new History().entry(tookOver(1, 1_000), opened(1)).entry(granted(1_001, 1)),
    tokens: [1_001],
    indexes: [2],
    finish: { clientsGone: true },
  }),
  'a session left when all clients are gone': () => ({
    history: new History().entry(tookOver(1, 1_000), opened(1)),
    tokens: [],
    indexes: [1],
    finish: { clientsGone: true },
  }),
  'a session that is still ending when all clients are gone': () => ({
    history: new History().entry(tookOver(1, 1_000), opened(1)).entry(ending(1, 'closed')),
    tokens: [],
    indexes: [1, 2],
    finish: { clientsGone: true },
  }),
  'a waiter of a quarantined name': () => ({
    history: begun()
      .entry(granted(1_001, 1), queued('q2', 2, 1))
      .entry(quarantined),
    tokens: [],
    indexes: [2],
  }),
});
