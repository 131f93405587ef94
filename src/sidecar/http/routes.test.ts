/** The routes over a service in memory: what is tested here is the HTTP layer. */
import { FakeSidecar } from '../../../test/support/http/fake-sidecar.ts';
import { describeNames } from '../../../test/support/http/names-suite.ts';
import { describeRoutes } from '../../../test/support/http/routes-suite.ts';
import { createSystemRuntime } from '../../platform/system-runtime.ts';

async function makeService() {
  const runtime = createSystemRuntime({ logLevel: 'silent' });
  return { service: new FakeSidecar(runtime), runtime, close: async () => undefined };
}

describeRoutes('a service in memory', makeService);
describeNames('a service in memory', makeService);
