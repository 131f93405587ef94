/** All routes of the API, in the order in which the documents show them. */
import * as z from 'zod';
import { errorAnswer } from '../answers.ts';
import { nothing } from '../requests.ts';
import { type Route, route } from '../route.ts';
import { type ApiDependencies, JSON_TYPE } from './dependencies.ts';
import { lockRoutes } from './locks.ts';
import { readRoutes } from './reads.ts';
import { sessionRoutes } from './sessions.ts';

const openApi = route({
  id: 'openApi',
  method: 'GET',
  path: '/v1/openapi.json',
  aliases: [],
  summary: 'This API as an OpenAPI 3.1 document',
  description: 'The same document as openapi/leasehold.v1.json of the source.',
  body: null,
  query: nothing,
  answer: z.looseObject({ openapi: z.string(), paths: z.looseObject({}) }),
  contentType: JSON_TYPE,
  refusal: errorAnswer,
  errors: ['FORBIDDEN'],
  example: { path: '/v1/openapi.json', answer: { openapi: '3.1.0', paths: {} } },
  async reply(_call, dependencies: ApiDependencies) {
    return { type: 'text', answer: { contentType: JSON_TYPE, text: dependencies.openApiText() } };
  },
});

export const apiRoutes: readonly Route<ApiDependencies>[] = [
  ...sessionRoutes,
  ...lockRoutes,
  ...readRoutes,
  openApi,
];
