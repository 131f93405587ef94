/** What the routes need besides the request. */
import type { HttpMetrics, Metrics } from '../../../platform/metrics.ts';
import type { Runtime } from '../../../platform/runtime.ts';
import type { SidecarService } from '../../service.ts';

export const JSON_TYPE = 'application/json';

export interface HealthDependencies {
  readonly runtime: Runtime;
  readonly metrics: Pick<Metrics, 'text' | 'contentType'> & { readonly http: HttpMetrics };
  /** Whether this process serves. Never whether the group has a quorum: a restart of this process mends nothing there. */
  ready(): boolean;
  /** What keeps lock groups from being served here, for people who look; it changes nothing about being ready. */
  problems?(): readonly string[];
  /** True while this process closes connections itself: that is no hang-up of the applications (rule A3). */
  isStopping(): boolean;
}

export interface ApiDependencies extends HealthDependencies {
  readonly service: SidecarService;
  /** The OpenAPI document as JSON text. */
  openApiText(): string;
}
