/** docs/ERRORS.md, from the table of errors. */
import { ERRORS, type ErrorRow } from '../../src/api/errors.ts';
import { GENERATED, table } from './markdown.ts';

export function errorsPage(): string {
  const rows = Object.entries<ErrorRow>(ERRORS).map(([code, { status, retryable, text }]) => [
    `\`${code}\``,
    String(status),
    retryable ? 'yes' : 'no',
    text,
  ]);
  return `# Errors

${GENERATED}

Every refusal, of every route, is one JSON object: \`{"code": ..., "message": ...}\` and details. Decide by \`code\`; \`message\` is for people and may change; ignore details you do not know. Which codes a route can tell stands with the route in [API.md](API.md); \`NOT_FOUND\` and \`METHOD_NOT_ALLOWED\` are told to requests that reach no route.

${table(['code', 'status', 'same request may succeed later', 'meaning'], rows)}

## Details

- \`INVALID\` says everything that is wrong at once: \`problems\` lists \`{field, limit, reason}\`, and the first of them stands as \`field\`, \`limit\` and \`reason\` in the object itself. \`limit\` is the bound (a number) or what would be right (words).
- Refusals of an acquire have \`acquired: false\` and the lock's \`name\`. \`HELD\`, \`WAIT_TIMEOUT\` and \`QUEUE_FULL\` also say who holds the lock (\`holder\`, null if nobody does, as during a lock-delay).
- Answers with status 429 and 503 have the header \`Retry-After\` (whole seconds) and \`retry_after_ms\`. Both are spread by chance, so that callers refused together do not come back together.
- \`METHOD_NOT_ALLOWED\` has the header \`Allow\`; \`NOT_FOUND\` names the routes closest to what was sent.
- \`FORBIDDEN\` is also told, with \`field\` \`host\` or \`origin\`, to requests that come from a web page or under a foreign host name.
- An acquire answered with anything but a token gave you nothing new: what may have been granted to it meanwhile is taken back.
`;
}
