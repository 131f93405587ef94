/**
 * A member of etcd whose data is gone is replaced, never started again under its old id (rule M2): removed, added as a learner, started under
 * the new id with an empty folder, promoted once it has caught up.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { ETCDS, type GroupBench } from './group-bench.ts';
import { flag } from './rewire.ts';

const CALL_AGAIN_MS = 200;
const DONE_MS_MAX = 30_000;

/** `wipe`: removes what the old one has left. Returns its old and its new id. */
export async function replaceMember(
  bench: GroupBench,
  name: string,
  wipe: (folder: string) => void,
): Promise<{ readonly oldId: string; readonly newId: string }> {
  const { args } = bench.planned(name);
  const peerUrl = flag(args, 'initial-advertise-peer-urls');
  const living = ETCDS.filter((other) => other !== name);
  const any = bench.etcd(living[0] as string);
  const old = await again(async () => {
    const member = (await any.members()).find(({ peerUrls }) => peerUrls.includes(peerUrl));
    if (member === undefined) throw new Error(`${name} is no member`);
    return member;
  });
  await again(() => any.remove(old.id));
  const newId = await again(() => any.addLearner(peerUrl));
  wipe(flag(args, 'data-dir'));
  bench.replan(name, (planned) => ({
    ...planned,
    args: [
      ...planned.args.filter((arg) => !arg.startsWith('--initial-cluster-state=')),
      '--initial-cluster-state=existing',
    ],
    // A learner is not healthy before it is promoted: it serves when it answers at all.
    healthUrl: new URL('/version', flag(args, 'listen-client-urls')).href,
  }));
  await bench.group.start([name]);
  await again(() => any.promote(newId));
  // It learns of that last.
  await again(() => bench.etcd(name).members());
  return { oldId: old.id, newId };
}

/** Until it is done: members are not in step at every moment, and a learner is promoted when it has caught up. */
async function again<T>(call: () => Promise<T>): Promise<T> {
  const giveUpAt = performance.now() + DONE_MS_MAX;
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (performance.now() > giveUpAt) throw error;
    }
    await pause(CALL_AGAIN_MS);
  }
}
