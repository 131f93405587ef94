import { expect, test } from 'vitest';
import { whyNotOn } from './node-version.ts';
import { createProgram } from './program.ts';

test('commands that serve or read a log need Node.js 22.13; all others run on 20', () => {
  for (const version of ['v22.13.0', 'v22.20.1', 'v23.0.0', 'v26.1.0', process.version])
    expect(whyNotOn(version, 'dev'), version).toBeNull();
  for (const version of ['v20.20.2', 'v21.7.0', 'v22.12.9'])
    expect(whyNotOn(version, 'dev')).toBe(
      `this command needs Node.js 22.13 or newer (26 is what we test with); this is ${version}`,
    );
  const names = createProgram().commands.map((command) => command.name());
  const refused = names.filter((name) => whyNotOn('v20.0.0', name) !== null);
  expect(refused.sort()).toEqual(['dev', 'group', 'log', 'server', 'sidecar']);
});
