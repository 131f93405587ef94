/** How a process says that files it uses were replaced. */
import type { Logger } from '../../platform/runtime.ts';
import type { WatchedFilesOptions } from '../../platform/watched-files.ts';

export function reloadsTo(logger: Logger): WatchedFilesOptions<unknown>['onReload'] {
  return ({ paths, error }) => {
    const files = paths.join(' ');
    if (error === null) logger.info({ files }, 'replaced files are in use');
    else logger.error({ files, error }, 'replaced files cannot be used; the old ones stay');
  };
}
