/**
 * Metrics that are written for every operation. prom-client finds the sample of each observation by its labels' text, which under full
 * load took a tenth of the leader's time. Here whoever observes holds its own sample; the registry is told when it is read.
 */
import { Counter, type Histogram, type Registry } from 'prom-client';

export interface HotMetric {
  readonly name: string;
  readonly help: string;
  readonly registry: Registry;
}

/** A count for each namespace: call the answer to add one. */
export function hotCounter({ name, help, registry }: HotMetric): (namespace: string) => () => void {
  const added = new Map<string, { count: number }>();
  new Counter({
    name,
    help,
    labelNames: ['namespace'],
    registers: [registry],
    collect() {
      for (const [namespace, sample] of added) {
        this.inc({ namespace }, sample.count);
        sample.count = 0;
      }
    },
  });
  return (namespace) => {
    const sample = added.get(namespace) ?? { count: 0 };
    added.set(namespace, sample);
    return () => void sample.count++;
  };
}

/** A distribution for each namespace: call the answer with what was measured. `buckets`: rising upper bounds, inclusive. */
export function hotHistogram(
  { name, help, registry }: HotMetric,
  buckets: readonly number[],
): (namespace: string) => (value: number) => void {
  const distributions = new Map<string, Distribution>();
  const metric = {
    ...{ name, help, type: 'histogram', aggregator: 'sum' },
    reset: () => distributions.clear(),
    get: () => {
      const values = [...distributions].flatMap(([namespace, { samples }]) => samples(name, { namespace }));
      return Promise.resolve({ name, help, type: 'histogram', aggregator: 'sum', values });
    },
  };
  // All that a registry asks of a metric; the library's type names the methods for writing too.
  registry.registerMetric(metric as unknown as Histogram);
  return (namespace) => {
    const distribution = distributions.get(namespace) ?? new Distribution(buckets);
    distributions.set(namespace, distribution);
    return distribution.observe;
  };
}

class Distribution {
  readonly #buckets: readonly number[];
  /** How many fell into each bucket, and into none of them. */
  readonly #counts: number[];
  #sum = 0;

  constructor(buckets: readonly number[]) {
    this.#buckets = buckets;
    this.#counts = new Array<number>(buckets.length + 1).fill(0);
  }

  readonly observe = (value: number): void => {
    let place = 0;
    while (place < this.#buckets.length && value > (this.#buckets[place] as number)) place++;
    this.#counts[place] = (this.#counts[place] as number) + 1;
    this.#sum += value;
  };

  /** In Prometheus' form: each bucket counts what lies below its bound, the smaller buckets included. */
  readonly samples = (name: string, labels: Readonly<Record<string, string>>) => {
    let count = 0;
    const bounds = [...this.#buckets, '+Inf'];
    const buckets = bounds.map((le, place) => {
      count += this.#counts[place] as number;
      return { metricName: `${name}_bucket`, labels: { le, ...labels }, value: count };
    });
    return [
      ...buckets,
      { metricName: `${name}_sum`, labels, value: this.#sum },
      { metricName: `${name}_count`, labels, value: count },
    ];
  };
}
