import { HistoryChecker } from './checker.ts';
import { namespaceConfig } from './model.fixture.ts';
import type { HistoryEntry, LockEvent } from '../api/entry.ts';
const N = 1_000_000;
const entries: HistoryEntry[] = [];
let index = 0, at = 0, token = 1000, events = 0;
const push = (...ev: LockEvent[]) => { index++; at += 5; events += ev.length; entries.push({ lineage: 'L', epoch: 1, index, at, wallMs: 0, eventHash: '', events: ev }); };
push({ type: 'tookOver', epoch: 1, token, reason: '' }, { type: 'configured', version: 1 });
const S = 1000;
for (let s = 1; s <= S; s++) push({ type: 'sessionOpened', session: s, client: 'c', identity: { account: 'a', podUid: 'p' }, ttlMs: 15000 });
const names = new Map<string, { token: number; session: number; q: { s: number; k: string; at: number }[] }>();
let k = 0, seed = 7;
const rnd = (n: number) => { seed = (seed * 1103515245 + 12345) % 2147483648; return Math.floor(seed / 2147483648 * n); };
const records: any[] = [];
while (events < N) {
  const batch: LockEvent[] = [];
  const t = at + 5;
  for (let i = 0; i < 50; i++) {
    const name = `orders/customer-${rnd(20000)}`; const s = 1 + rnd(S); const key = `key-${++k}`;
    const h = names.get(name);
    if (!h) { token++; batch.push({ type: 'granted', name, session: s, key, token, mode: 'exclusive', permits: 1, owner: 'o', fromQueue: false, waitedMs: 0 }); names.set(name, { token, session: s, q: [] }); records.push({ index: index + 1, r: { type: 'grantReported', lineage: 'L', session: s, key, name, token, at: t } }); }
    else if (rnd(3) < 1 && h.q.length < 20) { h.q.push({ s, k: key, at: t }); batch.push({ type: 'queued', name, session: s, key, mode: 'exclusive', permits: 1, position: h.q.length, waitUntil: t + 600000 }); }
    else {
      batch.push({ type: 'released', name, session: h.session, token: h.token, cause: 'release' });
      records.push({ index: index + 1, r: { type: 'heldInterval', lineage: 'L', session: h.session, name, token: h.token, from: t, to: t } });
      const w = h.q.shift();
      if (w) { token++; batch.push({ type: 'granted', name, session: w.s, key: w.k, token, mode: 'exclusive', permits: 1, owner: 'o', fromQueue: true, waitedMs: t - w.at }); h.token = token; h.session = w.s; } else names.delete(name);
    }
  }
  push(...batch);
}
const configs = new Map([[1, namespaceConfig({ locksPerClient: 100000, waiters: 1e6 })]]);
const run = (withRecords: boolean) => {
  const c = new HistoryChecker({ configs }); let r = 0;
  const t0 = performance.now();
  for (const e of entries) { c.entry(e); if (withRecords) while (r < records.length && records[r].index <= e.index) c.client(records[r++].r); }
  const t1 = performance.now();
  const v = c.finish();
  console.log(withRecords, v.ok, v.counts.events, v.counts.violations, v.violations[0]?.message, ((t1 - t0) / 1000).toFixed(2), 's + finish', ((performance.now() - t1) / 1000).toFixed(2), (process.memoryUsage().heapUsed / 1e6).toFixed(0), 'MB');
};
run(process.argv[2] === 'records');
