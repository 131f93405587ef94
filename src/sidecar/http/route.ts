/**
 * What a route is: its place in the API, its schemas, its text and its handler, all in one object. The server, the
 * OpenAPI document and docs/API.md are made from the same objects.
 */
import type { Request, Response } from 'express';
import * as z from 'zod';
import type { ErrorCode } from '../../api/errors.ts';
import { NAME_BYTES_MAX } from '../../api/limits.ts';
import { nameProblem, splitAlias } from '../../api/names.ts';
import { textProblem } from '../../api/text.ts';
import type { TextAnswer } from './answer.ts';
import { type FieldNoun, type Problem, problemsOf, refuseIfAny } from './problems.ts';
import { parseQuery } from './query.ts';
import { SESSION_ID_BYTES_MAX } from './requests.ts';

/** What documents say of a route. */
export interface RouteDocument {
  /** `operationId` of the OpenAPI document. */
  readonly id: string;
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** `{name}` or `{id}` stand for one whole segment. */
  readonly path: string;
  readonly aliases: readonly string[];
  readonly summary: string;
  readonly description: string;
  /** Null: the route takes no body. */
  readonly body: z.ZodObject | null;
  readonly query: z.ZodObject;
  readonly answer: z.ZodType;
  readonly contentType: string;
  /** The answer has no end of its own: it goes on until one side closes it. */
  readonly streams: boolean;
  /** Shape of the refusals. */
  readonly refusal: z.ZodType;
  readonly errors: readonly ErrorCode[];
  readonly example: RouteExample;
}

interface RouteExample {
  /** The path with everything filled in. */
  readonly path: string;
  readonly body?: object;
  /** An answer object; for a stream or plain text, its lines. */
  readonly answer: object | readonly string[];
}

/** A request that has been read but not checked. */
export interface RawCall {
  readonly request: Request;
  readonly response: Response;
  /** The path's parameter, decoded; undefined for routes without one. */
  readonly parameter: string | undefined;
  /** Still encoded. */
  readonly query: string;
  readonly body: object;
  /** Fires when the caller leaves before it has its answer. */
  hangUp(): AbortSignal;
}

/** A request that is right as far as its form goes. */
export interface Call<Body, Query> {
  readonly raw: RawCall;
  /** The path's lock name (full) or session id; empty for routes without one. */
  readonly parameter: string;
  readonly body: Body;
  readonly query: Query;
}

export type Reply =
  | { readonly type: 'json'; readonly body: object }
  | { readonly type: 'text'; readonly answer: TextAnswer }
  /** The handler writes the response itself. */
  | { readonly type: 'streaming' };

export interface Route<Dependencies> extends RouteDocument {
  /** What is added to refusals of this call. */
  refusalContext(parameter: string | undefined): Readonly<Record<string, unknown>>;
  run(raw: RawCall, dependencies: Dependencies): Promise<Reply>;
}

type Defined<Body, Query extends z.ZodObject, Answer> = Omit<
  RouteDocument,
  'body' | 'query' | 'answer' | 'streams'
> & {
  readonly body: Body;
  readonly query: Query;
  readonly answer: Answer;
  readonly streams?: boolean;
  readonly inRefusals?: Readonly<Record<string, unknown>>;
};

type BodyOf<Body extends z.ZodObject | null> = Body extends z.ZodObject ? z.output<Body> : null;

/** A route whose handler gives a JSON body. */
export function jsonRoute<
  Body extends z.ZodObject | null,
  Query extends z.ZodObject,
  Answer extends z.ZodType<object>,
  Dependencies,
>(
  definition: Defined<Body, Query, Answer> & {
    handle(call: Call<BodyOf<Body>, z.output<Query>>, dependencies: Dependencies): Promise<z.output<Answer>>;
  },
): Route<Dependencies> {
  return route({
    ...definition,
    reply: async (call, dependencies: Dependencies) => ({
      type: 'json',
      body: await definition.handle(call, dependencies),
    }),
  });
}

/** A route whose handler chooses how it answers. */
export function route<
  Body extends z.ZodObject | null,
  Query extends z.ZodObject,
  Answer extends z.ZodType,
  Dependencies,
>(
  definition: Defined<Body, Query, Answer> & {
    reply(call: Call<BodyOf<Body>, z.output<Query>>, dependencies: Dependencies): Promise<Reply>;
  },
): Route<Dependencies> {
  const { reply, inRefusals, streams = false, ...document } = definition;
  const isLock = document.path.includes('{name}');
  const numeric = numericFields(document.query);
  return {
    ...document,
    streams,
    refusalContext: (parameter) =>
      isLock && parameter !== undefined ? { ...inRefusals, name: parameter } : { ...inRefusals },
    async run(raw, dependencies) {
      const problems: Problem[] = [];
      if (raw.parameter !== undefined) problems.push(...parameterProblems(raw.parameter, isLock));
      const query = checked(
        document.query,
        parseQuery(raw.query, numeric, problems),
        'query parameter',
        problems,
      );
      const body = document.body === null ? null : checked(document.body, raw.body, 'field', problems);
      refuseIfAny(problems);
      return reply(
        { raw, parameter: raw.parameter ?? '', query, body } as Parameters<typeof reply>[0],
        dependencies,
      );
    },
  };
}

/** The parsed value; when `input` is wrong, its problems go to `problems` and the value must not be used. */
function checked(schema: z.ZodObject, input: object, noun: FieldNoun, problems: Problem[]): unknown {
  const result = schema.safeParse(input);
  if (result.success) return result.data;
  problems.push(...problemsOf(result.error, { input, schema, noun }));
  return null;
}

/** Query values come as text; these are meant as numbers (1 is within every bound of ours). */
function numericFields(schema: z.ZodObject): string[] {
  return Object.entries(schema.shape)
    .filter(([, field]) => z.safeParse(field, 1).success)
    .map(([name]) => name);
}

function parameterProblems(value: string, isLock: boolean): Problem[] {
  if (isLock) return lockNameProblems(value);
  const reason = textProblem(value, { min: 1, max: SESSION_ID_BYTES_MAX });
  return reason === null ? [] : [{ field: 'session_id', limit: SESSION_ID_BYTES_MAX, reason }];
}

function lockNameProblems(fullName: string): Problem[] {
  const split = splitAlias(fullName);
  if (split === null) {
    const reason = 'must be <alias>/<rest>, the slash sent as %2F: payouts%2Fmerchant-48213';
    return [{ field: 'name', limit: '<alias>/<rest>', reason }];
  }
  const reason = nameProblem(split.rest);
  return reason === null ? [] : [{ field: 'name', limit: NAME_BYTES_MAX, reason }];
}
