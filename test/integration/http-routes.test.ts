/** The HTTP API over the real sidecar, leader loop and embedded log, in this process: the suites of the routes. */
import { makeDevService } from '../support/http/dev-service.ts';
import { describeNames } from '../support/http/names-suite.ts';
import { describeRoutes } from '../support/http/routes-suite.ts';

describeRoutes('the sidecar of leasehold dev', makeDevService);
describeNames('the sidecar of leasehold dev', makeDevService);
