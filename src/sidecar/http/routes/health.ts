/** Routes for those who run the program: does it live, does it serve, what does it count, what is its API. */
import * as z from 'zod';
import { LeaseholdError } from '../../../api/errors.ts';
import { errorAnswer, liveAnswer, readyAnswer } from '../answers.ts';
import { nothing } from '../requests.ts';
import { jsonRoute, type Route, route } from '../route.ts';
import { type HealthDependencies, JSON_TYPE } from './dependencies.ts';

const live = jsonRoute({
  id: 'live',
  method: 'GET',
  path: '/livez',
  aliases: [],
  summary: 'Does the process live?',
  description: 'Answers as long as the process can answer at all.',
  body: null,
  query: nothing,
  answer: liveAnswer,
  contentType: JSON_TYPE,
  refusal: errorAnswer,
  errors: [],
  example: { path: '/livez', answer: { live: true } },
  handle: async (_call, _dependencies: HealthDependencies) => ({ live: true as const }),
});

const ready = jsonRoute({
  id: 'ready',
  method: 'GET',
  path: '/readyz',
  aliases: [],
  summary: 'Does the process serve?',
  description:
    'A pod must not be restarted because its group has no quorum, so that changes nothing here. `problems` is there while lock groups refuse this sidecar (a token that has ended, or is for somebody else) or have halted, and says what to look at.',
  body: null,
  query: nothing,
  answer: readyAnswer,
  contentType: JSON_TYPE,
  refusal: errorAnswer,
  errors: ['UNAVAILABLE'],
  example: { path: '/readyz', answer: { ready: true } },
  async handle(_call, dependencies: HealthDependencies) {
    if (!dependencies.ready())
      throw new LeaseholdError('UNAVAILABLE', 'The process is starting or stopping.');
    const problems = dependencies.problems?.() ?? [];
    return problems.length === 0
      ? { ready: true as const }
      : { ready: true as const, problems: [...problems] };
  },
});

const metrics = route({
  id: 'metrics',
  method: 'GET',
  path: '/metrics',
  aliases: [],
  summary: 'Metrics',
  description: 'In the Prometheus text format.',
  body: null,
  query: nothing,
  answer: z.string(),
  contentType: 'text/plain',
  refusal: errorAnswer,
  errors: [],
  example: { path: '/metrics', answer: ['leasehold_http_event_streams 0'] },
  async reply(_call, dependencies: HealthDependencies) {
    const text = await dependencies.metrics.text();
    return { type: 'text', answer: { contentType: dependencies.metrics.contentType, text } };
  },
});

export const healthRoutes: readonly Route<HealthDependencies>[] = [live, ready, metrics];
