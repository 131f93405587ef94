/** What the load generator can be asked to do: plain data, since it is another process. */
import { type Connect, connectSmall, connectTo } from '../client.ts';
import type { Processes } from '../processor-time.ts';
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
      readonly watched?: Processes;
    }
  | {
      readonly kind: 'uncontended';
      readonly endpoints: readonly string[];
      readonly streams: number;
      readonly perSecond: number;
      readonly seconds: number;
      readonly warmUpSeconds: number;
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

/** Streams whose frames are small cost this process little; the others speak as a sidecar does. */
function connectsOf(task: Task): readonly Connect[] {
  const { endpoints, streams } = task;
  const isSmall =
    task.kind === 'saturate' ? task.packed === 1 : task.kind === 'uncontended' || task.kind === 'oneName';
  if (!isSmall) return endpoints.map(connectTo);
  const connections = task.kind === 'saturate' ? task.connections : undefined;
  return Array.from({ length: connections ?? streams }, (_, at) =>
    connectSmall(endpoints[at % endpoints.length] as string),
  );
}
