/**
 * The LockNamespace as people write it: every field with its bounds and default (design section 7), unknown fields
 * refused everywhere. It is the one source of the later CRD, so it holds only what a CRD can also say of one field;
 * what spans fields is in rules.ts, and validate.ts applies both. Values stay as written (`ttl: 15s`); effective.ts turns
 * them into plain units.
 */
import * as z from 'zod';
import { formatDuration } from '../duration.ts';
import {
  CLIENT_LOCKS_DEFAULT,
  CLIENT_LOCKS_MAX,
  CLIENT_OPERATIONS_PER_SECOND_DEFAULT,
  HELD_LOCKS_DEFAULT,
  HELD_LOCKS_MAX,
  HOLD_MS_DEFAULT,
  HOLD_MS_MAX,
  HOLD_MS_MIN,
  LOCK_DELAY_MS_MAX,
  NAME_BYTES_MAX,
  OPERATIONS_PER_SECOND_DEFAULT,
  OPERATIONS_PER_SECOND_MAX,
  PERMITS_MAX,
  RESOURCE_BYTES_MAX,
  SESSIONS_DEFAULT,
  SESSIONS_MAX,
  TTL_MS_DEFAULT,
  TTL_MS_MAX,
  TTL_MS_MIN,
  WAIT_MS_DEFAULT,
  WAIT_MS_MAX,
  WAITERS_DEFAULT,
  WAITERS_MAX,
  WAITERS_PER_NAME_DEFAULT,
  WAITERS_PER_NAME_MAX,
} from '../limits.ts';
import * as bounds from './bounds.ts';
import * as field from './fields.ts';

export const API_GROUP = 'leasehold.dev';
export const API_VERSION = `${API_GROUP}/v1alpha1`;
export const LOCK_NAMESPACE_KIND = 'LockNamespace';
/** The other kinds of our group; manifests of them may lie beside LockNamespaces. */
export const OTHER_KINDS: readonly string[] = ['SafetyApproval', 'LockGroup', 'TokenLedger'];

/** As in the CRD: a letter first, because Services are named after it. */
const LOCK_NAMESPACE_NAME = /^[a-z]([-a-z0-9]*[a-z0-9])?$/;

const safety = field.mapping(
  {
    class: field
      .oneOf(['Efficiency', 'Correctness'])
      .describe('Efficiency: two holders cost work. Correctness: two holders cost money or data.'),
    failureCost: field
      .text(bounds.FAILURE_COST_BYTES_MAX)
      .optional()
      .describe('What it costs if two work at once.'),
    fencedResource: field
      .mapping(
        {
          kind: field
            .oneOf(['PostgreSQL', 'HTTP', 'ObjectStore', 'Etcd', 'Other'])
            .describe('What sort of resource it is.'),
          name: field.text(RESOURCE_BYTES_MAX).describe('The table, bucket, URL or key that is protected.'),
          check: field.text(bounds.CHECK_BYTES_MAX).describe('How the resource refuses an older token.'),
        },
        'what checks the token',
      )
      .optional()
      .describe('Who checks the fencing token, and how. Required for class Correctness.'),
  },
  'the safety declaration',
);

const lease = field.mapping(
  {
    ttl: field
      .duration(TTL_MS_MIN, TTL_MS_MAX)
      .default(formatDuration(TTL_MS_DEFAULT))
      .describe('Time without keepalive after which a session ends, unless it asked for another.'),
    minTTL: field
      .duration(TTL_MS_MIN, TTL_MS_MAX)
      .default(formatDuration(TTL_MS_MIN))
      .describe('The shortest TTL a session may ask for.'),
    maxTTL: field
      .duration(TTL_MS_MIN, TTL_MS_MAX)
      .default(formatDuration(TTL_MS_MAX))
      .describe('The longest TTL a session may ask for.'),
    lockDelay: field
      .duration(0, LOCK_DELAY_MS_MAX)
      .default('0s')
      .describe('Time a name stays blocked after an unclean end. 0s means none.'),
    maxHold: field
      .duration(HOLD_MS_MIN, HOLD_MS_MAX)
      .default(formatDuration(HOLD_MS_DEFAULT))
      .describe('The longest time one grant lasts, kept alive or not.'),
  },
  'the times of leases',
);

const queue = field.mapping(
  {
    maxWaiters: field
      .wholeNumber(0, WAITERS_PER_NAME_MAX)
      .default(WAITERS_PER_NAME_DEFAULT)
      .describe('Waiters of one name. 0 means that nobody may wait.'),
    maxWait: field
      .duration(0, WAIT_MS_MAX)
      .default(formatDuration(WAIT_MS_DEFAULT))
      .describe('The longest wait a request may ask for. 0s means that nobody may wait.'),
  },
  'the bounds of queues',
);

const operationsPerSecond = field.wholeNumber(1, OPERATIONS_PER_SECOND_MAX);

const limits = field.mapping(
  {
    sessions: field.wholeNumber(1, SESSIONS_MAX).default(SESSIONS_DEFAULT).describe('Sessions open at once.'),
    heldLocks: field
      .wholeNumber(1, HELD_LOCKS_MAX)
      .default(HELD_LOCKS_DEFAULT)
      .describe('Grants at once; each reader and each holder of permits counts as one.'),
    waiters: field
      .wholeNumber(1, WAITERS_MAX)
      .default(WAITERS_DEFAULT)
      .describe('Waiters of all names together.'),
    operationsPerSecond: operationsPerSecond
      .default(OPERATIONS_PER_SECOND_DEFAULT)
      .describe('Acquires and reads of all clients together; keepalives and releases are free.'),
    perClient: field
      .mapping(
        {
          locks: field
            .wholeNumber(1, CLIENT_LOCKS_MAX)
            .default(CLIENT_LOCKS_DEFAULT)
            .describe('What one session holds and waits for together.'),
          operationsPerSecond: operationsPerSecond
            .default(CLIENT_OPERATIONS_PER_SECOND_DEFAULT)
            .describe(
              'Acquires and reads through one sidecar, or of one pod where identities are proven, at each lock server; `leasehold dev` is one for all its callers.',
            ),
        },
        'the limits of one client',
      )
      .prefault({})
      .describe('Limits of each session and each sidecar.'),
  },
  'the limits',
);

const semaphore = field.mapping(
  {
    pattern: field
      .matching(/^[^*]*\*?$/, NAME_BYTES_MAX, 'a name, or the start of names followed by one * at the end')
      .describe('An exact name, or a prefix and *. The first pattern that matches a name wins.'),
    permits: field.wholeNumber(1, PERMITS_MAX).describe('Permits of each matching name, for itself alone.'),
  },
  'a semaphore',
);

const amounts = (noun: string) =>
  field.mapping(
    {
      cpu: field
        .quantity(bounds.CPU_MIN, bounds.CPU_MAX)
        .optional()
        .describe('Cores, as Kubernetes writes them.'),
      memory: field
        .quantity(bounds.MEMORY_MIN, bounds.MEMORY_MAX)
        .optional()
        .describe('Bytes, as Kubernetes writes them.'),
    },
    noun,
  );

const group = field.mapping(
  {
    replicas: z
      .literal([1, 3, 5], { error: (issue) => `must be 1, 3 or 5; got ${field.show(issue.input)}` })
      .default(3)
      .describe(
        'Lock servers, each with an etcd member of its own. Three survive the loss of one, five the loss of two.',
      ),
    storage: field
      .mapping(
        {
          size: field
            .quantity(bounds.STORAGE_SIZE_MIN, bounds.STORAGE_SIZE_MAX)
            .default('4Gi')
            .describe('Size of the volume.'),
          storageClassName: field
            .dnsSubdomain()
            .optional()
            .describe('A StorageClass of the cluster. Omitted: the default one of the cluster.'),
        },
        'the volume of a replica',
      )
      .prefault({})
      .describe('The volume of each replica.'),
    resources: field
      .mapping(
        {
          requests: amounts('requests').optional().describe('What is set aside for it.'),
          limits: amounts('limits').optional().describe('What it may use at most.'),
        },
        'the resources of a replica',
      )
      .prefault({})
      .describe('Processor and memory of each replica.'),
    topology: field.oneOf(['Zone', 'Node']).default('Zone').describe('What the replicas are spread over.'),
    deletionPolicy: field
      .oneOf(['Retain', 'Delete'])
      .default('Retain')
      .describe('Retain keeps volumes and certificates when the LockNamespace is deleted.'),
  },
  'the lock group',
);

const selector = field.mapping(
  {
    matchLabels: field
      .keyed(field.labelValue(), bounds.SELECTOR_TERMS_MAX, 'labels')
      .optional()
      .describe('Labels with these values; all of them must match.'),
    matchExpressions: field
      .list(
        field.mapping(
          {
            key: field.labelKey().describe('The label it looks at.'),
            operator: field
              .oneOf(['In', 'NotIn', 'Exists', 'DoesNotExist'])
              .describe('How it looks at the label.'),
            values: field
              .set(field.labelValue(), 0, bounds.SELECTOR_VALUES_MAX, 'label values')
              .optional()
              .describe('For In and NotIn only.'),
          },
          'an expression',
        ),
        0,
        bounds.SELECTOR_TERMS_MAX,
        'expressions',
      )
      .optional()
      .describe('Conditions on labels; all of them must match.'),
  },
  'a label selector',
);

const consumer = field.mapping(
  {
    namespace: field.dnsLabel().optional().describe('A Kubernetes namespace.'),
    namespaceSelector: selector
      .optional()
      .describe('Kubernetes namespaces by label, instead of `namespace`.'),
    serviceAccounts: field
      .set(field.dnsSubdomain(), 1, bounds.SERVICE_ACCOUNTS_MAX, 'ServiceAccounts')
      .optional()
      .describe('Omitted: every account there, which needs `openSet`.'),
    openSet: field.boolean().default(false).describe('Says that a set which can grow unseen is meant.'),
  },
  'a consumer',
);

/** The parts of the specification by name, so that a rule can read one of them while another is broken. */
export const specFields = {
  safety: safety.describe('What depends on the locks.'),
  lease: lease.prefault({}).describe('Times of sessions and grants.'),
  modes: field
    .set(field.oneOf(['Exclusive', 'Shared', 'Semaphore']), 1, 3, 'modes')
    .default(['Exclusive'])
    .describe('What may be acquired. Tokens of Shared and Semaphore grants fence nothing.'),
  queue: queue.prefault({}).describe('How many may wait, and how long.'),
  limits: limits
    .prefault({})
    .describe('What the namespace may take at most; beyond it requests are refused.'),
  semaphores: field
    .list(semaphore, 0, bounds.SEMAPHORES_MAX, 'semaphores')
    .default([])
    .describe('Which names are semaphores, and how many permits each has. Only with mode Semaphore.'),
  group: group.prefault({}).describe('The replicas that serve it.'),
  consumers: field
    .list(consumer, 1, bounds.CONSUMERS_MAX, 'consumers')
    .optional()
    .describe('Who may use it. Omitted: all accounts of its own Kubernetes namespace.'),
  paused: field.boolean().default(false).describe('Pauses reconciliation only; locks go on.'),
};

/** What the kube-apiserver adds to an object; read back with `kubectl get -o yaml` it is accepted and ignored. */
const servedMetadata = {
  annotations: field
    .keyed(field.annotationValue(bounds.ANNOTATION_BYTES_MAX), bounds.ANNOTATIONS_MAX, 'annotations')
    .default({})
    .describe('Annotations of the object.'),
  uid: field.ignored(),
  resourceVersion: field.ignored(),
  generation: field.ignored(),
  creationTimestamp: field.ignored(),
  deletionTimestamp: field.ignored(),
  deletionGracePeriodSeconds: field.ignored(),
  finalizers: field.ignored(),
  ownerReferences: field.ignored(),
  managedFields: field.ignored(),
  selfLink: field.ignored(),
};

const metadata = field.mapping(
  {
    name: field
      .matching(
        LOCK_NAMESPACE_NAME,
        bounds.LOCK_NAMESPACE_NAME_CHARS_MAX,
        'a name such as payouts (a letter, then a-z, 0-9 and - inside)',
      )
      .describe('Also the alias under which applications lock: `payouts/nightly`.'),
    namespace: field.dnsLabel().default('default').describe('The Kubernetes namespace of its owner.'),
    labels: field
      .keyed(field.labelValue(), bounds.LABELS_MAX, 'labels')
      .default({})
      .describe('Labels of the object.'),
    ...servedMetadata,
  },
  'the metadata',
);

/** Every field by itself. Use `validateLockNamespace`, which adds the rules that span fields. */
export const lockNamespaceSchema = field.mapping(
  {
    apiVersion: field.oneOf([API_VERSION]).describe('The version of this format.'),
    kind: field.oneOf([LOCK_NAMESPACE_KIND]).describe('The kind of object.'),
    metadata: metadata.describe('What it is called.'),
    spec: field.mapping(specFields, 'the specification').describe('How it behaves.'),
    status: field.ignored().describe('Written by the operator; ignored.'),
  },
  'a LockNamespace',
);

type Parsed = z.output<typeof lockNamespaceSchema>;

/** A valid specification, defaults filled in, values as written. */
export type LockNamespaceSpec = Parsed['spec'];
export type Selector = z.output<typeof selector>;

/** A valid LockNamespace, defaults filled in; without status and without what a server adds to the metadata. */
export interface LockNamespace {
  readonly apiVersion: typeof API_VERSION;
  readonly kind: typeof LOCK_NAMESPACE_KIND;
  readonly metadata: Pick<Parsed['metadata'], 'name' | 'namespace' | 'labels' | 'annotations'>;
  readonly spec: LockNamespaceSpec;
}
