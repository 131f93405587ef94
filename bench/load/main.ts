/** The load generator: takes one task at a time from the process that started it. */
import { perform, type Task } from './tasks.ts';

process.on('message', (task: Task) => {
  perform(task).then(
    (result) => process.send?.({ result }),
    (error: unknown) => process.send?.({ error: error instanceof Error ? error.stack : String(error) }),
  );
});
// Ctrl-C reaches it too; but the bench ends it, in the order in which things were started.
process.on('SIGINT', () => undefined);
process.on('disconnect', () => process.exit(0));
