/** Held to what prom-client itself would say of the same observations. */
import { Counter, Histogram, Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { hotCounter, hotHistogram } from './hot-metrics.ts';

const BUCKETS = [0.1, 1, 10];
const VALUES = [0, 0.05, 0.1, 0.11, 1, 9.5, 10, 10.5, 4_000];
const registries = () => ({ own: new Registry(), library: new Registry() });
const labelNames = ['namespace'];

test("a distribution is told as prom-client's own", async () => {
  const { own, library } = registries();
  const histogram = new Histogram({
    ...{ name: 'waits', help: 'Waits.', buckets: BUCKETS, labelNames, registers: [library] },
  });
  const hot = hotHistogram({ name: 'waits', help: 'Waits.', registry: own }, BUCKETS);
  for (const namespace of ['payouts', 'exports']) {
    const observe = hot(namespace);
    for (const value of VALUES) {
      observe(value);
      histogram.observe({ namespace }, value);
    }
  }
  expect(await own.metrics()).toBe(await library.metrics());
  expect(await own.metrics()).toContain('waits_bucket{le="10",namespace="payouts"} 7');
});

test('a count is told once, however often it is read, and whoever comes again goes on', async () => {
  const { own, library } = registries();
  const counter = new Counter({ name: 'grants', help: 'Grants.', labelNames, registers: [library] });
  const hot = hotCounter({ name: 'grants', help: 'Grants.', registry: own });
  for (let i = 0; i < 3; i++) {
    hot('payouts')();
    counter.inc({ namespace: 'payouts' });
    expect(await own.metrics()).toBe(await library.metrics());
  }
  expect(await own.metrics()).toContain('grants{namespace="payouts"} 3');
});
