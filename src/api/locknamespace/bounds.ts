/**
 * Bounds that only manifests know. What the lock group itself enforces stands in ../limits.ts.
 * Each is also a bound of the CRD, where an unbounded text or list would make the validation rules too costly.
 */

/** Kubernetes' own limits for names: a DNS label and a DNS subdomain. */
export const DNS_LABEL_CHARS_MAX = 63;
export const DNS_SUBDOMAIN_CHARS_MAX = 253;
/** Names of children are made of it (design: at most 52 characters), so it is shorter than a DNS label. */
export const LOCK_NAMESPACE_NAME_CHARS_MAX = 40;
export const LABELS_MAX = 64;
/** Kubernetes allows 256 KiB of annotations in total. */
export const ANNOTATIONS_MAX = 256;
export const ANNOTATION_BYTES_MAX = 256 * 1024;

export const FAILURE_COST_BYTES_MAX = 1024;
/** The text that says how the resource checks the token, for example a SQL statement. */
export const CHECK_BYTES_MAX = 4096;
/** One replica loses quorum with its first failure, so class Correctness needs three (design section 7). */
export const CORRECTNESS_REPLICAS_MIN = 3;

export const SEMAPHORES_MAX = 64;
export const CONSUMERS_MAX = 64;
export const SERVICE_ACCOUNTS_MAX = 64;
export const SELECTOR_TERMS_MAX = 16;
export const SELECTOR_VALUES_MAX = 32;

export const STORAGE_SIZE_MIN = '1Gi';
export const STORAGE_SIZE_MAX = '1Ti';
export const CPU_MIN = '10m';
export const CPU_MAX = '128';
export const MEMORY_MIN = '64Mi';
export const MEMORY_MAX = '1Ti';
