/** A namespace with every mode: any name exclusive or shared, and semaphores below `pool/`. */
import type { NamespaceSpec, Workspace } from '../../support/dev/workspace.ts';

export const PERMITS = 5;

export function writeMixed(workspace: Workspace, spec: NamespaceSpec): void {
  const modes = `  modes: [Exclusive, Shared, Semaphore]\n  semaphores: [{pattern: "pool/*", permits: ${PERMITS}}]\n`;
  workspace.writeText(`${spec.name}.yaml`, `${workspace.textOf(spec)}${modes}`);
}
