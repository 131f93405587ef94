/** docs/MANIFEST.md, from the schema of the LockNamespace. */
import { PERMITS_MAX } from '../../src/api/limits.ts';
import type { LockNamespace } from '../../src/api/locknamespace/schema.ts';
import { parseManifests } from '../../src/platform/manifests/parse.ts';
import { fieldsInForce, type ManifestField, manifestFields } from './manifest-fields.ts';
import { RULES_IN_WORDS } from './manifest-rules.ts';
import { block, GENERATED, table } from './markdown.ts';

/** Writes every field there is; a test holds it to that. */
export const EXAMPLE = `apiVersion: leasehold.dev/v1alpha1
kind: LockNamespace
metadata:
  name: exports                  # applications lock exports/<anything>
  namespace: analytics
  labels: {team: analytics}
  annotations: {example.com/runbook: "https://wiki.example.com/exports"}
spec:
  safety:
    class: Efficiency
    failureCost: an export is made twice
    fencedResource:              # may be left out with class Efficiency
      kind: PostgreSQL
      name: analytics.public.export_fence
      check: UPDATE export_fence SET fence = :token WHERE lock = :lock AND fence <= :token
  lease: {ttl: 20s, minTTL: 10s, maxTTL: 40s, lockDelay: 5s, maxHold: 6h}
  modes: [Exclusive, Shared, Semaphore]
  semaphores:                    # the first pattern that matches wins
    - pattern: jobs/nightly      # this one name: one export at a time
      permits: 1
    - pattern: jobs/*            # jobs/a has ten permits, jobs/b has ten of its own
      permits: 10
  queue: {maxWaiters: 100, maxWait: 30m}
  limits:
    sessions: 1000
    heldLocks: 10000
    waiters: 5000
    operationsPerSecond: 2000
    perClient: {locks: 50, operationsPerSecond: 100}
  group:
    replicas: 3
    storage: {size: 4Gi, storageClassName: fast}
    resources:
      requests: {cpu: 500m, memory: 512Mi}
      limits: {cpu: 2, memory: 1Gi}
    topology: Zone
    deletionPolicy: Retain
  consumers:
    - namespace: analytics
      serviceAccounts: [exporter, reader]
    - namespaceSelector:
        matchLabels: {example.com/may-export: "true"}
        matchExpressions:
          - {key: example.com/tier, operator: In, values: [batch, report]}
      serviceAccounts: [exporter]
      openSet: true              # the set grows when a namespace gets the label
  paused: false
`;

const OBJECT = 'The object';
const SINGLE = 'spec, single fields';

export const MINIMAL = `apiVersion: leasehold.dev/v1alpha1
kind: LockNamespace
metadata:
  name: jobs
spec:
  safety:
    class: Efficiency`;

export function manifestPage(): string {
  const inForce = fieldsInForce(exampleNamespace());
  return `# The LockNamespace manifest

${GENERATED}

One LockNamespace is one set of locks, with the same rules for all of them. \`leasehold dev -f FOLDER\` reads the \`*.yaml\`, \`*.yml\` and \`*.json\` files of a folder, each with one or several of these. Only this much must be written:

${block('yaml', MINIMAL)}

Everything wrong is reported at once, with file, line and the way out. Unknown fields are refused, so that a misspelt one is not ignored; a field without a value counts as not written. More samples: [config/samples](../config/samples).

## Who uses a field

- **dev**: it has an effect in \`leasehold dev\` and in lock servers that run without Kubernetes.
- **cluster**: it is checked everywhere, as the tables say, but means something in a Kubernetes cluster only. Its operator is not built yet, so today these fields are declarations. In \`leasehold dev\` each LockNamespace has one replica whatever \`group.replicas\` says, and everybody who reaches the port may lock whatever \`consumers\` says.

\`safety.class\` decides which manifests are allowed (see the rules below); grants are the same in both classes. Objects of other API groups in the same files, such as Deployments, are skipped with a notice.

${sections(manifestFields(), inForce)}

\`status\`, and what a kube-apiserver adds to \`metadata\`, is accepted and ignored.

## How values are written

- **Durations**: one to three whole numbers, each with its unit \`h\`, \`m\`, \`s\` or \`ms\`: \`15s\`, \`1h30m\`, \`500ms\`. A bare number is refused, since its unit would be a guess.
- **Quantities** are those of Kubernetes: \`4Gi\`, \`500m\`, \`2\`.
- **Texts** that look like numbers or truth values need quotes: \`"true"\`, \`"1"\`.

## Modes and semaphores

\`modes\` says what may be acquired in this LockNamespace; anything else is refused \`INVALID\`. A pattern of \`semaphores\` makes semaphores of the names that it matches:

- A pattern is an **exact name** (\`jobs/nightly\`), or a **prefix and one \`*\` at its end** (\`jobs/*\`), which matches every name that begins with these bytes. \`*\` alone matches all names. A \`*\` anywhere else is refused, here and by \`group configure\`: no name with a star can be declared a semaphore alone. There is no other special character, and \`/\` is one like any other: \`jobs/*\` also matches \`jobs/a/b\`, and \`jobs*\` also matches \`jobs-old\`.
- Patterns and names are what stands **behind the alias**: for the lock \`exports/jobs/a\` it is \`jobs/a\`.
- \`permits: N\` gives **each matching name N permits of its own**. It is no common pool: with \`jobs/*\` and 10, ten may hold \`jobs/a\` while ten others hold \`jobs/b\`. For a pool of ten, let everybody acquire the same name. A request takes 1 permit unless it asks for more (\`permits\`), and N is at most ${PERMITS_MAX.toLocaleString('en-US')}.
- The **first** pattern that matches wins, so exact names stand before the prefixes that cover them.
- A name that a pattern matches can be acquired in mode \`semaphore\` only, any other name in \`exclusive\` and \`shared\` only.
- One queue for each name serves all modes; nobody overtakes.
- Tokens of \`shared\` and \`semaphore\` grants only order grants: a resource must not check them ([FENCING.md](FENCING.md)).

## Rules that span fields

${RULES_IN_WORDS.map(({ words }) => `- ${words}`).join('\n')}
- Within one \`leasehold dev\`, no two LockNamespaces have the same \`metadata.name\`, not even in different Kubernetes namespaces: the name is the alias.

## Changing it

\`leasehold dev\` notices a saved file and puts it into force without a restart; a set of files with a mistake in it changes nothing. Grants that were made keep their mode when a mode or a pattern is removed. **Removing a LockNamespace that is served ends its locks.**

## A complete example

Every field once; the values are not recommendations.

${block('yaml', EXAMPLE.trimEnd())}
`;
}

function exampleNamespace(): LockNamespace {
  const { namespaces, errors } = parseManifests(EXAMPLE, 'the example');
  const [first] = namespaces;
  if (first === undefined) throw new Error(`the example is wrong: ${JSON.stringify(errors)}`);
  return first.lockNamespace;
}

/** One table for what is above the specification, one for each of its parts that is a mapping or a list of them. */
function sections(fields: readonly ManifestField[], inForce: ReadonlySet<string>): string {
  const groups = new Map<string, ManifestField[]>([
    [OBJECT, []],
    [SINGLE, []],
  ]);
  for (const field of fields) {
    const title = titleOf(field.path, fields);
    groups.set(title, [...(groups.get(title) ?? []), field]);
  }
  const head = ['field', 'takes', 'default', 'used by', 'meaning'];
  return [...groups]
    .map(
      ([title, rows]) =>
        `## ${title}\n\n${table(
          head,
          rows.map((field) => cells(field, inForce)),
        )}`,
    )
    .join('\n\n');
}

function titleOf(path: string, fields: readonly ManifestField[]): string {
  const [top, part] = path.split(/[.[]/);
  if (top !== 'spec' || part === undefined) return OBJECT;
  const isDivided = fields.some(
    (other) => other.path.startsWith(`spec.${part}`) && other.path !== `spec.${part}`,
  );
  return isDivided ? `spec.${part}` : SINGLE;
}

function cells(field: ManifestField, inForce: ReadonlySet<string>): string[] {
  const { path, takes, byDefault, isRequired, meaning } = field;
  const shown = byDefault === null ? '' : `\`${byDefault}\``;
  // What tells the kind of object is read before there is a LockNamespace.
  const isUsed = inForce.has(path) || path === 'apiVersion' || path === 'kind';
  return [
    `\`${path}\``,
    takes,
    isRequired ? '(required)' : shown,
    isUsed ? 'dev, cluster' : 'cluster',
    meaning,
  ];
}
