/** What an unknown path probably meant: the routes whose templates are closest to it. */
import { editDistance } from '../../api/nearest.ts';
import type { RouteDocument } from './route.ts';

const ROUTES_SHOWN_MAX = 3;
const SEGMENT_CHARACTERS_MAX = 40;
const SEGMENTS_MAX = 8;
const ENCODED_SLASH = '%2F';
const EXAMPLE_NAME = 'payouts%2Fmerchant-48213';

export interface Suggestion {
  /** `POST /v1/locks/{name}/acquire` and the like, the closest first. */
  readonly routes: readonly string[];
  /** What to mend where the mistake is a known one; empty otherwise. */
  readonly hint: string;
}

/** `path`: still encoded, with its leading slash. */
export function suggestRoutes(path: string, routes: readonly RouteDocument[]): Suggestion {
  const typed = segmentsOf(path);
  const meant = hasSlashInName(typed) ? [typed, ...withWholeNames(typed)] : [typed];
  const nearest = routes
    .map((route) => {
      const template = segmentsOf(route.path);
      const distance = Math.min(
        ...meant.map((segments) => pathDistance(segments, template) + typed.length - segments.length),
      );
      return { route, distance, segments: template.length };
    })
    // Of two that fit, the one that explains more of what was typed.
    .sort((a, b) => a.distance - b.distance || b.segments - a.segments)
    .slice(0, ROUTES_SHOWN_MAX)
    .map(({ route }) => route);
  return {
    routes: nearest.map(({ method, path: template }) => `${method} ${template}`),
    hint: hasSlashInName(typed)
      ? ` A slash inside {name} is sent as %2F: ${nearest[0]?.path.replace('{name}', EXAMPLE_NAME)}.`
      : '',
  };
}

/** Without the version: there are forms without it, and another number is no reason to suggest other routes. */
function segmentsOf(path: string): string[] {
  const segments = path
    .slice(1)
    .split('/', SEGMENTS_MAX)
    .map((segment) => segment.slice(0, SEGMENT_CHARACTERS_MAX));
  return /^v[0-9]+$/i.test(segments[0] ?? '') ? segments.slice(1) : segments;
}

function hasSlashInName([first, , third]: readonly string[]): boolean {
  return first === 'locks' && third !== undefined;
}

/** What it would be with its name as one segment: a name up to the end, and one before a last segment such as `acquire`. */
function withWholeNames([first = '', ...rest]: readonly string[]): readonly string[][] {
  const last = rest.at(-1) ?? '';
  return [
    [first, rest.join(ENCODED_SLASH)],
    [first, rest.slice(0, -1).join(ENCODED_SLASH), last],
  ];
}

/** Edits over the segments; a parameter of the template takes any segment for nothing. */
function pathDistance(typed: readonly string[], template: readonly string[]): number {
  const length = Math.max(typed.length, template.length);
  let distance = 0;
  for (let i = 0; i < length; i++) {
    const known = template[i] ?? '';
    const isParameter = known.startsWith('{') && typed[i] !== undefined;
    if (!isParameter) distance += editDistance(typed[i] ?? '', known);
  }
  return distance;
}
