/** What the load generator can be asked to do: plain data, since it is another process. */
import { type Connect, connectOver, connectTo } from '../client.ts';
import { oneName, uncontended } from './clients.ts';
import { holdLocks, keepSessions } from './crowds.ts';
import { saturate } from './packed.ts';

export type Task =
  | {
      readonly kind: 'saturate';
      readonly endpoints: readonly string[];
      readonly streams: number;
      /** Connections that they share; left out: each has its own. */
      readonly connections?: number;
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
    }
  | {
      readonly kind: 'keepSessions';
      readonly endpoints: readonly string[];
      readonly streams: number;
      readonly sessions: number;
      readonly seconds: number;
    }
  | {
      readonly kind: 'holdLocks';
      readonly endpoints: readonly string[];
      readonly streams: number;
      readonly locks: number;
    };

interface Results {
  readonly saturate: Awaited<ReturnType<typeof saturate>>;
  readonly uncontended: Awaited<ReturnType<typeof uncontended>>;
  readonly oneName: Awaited<ReturnType<typeof oneName>>;
  readonly keepSessions: Awaited<ReturnType<typeof keepSessions>>;
  readonly holdLocks: Awaited<ReturnType<typeof holdLocks>>;
}

export type ResultOf<T extends Task> = Results[T['kind']];

export function perform(task: Task): Promise<Results[Task['kind']]> {
  // Streams go to the endpoints in turn.
  const connects = connectsOf(task);
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
    case 'keepSessions':
      return keepSessions(streams, task);
    case 'holdLocks':
      return holdLocks(streams, task);
  }
}

function connectsOf(task: Task): readonly Connect[] {
  const { endpoints } = task;
  const connections = task.kind === 'saturate' ? task.connections : undefined;
  if (connections === undefined) return endpoints.map(connectTo);
  return Array.from({ length: connections }, (_, at) =>
    connectOver(endpoints[at % endpoints.length] as string),
  );
}
