/** The renewal of a token, over disks that fill up. */
import { expect, test } from 'vitest';
import { VirtualRuntime } from '../../../test/support/virtual-runtime.ts';
import { keepRenewed } from './issuer.ts';

const TEN_MINUTES_MS = 600_000;

test('a renewal that fails ends neither the process nor the renewals after it', async () => {
  const runtime = new VirtualRuntime();
  let isFull = false;
  let renewals = 0;
  const renew = async (): Promise<void> => {
    if (isFull) throw new Error('no space left on device');
    renewals++;
  };
  const unhandled: unknown[] = [];
  const onUnhandled = (error: unknown): void => void unhandled.push(error);
  process.on('unhandledRejection', onUnhandled);
  try {
    await keepRenewed(renew, runtime);
    await runtime.pass(TEN_MINUTES_MS);
    expect(renewals).toBe(2);
    isFull = true;
    await runtime.pass(TEN_MINUTES_MS + 60_000);
    isFull = false;
    await runtime.pass(30_000);
    expect(renewals).toBe(3);
    await runtime.pass(TEN_MINUTES_MS);
    expect(renewals).toBe(4);
  } finally {
    process.off('unhandledRejection', onUnhandled);
  }
  expect(unhandled).toEqual([]);
  expect(runtime.logged).toContain('the token of the sidecar is not renewed');
});

test('the first one is awaited: whoever cannot write a token at all does not say that it serves', async () => {
  const renew = (): Promise<void> => Promise.reject(new Error('no such folder'));
  await expect(keepRenewed(renew, new VirtualRuntime())).rejects.toThrow('no such folder');
});
