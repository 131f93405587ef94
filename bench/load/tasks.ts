/** What the load generator can be asked to do: plain data, since it is another process. */
import { connectTo } from '../client.ts';
import { oneName, uncontended } from './clients.ts';
import { saturate } from './packed.ts';

export type Task =
  | {
      readonly kind: 'saturate';
      readonly endpoints: readonly string[];
      readonly streams: number;
      readonly packed: number;
      readonly seconds: number;
      readonly warmUpSeconds: number;
    }
  | {
      readonly kind: 'uncontended';
      readonly endpoints: readonly string[];
      readonly streams: number;
      readonly perSecond: number;
      readonly seconds: number;
    }
  | {
      readonly kind: 'oneName';
      readonly endpoints: readonly string[];
      readonly streams: number;
      readonly seconds: number;
    };

interface Results {
  readonly saturate: Awaited<ReturnType<typeof saturate>>;
  readonly uncontended: Awaited<ReturnType<typeof uncontended>>;
  readonly oneName: Awaited<ReturnType<typeof oneName>>;
}

export type ResultOf<T extends Task> = Results[T['kind']];

export function perform(task: Task): Promise<Results[Task['kind']]> {
  // Streams go to the endpoints in turn.
  const connects = task.endpoints.map(connectTo);
  const streams = Array.from({ length: task.streams }, (_, at) => connects[at % connects.length]).filter(
    (connect) => connect !== undefined,
  );
  switch (task.kind) {
    case 'saturate':
      return saturate({ ...task, streams });
    case 'uncontended':
      return uncontended(streams, task);
    case 'oneName':
      return oneName(streams, task.seconds);
  }
}
